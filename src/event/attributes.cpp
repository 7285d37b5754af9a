#include "event/attributes.hpp"

#include <algorithm>

#include "event/facts.hpp"
#include "text/utf8.hpp"

namespace reprise::event {
namespace {

constexpr std::size_t label_name_max = 64;
constexpr std::size_t label_value_max = 256;
constexpr std::size_t name_max = 128;  // of a queue or a tenant
constexpr std::size_t traceparent_max = 512;

bool is_label_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view{"._-/"}.find(c) != std::string_view::npos;
}

// Text that stays on its line.
bool is_plain_text(std::string_view text) noexcept {
  while (!text.empty()) {
    const text::Character character = text::first_character(text);
    if (character.bytes == 0 || text::is_control(character.code_point)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

bool is_label_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= label_name_max && std::ranges::all_of(name, is_label_character);
}

bool is_hexadecimal(std::string_view digits) noexcept {
  return std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_not_zero(std::string_view digits) noexcept { return digits.find_first_not_of('0') != std::string_view::npos; }

// W3C Trace Context, section 3.2: a later version may have more behind what this one has.
bool is_traceparent(std::string_view text) noexcept {
  constexpr std::size_t version_0_size = 55;
  if (text.size() < version_0_size || text.size() > traceparent_max || text[2] != '-' || text[35] != '-' ||
      text[52] != '-')
    return false;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, 32);
  const std::string_view parent = text.substr(36, 16);
  const bool fits = text.size() == version_0_size || (version != "00" && text[version_0_size] == '-');
  return fits && is_hexadecimal(version) && version != "ff" && is_hexadecimal(trace) && is_not_zero(trace) &&
         is_hexadecimal(parent) && is_not_zero(parent) && is_hexadecimal(text.substr(53, 2)) &&
         is_plain_text(text.substr(version_0_size));
}

std::expected<void, std::string> settle_labels(Labels& labels) {
  if (labels.size() > labels_max) return std::unexpected{"a run has at most " + std::to_string(labels_max) + " labels"};
  for (const auto& [name, value] : labels) {
    if (!is_label_name(name)) {
      return std::unexpected{"\"" + text::safe_to_show(name.substr(0, label_name_max)) +
                             "\" cannot be the name of a label: write 1 to 64 letters, digits and . _ - /"};
    }
    if (value.size() > label_value_max || !is_plain_text(value)) {
      return std::unexpected{"the value of the label " + name + " is at most " + std::to_string(label_value_max) +
                             " bytes of UTF-8 text without control characters"};
    }
  }
  std::ranges::stable_sort(labels, {}, &Labels::value_type::first);
  const auto twice = std::ranges::adjacent_find(labels, {}, &Labels::value_type::first);
  if (twice != labels.end()) return std::unexpected{"the label " + twice->first + " is given twice; keep one of them"};
  return {};
}

void put_text(std::string& facts, FactTag tag, std::string_view text) {
  if (!text.empty()) put_fact(facts, tag, text);
}

Labels read_labels(std::string_view bytes) {
  ByteReader in{bytes};
  Labels labels;
  while (in.ok() && !in.at_end() && labels.size() < labels_max) {
    std::string name{in.bytes()};
    labels.emplace_back(std::move(name), in.bytes());
  }
  return in.ok() ? labels : Labels{};
}

}  // namespace

std::expected<void, std::string> settle_attributes(RunAttributes& attributes) {
  if (auto settled = settle_labels(attributes.labels); !settled) return settled;
  for (const auto& [what, name] : {std::pair{"queue", &attributes.queue}, std::pair{"tenant", &attributes.tenant},
                                   std::pair{"origin", &attributes.origin}}) {
    if (name->size() > name_max || !is_plain_text(*name)) {
      return std::unexpected{std::string{"the name of a "} + what + " is at most " + std::to_string(name_max) +
                             " bytes of UTF-8 text without control characters"};
    }
  }
  if (!attributes.traceparent.empty() && !is_traceparent(attributes.traceparent)) {
    return std::unexpected{
        std::string{"a traceparent is 00-, 32 digits, -, 16 digits, -, 2 digits (0 to 9 and a to f), such as "
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}};
  }
  return {};
}

std::string encode_attributes(const RunAttributes& attributes) {
  std::string facts;
  put_text(facts, FactTag::origin, attributes.origin);
  std::string labels;
  for (const auto& [name, value] : attributes.labels) {
    put_bytes(labels, name);
    put_bytes(labels, value);
  }
  put_text(facts, FactTag::labels, labels);
  put_text(facts, FactTag::queue, attributes.queue);
  put_text(facts, FactTag::tenant, attributes.tenant);
  if (attributes.max_cost) {
    std::string cost;
    put_varint(cost, attributes.max_cost->tokens);
    put_varint(cost, attributes.max_cost->micros);
    put_fact(facts, FactTag::cost_limit, cost);
  }
  put_text(facts, FactTag::traceparent, attributes.traceparent);
  return facts;
}

RunAttributes read_attributes(std::string_view facts) {
  RunAttributes attributes;
  FactReader reader{facts};
  Fact fact;
  while (reader.next(fact)) {
    ByteReader in{fact.bytes};
    switch (fact.tag) {
      case FactTag::origin:
        attributes.origin = fact.bytes;
        break;
      case FactTag::labels:
        attributes.labels = read_labels(fact.bytes);
        break;
      case FactTag::queue:
        attributes.queue = fact.bytes;
        break;
      case FactTag::tenant:
        attributes.tenant = fact.bytes;
        break;
      case FactTag::cost_limit: {
        const std::uint64_t tokens = in.varint();
        const Cost cost{tokens, in.varint()};
        if (in.ok()) attributes.max_cost = cost;
        break;
      }
      case FactTag::traceparent:
        attributes.traceparent = fact.bytes;
        break;
      default:
        break;
    }
  }
  return attributes;
}

void set_attributes(text::Value& object, const RunAttributes& attributes) {
  const auto set_text = [&](const char* name, const std::string& value) {
    if (!value.empty()) object.set(name, value);
  };
  const auto whole = [](std::uint64_t number) { return text::Value::Number{std::to_string(number)}; };
  set_text("origin", attributes.origin);
  if (!attributes.labels.empty()) {
    text::Value labels = text::Value::map();
    for (const auto& [name, value] : attributes.labels) labels.set(name, value);
    object.set("labels", std::move(labels));
  }
  set_text("queue", attributes.queue);
  set_text("tenant", attributes.tenant);
  if (attributes.max_cost) {
    text::Value cost = text::Value::map();
    if (attributes.max_cost->tokens > 0) cost.set("tokens", whole(attributes.max_cost->tokens));
    if (attributes.max_cost->micros > 0) cost.set("micros", whole(attributes.max_cost->micros));
    object.set("max_cost", std::move(cost));
  }
  set_text("traceparent", attributes.traceparent);
}

}  // namespace reprise::event
