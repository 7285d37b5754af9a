#include "json/jsonpath_parser.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "json/jsonpath_tokens.hpp"
#include "text/utf8.hpp"

namespace reprise::json::jsonpath {
namespace {

enum class Type : unsigned char { value, logical, nodes };

struct Signature {
  std::string_view name;
  Function function;
  Type result;
  Type parameter;  // of each: no function mixes them
  std::size_t parameters;
};

constexpr std::array<Signature, 5> signatures{{
    {"length", Function::length, Type::value, Type::value, 1},
    {"count", Function::count, Type::value, Type::nodes, 1},
    {"match", Function::match, Type::logical, Type::value, 2},
    {"search", Function::search, Type::logical, Type::value, 2},
    {"value", Function::value, Type::value, Type::nodes, 1},
}};

const Signature& signature_of(Function function) noexcept {
  return *std::ranges::find(signatures, function, &Signature::function);
}

std::optional<Comparison> take_comparison(Cursor& cursor) {
  constexpr std::pair<std::string_view, Comparison> all[] = {
      {"==", Comparison::equal},         {"!=", Comparison::not_equal}, {"<=", Comparison::less_equal},
      {">=", Comparison::greater_equal}, {"<", Comparison::less},       {">", Comparison::greater},
  };
  for (const auto& [sign, comparison] : all) {
    if (cursor.takes(sign)) return comparison;
  }
  return std::nullopt;
}

// One function per rule of the grammar. Every way into itself passes through a Nested.
class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_{text} {}

  Parsed<Query> whole_query() {
    if (cursor_.peek() != '$') return cursor_.expected("$, with which every query begins");
    auto query = take_query();
    if (query && !cursor_.at_end()) return cursor_.expected("a segment like .name or [0]");
    return query;
  }

 private:
  struct Nested {
    explicit Nested(int& depth) : depth_{depth} { ++depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --depth_; }
    bool too_deep() const noexcept { return depth_ > nesting_max; }
    int& depth_;
  };
  std::unexpected<JsonPathMistake> too_deep() const { return cursor_.mistake("nested deeper than 64 levels"); }

  Parsed<Query> take_query() {
    Query query{.absolute = cursor_.peek() == '$', .segments = {}};
    cursor_.back_to(cursor_.offset() + 1);
    for (;;) {
      const std::size_t before_blanks = cursor_.offset();
      cursor_.skip_blanks();
      if (cursor_.peek() != '.' && cursor_.peek() != '[') {
        cursor_.back_to(before_blanks);
        return query;
      }
      auto segment = take_segment();
      if (!segment) return std::unexpected(std::move(segment.error()));
      query.segments.push_back(*std::move(segment));
    }
  }

  Parsed<Segment> take_segment() {
    Segment segment;
    segment.descendant = cursor_.takes("..");
    if (cursor_.peek() == '[') return take_bracketed(std::move(segment));
    if (!segment.descendant) cursor_.takes(".");
    if (cursor_.takes("*")) {
      segment.selectors.emplace_back(WildcardSelector{});
    } else if (cursor_.sees_name()) {
      segment.selectors.emplace_back(NameSelector{cursor_.take_name()});
    } else {
      return cursor_.expected(segment.descendant ? "a name, * or [ after .." : "a name or * after .");
    }
    return segment;
  }

  Parsed<Segment> take_bracketed(Segment segment) {
    cursor_.takes("[");
    do {
      cursor_.skip_blanks();
      auto selector = take_selector();
      if (!selector) return std::unexpected(std::move(selector.error()));
      segment.selectors.push_back(*std::move(selector));
      cursor_.skip_blanks();
    } while (cursor_.takes(","));
    if (!cursor_.takes("]")) return cursor_.expected("a comma or ]");
    return segment;
  }

  Parsed<Selector> take_selector() {
    const char c = cursor_.peek();
    if (c == '"' || c == '\'') {
      auto name = cursor_.take_string();
      if (!name) return std::unexpected(std::move(name.error()));
      return NameSelector{*std::move(name)};
    }
    if (cursor_.takes("*")) return WildcardSelector{};
    if (cursor_.takes("?")) {
      cursor_.skip_blanks();
      auto condition = take_logical();
      if (!condition) return std::unexpected(std::move(condition.error()));
      return FilterSelector{std::make_shared<const Logical>(*std::move(condition))};
    }
    if (c == ':' || cursor_.sees_number()) return take_index_or_slice();
    return cursor_.expected("a selector: a quoted name, an index, a slice, * or ?");
  }

  // An optional whole number and the blanks behind it. Not for the last one of a slice, which has its blanks in front.
  Parsed<std::optional<std::int64_t>> take_bound() {
    if (!cursor_.sees_number()) return std::optional<std::int64_t>{};
    auto number = cursor_.take_whole();
    if (!number) return std::unexpected(std::move(number.error()));
    return std::optional{*number};
  }

  Parsed<Selector> take_index_or_slice() {
    auto start = take_bound();
    if (!start) return std::unexpected(std::move(start.error()));
    const std::size_t behind = cursor_.offset();
    cursor_.skip_blanks();
    if (!cursor_.takes(":")) {
      cursor_.back_to(behind);
      return IndexSelector{start->value_or(0)};
    }
    SliceSelector slice{.start = *start};
    cursor_.skip_blanks();
    auto end = take_bound();
    if (!end) return std::unexpected(std::move(end.error()));
    slice.end = *end;
    cursor_.skip_blanks();
    if (cursor_.takes(":")) {
      cursor_.skip_blanks();
      auto step = take_bound();
      if (!step) return std::unexpected(std::move(step.error()));
      slice.step = step->value_or(1);
    }
    return slice;
  }

  Parsed<Logical> take_logical() {
    const Nested nested{depth_};
    if (nested.too_deep()) return too_deep();
    return take_terms<AnyOf>("||", [this] { return take_terms<AllOf>("&&", [this] { return take_basic(); }); });
  }

  template <typename Form, typename TakeTerm>
  Parsed<Logical> take_terms(std::string_view sign, TakeTerm take_term) {
    std::vector<Logical> terms;
    std::size_t behind = 0;
    do {
      cursor_.skip_blanks();
      auto term = take_term();
      if (!term) return term;
      terms.push_back(*std::move(term));
      behind = cursor_.offset();
      cursor_.skip_blanks();
    } while (cursor_.takes(sign));
    cursor_.back_to(behind);
    if (terms.size() == 1) return std::move(terms.front());
    return Logical{Form{std::move(terms)}};
  }

  Parsed<Logical> take_basic() {
    if (cursor_.takes("!")) {
      cursor_.skip_blanks();
      auto term = cursor_.peek() == '(' ? take_parenthesized() : take_test_only();
      if (!term) return term;
      return Logical{Not{std::make_shared<const Logical>(*std::move(term))}};
    }
    if (cursor_.peek() == '(') return take_parenthesized();
    return take_test_or_comparison();
  }

  Parsed<Logical> take_parenthesized() {
    cursor_.takes("(");
    auto inner = take_logical();
    if (!inner) return inner;
    cursor_.skip_blanks();
    if (!cursor_.takes(")")) return cursor_.expected(")");
    return inner;
  }

  Parsed<Logical> take_test_only() {
    const std::size_t begin = cursor_.offset();
    auto operand = take_operand();
    if (!operand) return std::unexpected(std::move(operand.error()));
    return as_test(*std::move(operand), begin);
  }

  Parsed<Logical> take_test_or_comparison() {
    const std::size_t begin = cursor_.offset();
    auto left = take_operand();
    if (!left) return std::unexpected(std::move(left.error()));
    const std::size_t behind = cursor_.offset();
    cursor_.skip_blanks();
    const auto comparison = take_comparison(cursor_);
    if (!comparison) {
      cursor_.back_to(behind);
      return as_test(*std::move(left), begin);
    }
    cursor_.skip_blanks();
    const std::size_t right_begin = cursor_.offset();
    auto right = take_operand();
    if (!right) return std::unexpected(std::move(right.error()));
    if (auto mistake = why_no_value(*left, begin)) return std::unexpected(*std::move(mistake));
    if (auto mistake = why_no_value(*right, right_begin)) return std::unexpected(*std::move(mistake));
    return Logical{Compare{*std::move(left), *comparison, *std::move(right)}};
  }

  static Parsed<Logical> as_test(Operand operand, std::size_t begin) {
    if (auto* query = std::get_if<Query>(&operand)) return Logical{Exists{std::move(*query)}};
    const auto* call = std::get_if<std::shared_ptr<const Call>>(&operand);
    if (call == nullptr) return Cursor::mistake_at(begin, "a literal alone is no condition; compare it with something");
    const Signature& signature = signature_of((*call)->function);
    if (signature.result != Type::logical)
      return Cursor::mistake_at(begin, std::string{signature.name} + "() gives a value; compare it with something");
    return Logical{Holds{*call}};
  }

  // A query must be singular, and a function must give a value, where a single value is needed.
  static std::optional<JsonPathMistake> why_no_value(const Operand& operand, std::size_t begin) {
    if (const auto* query = std::get_if<Query>(&operand); query != nullptr && !query->is_singular())
      return JsonPathMistake{
          begin, "this query may select several nodes; only names and indexes can stand where one value is needed"};
    if (const auto* call = std::get_if<std::shared_ptr<const Call>>(&operand)) {
      const Signature& signature = signature_of((*call)->function);
      if (signature.result != Type::value)
        return JsonPathMistake{begin, std::string{signature.name} + "() is true or false and cannot be compared"};
    }
    return std::nullopt;
  }

  Parsed<Operand> take_operand() {
    const char c = cursor_.peek();
    if (c == '"' || c == '\'') {
      auto text = cursor_.take_string();
      if (!text) return std::unexpected(std::move(text.error()));
      return Operand{Json(*text)};
    }
    if (cursor_.sees_number()) {
      auto number = cursor_.take_number();
      if (!number) return std::unexpected(std::move(number.error()));
      return Operand{*std::move(number)};
    }
    if (c == '@' || c == '$') {
      const Nested nested{depth_};
      if (nested.too_deep()) return too_deep();
      auto query = take_query();
      if (!query) return std::unexpected(std::move(query.error()));
      return Operand{*std::move(query)};
    }
    const std::size_t begin = cursor_.offset();
    const std::string_view name = cursor_.take_function_name();
    if (cursor_.peek() == '(' && !name.empty()) return take_call(name, begin);
    if (name == "true") return Operand{Json(true)};
    if (name == "false") return Operand{Json(false)};
    if (name == "null") return Operand{Json(nullptr)};
    cursor_.back_to(begin);
    return cursor_.expected("a query, a literal or a function");
  }

  Parsed<Operand> take_call(std::string_view name, std::size_t begin) {
    const Nested nested{depth_};
    if (nested.too_deep()) return too_deep();
    const auto* signature = std::ranges::find(signatures, name, &Signature::name);
    if (signature == signatures.end())
      return Cursor::mistake_at(
          begin, "there is no function " + std::string{name} + "(); there are length, count, match, search and value");
    Call call{.function = signature->function, .arguments = {}};
    cursor_.takes("(");
    cursor_.skip_blanks();
    while (cursor_.peek() != ')') {
      if (!call.arguments.empty()) {
        if (!cursor_.takes(",")) return cursor_.expected("a comma or )");
        cursor_.skip_blanks();
      }
      auto argument = take_argument(*signature);
      if (!argument) return argument;
      call.arguments.push_back(*std::move(argument));
      cursor_.skip_blanks();
    }
    cursor_.takes(")");
    if (call.arguments.size() != signature->parameters) {
      const std::string count = signature->parameters == 1 ? "one argument" : "two arguments";
      return Cursor::mistake_at(
          begin, std::string{name} + "() takes " + count + ", not " + std::to_string(call.arguments.size()));
    }
    compile_pattern(call);
    return Operand{std::make_shared<const Call>(std::move(call))};
  }

  Parsed<Operand> take_argument(const Signature& signature) {
    const std::size_t begin = cursor_.offset();
    auto argument = take_operand();
    if (!argument) return argument;
    if (signature.parameter == Type::nodes) {
      if (!std::holds_alternative<Query>(*argument))
        return Cursor::mistake_at(begin, std::string{signature.name} + "() takes a query");
    } else if (auto mistake = why_no_value(*argument, begin)) {
      return std::unexpected(*std::move(mistake));
    }
    return argument;
  }

  static void compile_pattern(Call& call) {
    if (call.function != Function::match && call.function != Function::search) return;
    const Json* literal = std::get_if<Json>(&call.arguments[1]);
    if (literal == nullptr) return;
    call.pattern = Pattern{};
    if (!literal->is_string()) return;
    const auto& text = literal->get_string();
    const auto anchoring = call.function == Function::match ? Anchoring::whole : Anchoring::anywhere;
    call.pattern = compile_i_regexp({text.data(), text.size()}, anchoring).value_or(Pattern{});
  }

  Cursor cursor_;
  int depth_ = 0;
};

std::optional<std::size_t> first_broken_character(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = text::first_character(text.substr(at)).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace

std::expected<Query, JsonPathMistake> parse_query(std::string_view text) {
  if (text.size() > query_bytes_max) return Cursor::mistake_at(query_bytes_max, "the query is longer than 4096 bytes");
  if (const auto broken = first_broken_character(text)) return Cursor::mistake_at(*broken, "not valid UTF-8");
  return Parser{text}.whole_query();
}

}  // namespace reprise::json::jsonpath
