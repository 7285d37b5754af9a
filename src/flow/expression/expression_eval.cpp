// Computes expressions: exact whole numbers, errors in words, and no copy of a large value before it is the result.
#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <optional>
#include <utility>

#include "flow/expression/expression.hpp"
#include "flow/expression/expression_tree.hpp"
#include "json/json_number.hpp"
#include "text/nearest.hpp"
#include "text/utf8.hpp"

namespace reprise::flow {
namespace detail {
namespace {

constexpr std::size_t members_named_max = 6;
constexpr std::size_t name_bytes_shown_max = 80;

struct EvaluationError {
  std::string sentence;
  bool is_missing = false;  // default() helps against it
};
using Failed = std::unexpected<EvaluationError>;

// Borrowed from the scope or computed; a part of a computed value keeps the whole.
using Value = std::shared_ptr<const Json>;
using Computed = std::expected<Value, EvaluationError>;

Value borrowed(const Json& value) { return {Value{}, &value}; }
Value owned(Json value) { return std::make_shared<const Json>(std::move(value)); }

Computed evaluate(const Expr& expr, const Scope& scope);

std::string_view type_words(const Json& value) {
  if (json::is_number(value)) return "a number";
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "a boolean";
    case boost::json::kind::string:
      return "text";
    case boost::json::kind::array:
      return "a list";
    default:
      return "a map";
  }
}

std::string quoted(std::string_view name) {
  const bool is_long = name.size() > name_bytes_shown_max;
  return '"' + text::safe_to_show(name.substr(0, name_bytes_shown_max)) + (is_long ? "…\"" : "\"");
}

// ---- numbers -----------------------------------------------------------------------------------------------------------------

struct Number {
  bool is_whole = false;
  std::int64_t whole = 0;
  double real = 0;  // also of whole numbers
};

std::optional<Number> number_of(const Json& spelled) {
  if (!json::is_number(spelled)) return std::nullopt;
  const Json value = json::computable(spelled);
  if (value.is_int64()) return Number{true, value.get_int64(), static_cast<double>(value.get_int64())};
  if (value.is_double()) return Number{false, 0, value.get_double()};
  const std::uint64_t large = value.get_uint64();
  const bool fits = std::in_range<std::int64_t>(large);
  return Number{fits, fits ? static_cast<std::int64_t>(large) : 0, static_cast<double>(large)};
}

// nullopt: the result does not fit into 64 bits.
std::optional<std::int64_t> whole_result(Operator op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Operator::add:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case Operator::subtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case Operator::multiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case Operator::divide:
      overflows = __builtin_mul_overflow(right == -1 ? left : 0, -1, &result);
      if (right != -1) result = left / right;
      break;
    default:
      result =
          right == -1 ? 0 : left % right;  // the smallest number has no remainder by -1 that a processor could compute
      break;
  }
  return overflows ? std::nullopt : std::optional{result};
}

double real_result(Operator op, double left, double right) {
  switch (op) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::divide:
      return left / right;
    default:
      return std::fmod(left, right);
  }
}

std::expected<Json, EvaluationError> calculated(Operator op, const Json& left, const Json& right) {
  const std::string word{operator_words[static_cast<std::size_t>(op)]};
  const auto a = number_of(left);
  const auto b = number_of(right);
  if (!a || !b) {
    return Failed{{"`" + word + "` needs " + (op == Operator::add ? "two numbers or two texts" : "two numbers") +
                   ", not " + std::string{type_words(left)} + " and " + std::string{type_words(right)}}};
  }
  const std::string spelled = json::to_text(left) + " " + word + " " + json::to_text(right);
  const bool divides = op == Operator::divide || op == Operator::remainder;
  if (divides && b->real == 0) return Failed{{spelled + " is a division by zero"}};
  const bool stays_whole =
      a->is_whole && b->is_whole && (op != Operator::divide || b->whole == -1 || a->whole % b->whole == 0);
  if (stays_whole) {
    if (const auto result = whole_result(op, a->whole, b->whole)) return Json(*result);
    return Failed{{spelled + " does not fit into 64 bits"}};
  }
  const double result = real_result(op, a->real, b->real);
  if (!std::isfinite(result)) return Failed{{spelled + " is too large for a number"}};
  return Json(result);
}

// ---- operators ---------------------------------------------------------------------------------------------------------------

// Texts grow in one place: a long sum of texts costs its length, not its square.
Computed add_texts(const Expr& expr, std::size_t& index, std::string text, const Scope& scope) {
  for (; index < expr.operators.size(); ++index) {
    auto right = evaluate(expr.operands[index + 1], scope);
    if (!right) return right;
    if (expr.operators[index] != Operator::add || !(*right)->is_string()) {
      return Failed{calculated(expr.operators[index], Json(""), **right).error()};
    }
    const auto& added = (*right)->get_string();
    if (text.size() + added.size() > result_bytes_max) return Failed{{"the text would be longer than 16 MiB"}};
    text.append(added.data(), added.size());
  }
  return owned(Json(text));
}

Computed chain(const Expr& expr, const Scope& scope) {
  auto left = evaluate(expr.operands[0], scope);
  if (!left) return left;
  for (std::size_t index = 0; index < expr.operators.size(); ++index) {
    if (expr.operators[index] == Operator::add && (*left)->is_string()) {
      return add_texts(expr, index, std::string{std::string_view{(*left)->get_string()}}, scope);
    }
    const auto right = evaluate(expr.operands[index + 1], scope);
    if (!right) return right;
    auto result = calculated(expr.operators[index], **left, **right);
    if (!result) return Failed{std::move(result.error())};
    left = owned(std::move(*result));
  }
  return left;
}

bool is_as_asked(Operator op, std::partial_ordering order) {
  switch (op) {
    case Operator::less:
      return order < 0;
    case Operator::less_equal:
      return order <= 0;
    case Operator::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Computed compare(const Expr& expr, const Scope& scope) {
  const auto left = evaluate(expr.operands[0], scope);
  if (!left) return left;
  const auto right = evaluate(expr.operands[1], scope);
  if (!right) return right;
  const Operator op = expr.operators[0];
  const Json& a = **left;
  const Json& b = **right;
  if (op == Operator::equal || op == Operator::unequal)
    return owned(Json(json::equal(a, b) == (op == Operator::equal)));
  if (json::is_number(a) && json::is_number(b)) return owned(Json(is_as_asked(op, json::compare_numbers(a, b))));
  if (a.is_string() && b.is_string()) {
    const auto order = std::string_view{a.get_string()} <=> std::string_view{b.get_string()};
    return owned(Json(is_as_asked(op, order)));
  }
  return Failed{{"`" + std::string{operator_words[static_cast<std::size_t>(op)]} +
                 "` compares two numbers or two texts, not " + std::string{type_words(a)} + " and " +
                 std::string{type_words(b)}}};
}

// `and` ends at the first that is not true, `or` at the first that is.
Computed combine(const Expr& expr, const Scope& scope) {
  const bool decides = expr.kind == Expr::Kind::any;
  for (const Expr& operand : expr.operands) {
    const auto value = evaluate(operand, scope);
    if (!value) return value;
    if (is_true(**value) == decides) return owned(Json(decides));
  }
  return owned(Json(!decides));
}

Computed negate(const Expr& expr, const Scope& scope) {
  const auto value = evaluate(expr.operands[0], scope);
  if (!value) return value;
  const auto number = number_of(**value);
  if (!number) return Failed{{"`-` needs a number, not " + std::string{type_words(**value)}}};
  if (!number->is_whole) return owned(Json(-number->real));  // 0 - 0.0 has the wrong sign
  auto result = calculated(Operator::subtract, Json(0), **value);
  if (!result) return Failed{std::move(result.error())};
  return owned(std::move(*result));
}

// ---- looking into values -----------------------------------------------------------------------------------------------------

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.find_first_of(" '\"[].") == std::string_view::npos;
}

void spell_key(std::string& out, const Json& key) {
  if (!key.is_string()) {
    out += "[" + json::to_text(key) + "]";
  } else if (const std::string_view name{key.get_string()}; !is_plain_name(name)) {
    out += "[" + quoted(name) + "]";
  } else {
    out += (out.empty() ? "" : ".") + text::safe_to_show(name.substr(0, name_bytes_shown_max));
  }
}

// `(it has "rows" and "total")`, or the one that was probably meant.
std::string members_in_words(const boost::json::object& map, std::string_view wanted) {
  if (map.empty()) return " (it is empty)";
  std::vector<std::string_view> names;
  for (const auto& member : map) {
    if (names.size() < 1000) names.emplace_back(member.key());  // enough to find a slip of the pen
  }
  if (const std::string_view near = text::nearest(wanted, names); !near.empty()) {
    return " (did you mean " + quoted(near) + "?)";
  }
  std::string words = " (it has ";
  const std::size_t named = std::min(map.size(), members_named_max);
  for (std::size_t index = 0; index < named; ++index) {
    const bool is_last = index + 1 == map.size();
    words += (index == 0 ? "" : is_last ? " and " : ", ") + quoted(names[index]);
  }
  return words + (named < map.size() ? " and " + std::to_string(map.size() - named) + " more)" : ")");
}

EvaluationError missing_member(const std::string& where, const Json& value, std::string_view name) {
  const std::string has_none = where + " has no member " + quoted(name);
  if (const auto* map = json::if_map(value)) return {has_none + members_in_words(*map, name), true};
  if (value.is_array()) return {has_none + ": it is a list; an element is written [0]", true};
  return {has_none + ": it is " + std::string{type_words(value)}, true};
}

// An index from the end is negative: -1 is the last.
std::expected<const Json*, EvaluationError> element(const std::string& where, const Json& value, const Json& key) {
  const auto index = number_of(key);
  if (!index || !index->is_whole) {
    return Failed{
        {where + "[…] needs a whole number or text, not " + std::string{index ? "a fraction" : type_words(key)}}};
  }
  const std::string number = std::to_string(index->whole);
  if (!value.is_array())
    return Failed{{where + " has no element " + number + ": it is " + std::string{type_words(value)}, true}};
  const auto& list = value.get_array();
  const auto size = static_cast<std::int64_t>(list.size());
  const std::int64_t place = index->whole < 0 ? index->whole + size : index->whole;
  if (place >= 0 && place < size) return &list[static_cast<std::size_t>(place)];
  return Failed{{where + " has no element " + number + " (it has " + std::to_string(size) + ")", true}};
}

// One step into a value; `where` is how an error calls it, and is asked for only then.
template <typename Where>
Computed look_up(const Value& value, const Json& key, const Where& where) {
  if (key.is_string()) {
    const std::string_view name{key.get_string()};
    const auto* const map = json::if_map(*value);
    const Json* const found = map != nullptr ? map->if_contains(name) : nullptr;
    if (found == nullptr) return Failed{missing_member(where(), *value, name)};
    return Value{value, found};
  }
  const auto found = element(where(), *value, key);
  if (!found) return Failed{found.error()};
  return Value{value, *found};
}

// The operands from `first` on are keys.
Computed look_into(Value value, std::string called, const Expr& expr, std::size_t first, const Scope& scope) {
  for (std::size_t index = first; index < expr.operands.size(); ++index) {
    const auto key = evaluate(expr.operands[index], scope);
    if (!key) return key;
    auto part = look_up(value, **key, [&] { return called; });
    if (!part) return part;
    value = std::move(*part);
    spell_key(called, **key);
  }
  return value;
}

Computed follow_path(const Expr& expr, const Scope& scope) {
  std::size_t used = 0;
  const auto known = scope.find(expr.names, used);
  if (!known) return Failed{{known.error(), true}};
  used = std::clamp<std::size_t>(used, 1, expr.names.size());
  const auto called = [&](std::size_t count) {
    std::string words;
    for (std::size_t index = 0; index < count; ++index) spell_key(words, Json(expr.names[index]));
    return words;
  };
  Value value = borrowed(**known);
  for (std::size_t index = used; index < expr.names.size(); ++index) {
    auto part = look_up(value, Json(expr.names[index]), [&] { return called(index); });
    if (!part) return part;
    value = std::move(*part);
  }
  return expr.operands.empty() ? value : look_into(std::move(value), called(expr.names.size()), expr, 0, scope);
}

Computed access(const Expr& expr, const Scope& scope) {
  auto base = evaluate(expr.operands[0], scope);
  if (!base) return base;
  const bool is_call = expr.operands[0].kind == Expr::Kind::call;
  std::string called =
      is_call ? std::string{function_names[static_cast<std::size_t>(expr.operands[0].function)]} + "(…)" : "(…)";
  return look_into(std::move(*base), std::move(called), expr, 1, scope);
}

// ---- functions ---------------------------------------------------------------------------------------------------------------

std::size_t characters_in(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(text::first_character(text).bytes, 1));
  return count;
}

Computed length(const Json& value) {
  std::size_t count = 0;
  if (value.is_string()) {
    count = characters_in(value.get_string());
  } else if (value.is_array()) {
    count = value.get_array().size();
  } else if (const auto* map = json::if_map(value)) {
    count = map->size();
  } else {
    return Failed{{"length() needs text, a list or a map, not " + std::string{type_words(value)}}};
  }
  return owned(Json(static_cast<std::int64_t>(count)));
}

Computed contains(const Json& whole, const Json& part) {
  if (whole.is_array()) {
    return owned(
        Json(std::ranges::any_of(whole.get_array(), [&](const Json& each) { return json::equal(each, part); })));
  }
  if (!whole.is_string() && !json::is_map(whole)) {
    return Failed{{"contains() looks into a list, a text or a map, not " + std::string{type_words(whole)}}};
  }
  if (!part.is_string()) {
    return Failed{{"contains() needs text to look for in " + std::string{type_words(whole)} + ", not " +
                   std::string{type_words(part)}}};
  }
  const std::string_view wanted{part.get_string()};
  if (whole.is_object()) return owned(Json(whole.get_object().contains(wanted)));
  return owned(Json(std::string_view{whole.get_string()}.find(wanted) != std::string_view::npos));
}

Computed json(const Json& value) {
  if (!value.is_string()) {
    return Failed{{"json() reads text, and this is " + std::string{type_words(value)} + " already"}};
  }
  auto parsed = json::parse_json(value.get_string());
  if (!parsed) return Failed{{"json() cannot read its text: " + parsed.error()}};
  return owned(std::move(*parsed));
}

// The list itself: whoever writes it into a command gives each element a word of its own (Expression::gives_words).
Computed words(const Json& value) {
  if (!value.is_array()) return Failed{{"words() needs a list, not " + std::string{type_words(value)}}};
  return owned(Json(value));
}

Computed call(const Expr& expr, const Scope& scope) {
  const auto first = evaluate(expr.operands[0], scope);
  if (expr.function == Function::default_value) {
    const bool is_absent = first ? (*first)->is_null() : first.error().is_missing;
    return is_absent ? evaluate(expr.operands[1], scope) : first;
  }
  if (!first) return first;
  if (expr.function == Function::length) return length(**first);
  if (expr.function == Function::json) return json(**first);
  if (expr.function == Function::words) return words(**first);
  const auto second = evaluate(expr.operands[1], scope);
  return second ? contains(**first, **second) : second;
}

Computed evaluate(const Expr& expr, const Scope& scope) {
  switch (expr.kind) {
    case Expr::Kind::literal:
      return borrowed(expr.value);
    case Expr::Kind::path:
      return follow_path(expr, scope);
    case Expr::Kind::access:
      return access(expr, scope);
    case Expr::Kind::call:
      return call(expr, scope);
    case Expr::Kind::negate:
      return negate(expr, scope);
    case Expr::Kind::invert: {
      const auto value = evaluate(expr.operands[0], scope);
      return value ? owned(Json(!is_true(**value))) : value;
    }
    case Expr::Kind::any:
    case Expr::Kind::all:
      return combine(expr, scope);
    case Expr::Kind::compare:
      return compare(expr, scope);
    case Expr::Kind::chain:
      return chain(expr, scope);
  }
  return Failed{{"this expression is of an unknown kind"}};
}

}  // namespace
}  // namespace detail

std::expected<Json, std::string> Expression::evaluate(const Scope& scope) const {
  if (root_ == nullptr) return Json(nullptr);
  const auto value = detail::evaluate(*root_, scope);
  if (!value) return std::unexpected{value.error().sentence};
  return **value;
}

bool is_true(const Json& value) {
  if (json::is_number(value)) return !json::equal(value, Json(0));
  switch (value.kind()) {
    case boost::json::kind::null:
      return false;
    case boost::json::kind::bool_:
      return value.get_bool();
    case boost::json::kind::string:
      return !value.get_string().empty();
    case boost::json::kind::array:
      return !value.get_array().empty();
    default:
      return !value.get_object().empty();
  }
}

}  // namespace reprise::flow
