// Reads expressions: one function for each level of the grammar in expression.hpp, from weak to strong.
#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "flow/expression/expression.hpp"
#include "flow/expression/expression_tokens.hpp"
#include "flow/expression/expression_tree.hpp"
#include "text/ascii.hpp"
#include "text/nearest.hpp"
#include "text/utf8.hpp"

namespace reprise::flow {
namespace detail {
namespace {

using Mistake = std::unexpected<ExpressionMistake>;
using Parsed = std::expected<Expr, ExpressionMistake>;

constexpr std::array comparisons{Operator::equal,      Operator::unequal, Operator::less,
                                 Operator::less_equal, Operator::greater, Operator::greater_equal};
constexpr std::array sums{Operator::add, Operator::subtract};
constexpr std::array products{Operator::multiply, Operator::divide, Operator::remainder};

struct ForeignWord {
  std::string_view word;
  std::string_view help;
};

constexpr std::array<ForeignWord, 14> foreign_functions{{
    {"len", "write length(…)"},
    {"size", "write length(…)"},
    {"count", "write length(…)"},
    {"fromjson", "write json(…)"},
    {"parse_json", "write json(…)"},
    {"tojson", "a list or a map becomes JSON by itself inside text: \"${value}\""},
    {"tostring", "a value becomes text by itself inside text: \"${value}\""},
    {"includes", "write contains(list, element)"},
    {"has", "write contains(map, key)"},
    {"coalesce", "write default(value, otherwise)"},
    {"exists", "write default(path, null) != null"},
    {"success", "`needs` says what must be done before; on_failure what happens otherwise"},
    {"always", "what always runs stands in `finally`"},
    {"failure", "what runs after a failure stands in on_failure or `finally`"},
}};

constexpr std::array<ForeignWord, 13> foreign_operators{{
    {"in", "write contains(list, element)"},
    {"is", "write =="},
    {"eq", "write =="},
    {"ne", "write !="},
    {"lt", "write <"},
    {"le", "write <="},
    {"gt", "write >"},
    {"ge", "write >="},
    {"mod", "write %"},
    {"div", "write /"},
    {"and", "`and` is written in small letters"},
    {"or", "`or` is written in small letters"},
    {"if", "there is no condition inside an expression; use `if` of the step, or default(value, otherwise)"},
}};

constexpr std::array<ForeignWord, 6> foreign_literals{{
    {"True", "true"},
    {"False", "false"},
    {"None", "null"},
    {"nil", "null"},
    {"NULL", "null"},
    {"undefined", "null"},
}};

template <std::size_t size>
std::string_view help_for(const std::array<ForeignWord, size>& words, std::string_view word) {
  const auto found = std::ranges::find(words, word, &ForeignWord::word);
  return found == words.end() ? std::string_view{} : found->help;
}

std::string shown(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end";
  if (token.kind == Token::Kind::text) return "text in quotes";
  return "`" + text::safe_to_show(token.text) + "`";
}

class Parser {
 public:
  explicit Parser(std::string_view source) : reader_{source} {}

  Parsed whole();

 private:
  using Level = Parsed (Parser::*)();

  std::expected<void, ExpressionMistake> advance();
  std::expected<void, ExpressionMistake> expect(std::string_view sign, std::string_view where);
  std::unexpected<ExpressionMistake> unexpected_here(std::string_view wanted) const;
  std::optional<Operator> operator_here(std::span<const Operator> wanted) const;

  Parsed joined(std::string_view word, Expr::Kind kind, Level stronger);
  Parsed chained(std::span<const Operator> wanted, Level stronger);
  Parsed nested(Level level);
  Parsed prefixed(Expr::Kind kind, std::size_t offset, Level operand);
  Parsed any();
  Parsed all();
  Parsed inverted();
  Parsed compared();
  Parsed sum();
  Parsed product();
  Parsed signed_value();
  Parsed primary();
  Parsed literal(Json value);
  Parsed number(const std::string& digits, std::size_t offset);
  Parsed name();
  Parsed path(Token first);
  Parsed call(const Token& function);
  Parsed with_accessors(Expr base);
  std::expected<void, ExpressionMistake> add_member(Expr& base);
  std::expected<void, ExpressionMistake> add_index(Expr& base);

  TokenReader reader_;
  Token here_;
  std::size_t depth_ = 0;
};

std::expected<void, ExpressionMistake> Parser::advance() {
  auto token = reader_.next();
  if (!token) return std::unexpected{std::move(token.error())};
  here_ = std::move(*token);
  return {};
}

std::unexpected<ExpressionMistake> Parser::unexpected_here(std::string_view wanted) const {
  ExpressionMistake mistake{here_.offset, "expected " + std::string{wanted} + ", found " + shown(here_)};
  if (here_.kind == Token::Kind::name) mistake.help = help_for(foreign_operators, text::lowered(here_.text));
  if (here_.is_word("not")) mistake.help = "put it in parentheses: (not …)";
  return std::unexpected{std::move(mistake)};
}

std::expected<void, ExpressionMistake> Parser::expect(std::string_view sign, std::string_view where) {
  if (!here_.is_sign(sign)) return unexpected_here("`" + std::string{sign} + "` " + std::string{where});
  return advance();
}

Parsed Parser::whole() {
  if (const auto first = advance(); !first) return Mistake{first.error()};
  if (here_.kind == Token::Kind::end) {
    return Mistake{{0, "there is nothing to compute", "write a path or a value: ${params.date}"}};
  }
  auto root = any();
  if (root && here_.kind != Token::Kind::end) return unexpected_here("an operator or the end");
  return root;
}

Parsed Parser::joined(std::string_view word, Expr::Kind kind, Level stronger) {
  auto first = (this->*stronger)();
  if (!first || !here_.is_word(word)) return first;
  Expr chain{.kind = kind, .offset = first->offset};
  chain.operands.push_back(std::move(*first));
  while (here_.is_word(word)) {
    if (const auto next = advance(); !next) return Mistake{next.error()};
    auto operand = (this->*stronger)();
    if (!operand) return operand;
    chain.operands.push_back(std::move(*operand));
  }
  return chain;
}

std::optional<Operator> Parser::operator_here(std::span<const Operator> wanted) const {
  const auto is_here = [&](Operator each) { return here_.is_sign(operator_words[static_cast<std::size_t>(each)]); };
  const auto found = std::ranges::find_if(wanted, is_here);
  return found == wanted.end() ? std::nullopt : std::optional{*found};
}

Parsed Parser::chained(std::span<const Operator> wanted, Level stronger) {
  auto first = (this->*stronger)();
  if (!first || !operator_here(wanted)) return first;
  Expr chain{.kind = Expr::Kind::chain, .offset = first->offset};
  chain.operands.push_back(std::move(*first));
  while (const auto found = operator_here(wanted)) {
    if (const auto next = advance(); !next) return Mistake{next.error()};
    auto operand = (this->*stronger)();
    if (!operand) return operand;
    chain.operators.push_back(*found);
    chain.operands.push_back(std::move(*operand));
  }
  return chain;
}

// One level deeper: what stands behind `not` or a minus, or inside brackets.
Parsed Parser::nested(Level level) {
  if (depth_ == nesting_max) {
    return Mistake{{here_.offset, "nested deeper than " + std::to_string(nesting_max) + " levels"}};
  }
  ++depth_;
  auto inner = (this->*level)();
  --depth_;
  return inner;
}

Parsed Parser::prefixed(Expr::Kind kind, std::size_t offset, Level operand) {
  auto inner = nested(operand);
  if (!inner) return inner;
  Expr prefix{.kind = kind, .offset = offset};
  prefix.operands.push_back(std::move(*inner));
  return prefix;
}

Parsed Parser::any() { return joined("or", Expr::Kind::any, &Parser::all); }
Parsed Parser::all() { return joined("and", Expr::Kind::all, &Parser::inverted); }
Parsed Parser::inverted() {
  if (!here_.is_word("not")) return compared();
  const std::size_t offset = here_.offset;
  if (const auto next = advance(); !next) return Mistake{next.error()};
  return prefixed(Expr::Kind::invert, offset, &Parser::inverted);
}

Parsed Parser::compared() {
  auto left = sum();
  const auto found = operator_here(comparisons);
  if (!left || !found) return left;
  if (const auto next = advance(); !next) return Mistake{next.error()};
  auto right = sum();
  if (!right) return right;
  if (operator_here(comparisons)) {
    return Mistake{{here_.offset, "comparisons cannot be strung together", "write a < b and b < c"}};
  }
  Expr comparison{.kind = Expr::Kind::compare, .offset = left->offset};
  comparison.operators.push_back(*found);
  comparison.operands.push_back(std::move(*left));
  comparison.operands.push_back(std::move(*right));
  return comparison;
}

Parsed Parser::sum() { return chained(sums, &Parser::product); }
Parsed Parser::product() { return chained(products, &Parser::signed_value); }

Parsed Parser::signed_value() {
  if (!here_.is_sign("-")) return primary();
  const std::size_t minus = here_.offset;
  if (const auto next = advance(); !next) return Mistake{next.error()};
  // Read as a whole, because the smallest number has no positive counterpart.
  if (here_.kind == Token::Kind::number) return number("-" + here_.text, minus);
  return prefixed(Expr::Kind::negate, minus, &Parser::signed_value);
}

Parsed Parser::primary() {
  switch (here_.kind) {
    case Token::Kind::number:
      return number(here_.text, here_.offset);
    case Token::Kind::name:
      return name();
    case Token::Kind::text:
      return literal(Json(here_.text));
    default:
      break;
  }
  if (!here_.is_sign("(")) return unexpected_here("a path, a value or a function");
  if (const auto next = advance(); !next) return Mistake{next.error()};
  auto inner = nested(&Parser::any);
  if (!inner) return inner;
  if (const auto closed = expect(")", "to close the parenthesis"); !closed) return Mistake{closed.error()};
  return with_accessors(std::move(*inner));
}

Parsed Parser::literal(Json value) {
  Expr literal{.offset = here_.offset, .value = std::move(value)};
  if (const auto next = advance(); !next) return Mistake{next.error()};
  return literal;
}

Parsed Parser::number(const std::string& digits, std::size_t offset) {
  const char* const end = digits.data() + digits.size();
  Json value;
  if (digits.find_first_of(".eE") == std::string::npos) {
    std::int64_t whole = 0;
    if (std::from_chars(digits.data(), end, whole).ec != std::errc{}) {
      return Mistake{
          {offset, "this number does not fit into 64 bits", "with .0 behind it, it is an approximate number"}};
    }
    value = whole;
  } else {
    double real = 0;
    if (std::from_chars(digits.data(), end, real).ec != std::errc{}) {
      return Mistake{{offset, "this number is too large or too small"}};
    }
    value = json::number_in(digits).value_or(Json(real));
  }
  auto parsed = literal(std::move(value));
  if (parsed) parsed->offset = offset;
  return parsed;
}

Parsed Parser::name() {
  if (here_.text == "true") return literal(Json(true));
  if (here_.text == "false") return literal(Json(false));
  if (here_.text == "null") return literal(Json(nullptr));
  if (here_.text == "and" || here_.text == "or" || here_.text == "not") {
    return unexpected_here("a path, a value or a function");
  }
  Token first = std::move(here_);
  if (const auto next = advance(); !next) return Mistake{next.error()};
  return here_.is_sign("(") ? call(first) : path(std::move(first));
}

Parsed Parser::path(Token first) {
  Expr path{.kind = Expr::Kind::path, .offset = first.offset};
  path.names.push_back(std::move(first.text));
  auto whole = with_accessors(std::move(path));
  if (!whole || whole->names.size() > 1 || !whole->operands.empty()) return whole;
  const std::string_view ours = help_for(foreign_literals, whole->names[0]);
  if (ours.empty()) return whole;
  return Mistake{{whole->offset, "`" + whole->names[0] + "` is no value here", "write " + std::string{ours}}};
}

std::unexpected<ExpressionMistake> unknown_function(const Token& function) {
  std::string help{help_for(foreign_functions, text::lowered(function.text))};
  if (help.empty()) {
    const std::string_view near = text::nearest(function.text, function_names);
    help = near.empty() ? "there are length(), contains(), default(), json() and words()"
                        : "did you mean " + std::string{near} + "()?";
  }
  return Mistake{
      {function.offset, "there is no function `" + text::safe_to_show(function.text) + "`", std::move(help)}};
}

Parsed Parser::call(const Token& function) {
  const auto* const found = std::ranges::find(function_names, function.text);
  if (found == function_names.end()) return unknown_function(function);
  const auto number = static_cast<std::size_t>(found - function_names.begin());
  Expr call{.kind = Expr::Kind::call, .function = static_cast<Function>(number), .offset = function.offset};
  do {
    if (const auto next = advance(); !next) return Mistake{next.error()};
    if (call.operands.empty() && here_.is_sign(")")) break;
    auto argument = nested(&Parser::any);
    if (!argument) return argument;
    call.operands.push_back(std::move(*argument));
  } while (here_.is_sign(","));
  const std::size_t wanted = function_arities[number];
  if (const auto closed = expect(")", "to close " + function.text + "("); !closed) return Mistake{closed.error()};
  if (call.operands.size() != wanted) {
    return Mistake{{function.offset, function.text + "() takes " + std::to_string(wanted) +
                                         (wanted == 1 ? " argument" : " arguments") + ", not " +
                                         std::to_string(call.operands.size())}};
  }
  return with_accessors(std::move(call));
}

Parsed Parser::with_accessors(Expr base) {
  while (here_.is_sign(".") || here_.is_sign("[")) {
    if (base.kind != Expr::Kind::path && base.kind != Expr::Kind::access) {
      Expr access{.kind = Expr::Kind::access, .offset = base.offset};
      access.operands.push_back(std::move(base));
      base = std::move(access);
    }
    const auto added = here_.is_sign(".") ? add_member(base) : add_index(base);
    if (!added) return Mistake{added.error()};
  }
  return base;
}

// Names that are known now and stand before everything that is computed belong to the path itself: the scope may look at them.
void add_key(Expr& base, Expr key) {
  if (base.kind == Expr::Kind::path && base.operands.empty() && key.kind == Expr::Kind::literal &&
      key.value.is_string()) {
    base.names.emplace_back(std::string_view{key.value.get_string()});
  } else {
    base.operands.push_back(std::move(key));
  }
}

std::expected<void, ExpressionMistake> Parser::add_member(Expr& base) {
  if (const auto next = advance(); !next) return next;
  if (here_.kind == Token::Kind::number) {
    return Mistake{
        {here_.offset, "expected a name behind the dot, found a number", "an element is written [0], not .0"}};
  }
  if (here_.kind != Token::Kind::name) return unexpected_here("a name behind the dot");
  const Token member = std::move(here_);
  if (const auto next = advance(); !next) return next;
  if (here_.is_sign("(")) {
    return Mistake{{member.offset, "values have no functions of their own",
                    "the value is the first argument: length(path), contains(path, element)"}};
  }
  add_key(base, {.offset = member.offset, .value = Json(member.text)});
  return {};
}

std::expected<void, ExpressionMistake> Parser::add_index(Expr& base) {
  if (const auto next = advance(); !next) return next;
  if (here_.is_sign("*") || here_.is_sign("]")) {
    return Mistake{{here_.offset, "expected an index or a name in quotes, found " + shown(here_),
                    "a selection of several elements is a JSONPath; for_each has one: { file: …, path: … }"}};
  }
  auto key = nested(&Parser::any);
  if (!key) return Mistake{key.error()};
  if (const auto closed = expect("]", "to close the bracket"); !closed) return closed;
  add_key(base, std::move(*key));
  return {};
}

void collect(const Expr& expr, bool has_default, std::vector<Reference>& references) {
  if (expr.kind == Expr::Kind::path) references.push_back({expr.names, expr.offset, has_default});
  const bool is_default = expr.kind == Expr::Kind::call && expr.function == Function::default_value;
  for (std::size_t index = 0; index < expr.operands.size(); ++index) {
    collect(expr.operands[index], has_default || (is_default && index == 0), references);
  }
}

}  // namespace
}  // namespace detail

std::expected<Expression, ExpressionMistake> parse_expression(std::string_view text) {
  if (text.size() > detail::expression_bytes_max) {
    return std::unexpected{ExpressionMistake{0, "an expression has at most 64 KiB"}};
  }
  auto root = detail::Parser{text}.whole();
  if (!root) return std::unexpected{std::move(root.error())};
  Expression expression;
  expression.text_ = text;
  expression.root_ = std::make_shared<const detail::Expr>(std::move(*root));
  return expression;
}

bool Expression::gives_words() const noexcept {
  return root_ != nullptr && root_->kind == detail::Expr::Kind::call && root_->function == detail::Function::words;
}

std::vector<Reference> Expression::references() const {
  std::vector<Reference> references;
  if (root_ != nullptr) detail::collect(*root_, false, references);
  return references;
}

}  // namespace reprise::flow
