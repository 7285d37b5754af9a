#include "text/document.hpp"

#include <yaml.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "text/json_escapes.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"
#include "text/utf8.hpp"

namespace reprise::text {

const Node* Node::find(std::string_view key) const noexcept {
  const auto member =
      std::ranges::find_if(members, [&](const Member& candidate) { return candidate.key->text == key; });
  return member == members.end() ? nullptr : member->value;
}

std::string_view Document::line(std::uint32_t number) const noexcept {
  if (number == 0 || number > line_starts_.size()) return {};
  const std::size_t begin = line_starts_[number - 1];
  const std::size_t end = number < line_starts_.size() ? line_starts_[number] : source_.size();
  std::string_view text = std::string_view{source_}.substr(begin, end - begin);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

Diagnostic diagnostic_at(const Document& document, Severity severity, Place place, std::string message,
                         std::string help) {
  message = safe_to_show(message);  // messages quote the document, and a terminal must not obey it
  help = safe_to_show(help);
  auto [source_line, caret] = excerpt(document.line(place.line), place.column);
  return {severity,        document.name(),        place.line, place.column, place.length, std::move(message),
          std::move(help), std::move(source_line), caret};
}

// Builds the tree from libyaml's events, iteratively: depth is a number here, never the machine's stack.
class Reader {
 public:
  Reader(std::string source, std::string name, const Limits& limits) : limits_{limits} {
    document_.name_ = std::move(name);
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (source.starts_with(byte_order_mark)) source.erase(0, byte_order_mark.size());
    document_.source_ = std::move(source);
  }

  std::expected<Document, Diagnostics> read() {
    if (document_.source_.size() > limits_.bytes_max) {
      fail({}, fmt::format("the document is larger than {} KiB", limits_.bytes_max / 1024),
           "split it, or check that it is the right file");
      return std::unexpected(std::move(diagnostics_));
    }
    index_lines();
    refuse_tag_directives();
    JoinedEscapes joined = join_surrogate_escapes(document_.source_);
    joined_ = std::move(joined.places);
    if (diagnostics_.empty()) read_events(joined_.empty() ? document_.source_ : joined.text);
    if (diagnostics_.empty() && document_.root_ == nullptr) {
      fail({}, "the document is empty", "write {} if nothing is to be said");
    }
    if (!diagnostics_.empty()) return std::unexpected(std::move(diagnostics_));
    return std::move(document_);
  }

 private:
  static constexpr std::size_t duplicates_max = 100;   // enough to see what is wrong
  static constexpr std::size_t bytes_per_weight = 64;  // long texts count as several nodes

  struct Open {  // a collection whose end has not come yet
    Node* node;
    const Node* key = nullptr;  // mapping: the key that waits for its value
    std::string anchor;
    std::unordered_set<std::string_view> seen;
  };

  void fail(Place place, std::string message, std::string help = {}) {
    diagnostics_.push_back(diagnostic_at(document_, Severity::error, place, std::move(message), std::move(help)));
  }

  void index_lines() {
    document_.line_starts_.push_back(0);
    for (std::size_t at = 0; at < document_.source_.size(); ++at) {
      if (document_.source_[at] == '\n') document_.line_starts_.push_back(at + 1);
    }
  }

  // Tags are refused anyway, and libyaml takes quadratic time to read their directives.
  void refuse_tag_directives() {
    for (std::uint32_t number = 1; number <= document_.line_starts_.size(); ++number) {
      const std::string_view line = document_.line(number);
      if (line.starts_with("%TAG")) return fail({number, 1, 4}, "tag directives are not supported", "remove the line");
      if (!line.empty() && line.front() != '%' && line.front() != '#') return;
    }
  }

  void read_events(const std::string& source) {
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0) return fail({}, "out of memory");
    const std::unique_ptr<yaml_parser_t, void (*)(yaml_parser_t*)> guard{&parser, yaml_parser_delete};
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(source.data()), source.size());
    for (bool done = false; !done && !stopped_;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser, &event) == 0) return fail_in_parser(parser, source);
      const std::unique_ptr<yaml_event_t, void (*)(yaml_event_t*)> event_guard{&event, yaml_event_delete};
      done = event.type == YAML_STREAM_END_EVENT;
      take(event);
    }
  }

  void fail_in_parser(const yaml_parser_t& parser, std::string_view source) {
    const std::string problem = parser.problem != nullptr ? parser.problem : "cannot be read";
    if (parser.error == YAML_READER_ERROR) {
      const std::string what =
          parser.problem_value > 0 ? fmt::format("{} (0x{:02x})", problem, parser.problem_value) : problem;
      return fail(place_before_joining(place_of_offset(source, parser.problem_offset), joined_), what,
                  "documents are UTF-8 text without control characters");
    }
    // At the end of the text there is nothing to show: what was begun and not finished is more telling.
    const bool at_end = document_.line(static_cast<std::uint32_t>(parser.problem_mark.line + 1)).empty();
    const Place place = place_of(at_end && parser.context != nullptr ? parser.context_mark : parser.problem_mark);
    std::string message = parser.context != nullptr ? fmt::format("{} {}", problem, parser.context) : problem;
    if (parser.context != nullptr && parser.context_mark.line != parser.problem_mark.line) {
      message += fmt::format(" that begins on line {}", parser.context_mark.line + 1);
    }
    fail(place, message, "check the quotes, brackets, indentation and the blank after each colon");
  }

  Place place_of(const yaml_mark_t& mark) const noexcept {
    return place_before_joining(
        {static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)}, joined_);
  }

  Place place_of(const yaml_event_t& event) const noexcept {
    Place place = place_of(event.start_mark);
    const Place end = place_of(event.end_mark);
    if (end.line == place.line && end.column > place.column) place.length = end.column - place.column;
    return place;
  }

  void stop(Place place, std::string message, std::string help) {
    fail(place, std::move(message), std::move(help));
    stopped_ = true;
  }

  void take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (document_.root_ != nullptr)
          stop(place_of(event), "a second document begins here", "one file holds one document");
        break;
      case YAML_SCALAR_EVENT:
        take_scalar(event);
        break;
      case YAML_SEQUENCE_START_EVENT:
        open(event, NodeType::sequence, event.data.sequence_start.anchor, event.data.sequence_start.tag);
        break;
      case YAML_MAPPING_START_EVENT:
        open(event, NodeType::mapping, event.data.mapping_start.anchor, event.data.mapping_start.tag);
        break;
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        close();
        break;
      case YAML_ALIAS_EVENT:
        take_alias(event);
        break;
      default:
        break;
    }
  }

  static std::string text_of(const unsigned char* text) {
    return text != nullptr ? reinterpret_cast<const char*>(text) : "";
  }

  Node* make(const yaml_event_t& event, NodeType type) {
    Node& node = document_.nodes_.emplace_back();
    node.type = type;
    node.place = place_of(event);
    return &node;
  }

  void take_scalar(const yaml_event_t& event) {
    const auto& scalar = event.data.scalar;
    const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const std::string tag = text_of(scalar.tag);
    Node* node = make(event, NodeType::string);
    node->text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    node->weight += static_cast<std::uint32_t>(scalar.length / bytes_per_weight);
    if (tag.empty() && plain) {
      node->type = scalar_type(node->text);
    } else if (!tag.empty() && tag != "!" && tag != YAML_STR_TAG) {
      return stop(node->place, fmt::format("the tag {} is not supported", tag), "remove the tag");
    }
    attach(node, text_of(scalar.anchor));
  }

  void open(const yaml_event_t& event, NodeType type, const unsigned char* anchor, const unsigned char* tag) {
    Node* node = make(event, type);
    node->place.length = 1;
    if (tag != nullptr)
      return stop(node->place, fmt::format("the tag {} is not supported", text_of(tag)), "remove the tag");
    if (!open_.empty() && open_.back().node->type == NodeType::mapping && open_.back().key == nullptr) {
      return stop(node->place, "a key must be a word, not a list or a map", {});
    }
    if (open_.size() >= limits_.depth_max) {
      return stop(node->place, fmt::format("nested deeper than {} levels", limits_.depth_max), "flatten the document");
    }
    open_.push_back({node, nullptr, text_of(anchor), {}});
  }

  void close() {
    Open finished = std::move(open_.back());
    open_.pop_back();
    attach(finished.node, finished.anchor);
  }

  void take_alias(const yaml_event_t& event) {
    const std::string name = text_of(event.data.alias.anchor);
    const auto anchored = anchors_.find(name);
    if (anchored == anchors_.end()) {
      return stop(place_of(event), fmt::format("there is no anchor &{} before this alias", name),
                  "define it above, outside of itself");
    }
    attach(anchored->second, {});
  }

  // A finished node becomes the root, an item, a key or a value.
  void attach(const Node* node, const std::string& anchor) {
    if (!anchor.empty()) anchors_[anchor] = node;
    if (open_.empty()) {
      document_.root_ = node;
      return;
    }
    Open& parent = open_.back();
    parent.node->weight += std::min(node->weight, limits_.nodes_max);
    if (parent.node->weight > limits_.nodes_max) {
      return stop(node->place, fmt::format("more than {} values once aliases are expanded", limits_.nodes_max),
                  "use fewer aliases");
    }
    if (parent.node->type == NodeType::sequence) {
      parent.node->items.push_back(node);
    } else if (parent.key == nullptr) {
      take_key(parent, node);
    } else {
      parent.node->members.push_back({parent.key, node});
      parent.key = nullptr;
    }
  }

  void take_key(Open& parent, const Node* key) {
    if (!key->is_scalar()) return stop(key->place, "a key must be a word, not a list or a map", {});
    parent.key = key;
    if (parent.seen.insert(key->text).second) return;
    if (diagnostics_.size() >= duplicates_max) {
      stopped_ = true;
      return;
    }
    const auto first =
        std::ranges::find_if(parent.node->members, [&](const Node::Member& m) { return m.key->text == key->text; });
    fail(key->place, fmt::format("the key \"{}\" is given twice", shorten(key->text, 60)),
         fmt::format("it stands on line {} already; keep one of them", first->key->place.line));
  }

  Limits limits_;
  Document document_;
  Diagnostics diagnostics_;
  std::vector<Open> open_;
  std::unordered_map<std::string, const Node*> anchors_;
  std::vector<Place> joined_;  // where JSON's escapes were joined
  bool stopped_ = false;
};

std::expected<Document, Diagnostics> read_document(std::string source, std::string name, const Limits& limits) {
  return Reader{std::move(source), std::move(name), limits}.read();
}

std::string describe(const Node& node) {
  constexpr std::size_t shown_max = 40;
  const std::string shown = shorten(node.text, shown_max);
  switch (node.type) {
    case NodeType::null:
      return "null";
    case NodeType::boolean:
      return shown + " (a boolean)";
    case NodeType::integer:
    case NodeType::number:
      return shown;
    case NodeType::string:
      return fmt::format("\"{}\" (text)", shown);
    case NodeType::sequence:
      return "a list";
    case NodeType::mapping:
      return "a map";
  }
  return shown;
}

}  // namespace reprise::text
