// Expressions in flow documents, ${…}: paths, literals, comparison, and/or/not, arithmetic, length() contains() default() json().
//
//   auto text = flow::parse_template("./list.sh ${params.date}");
//   text->render(scope, flow::Quoting::shell);               // ./list.sh '2026-11-16'
//
// Total and bounded: evaluation has no side effects, ends, and cannot run out of stack, whatever was written. Grammar, from weak to strong:
// `or`, `and`, `not`, comparison (== != < <= > >=), + -, * / %, unary -, then a path, a literal (numbers, 'text', "text", true, false,
// null), a call, or parentheses. A path is name(.name | [index] | ['name'])*; an index may be computed, and -1 is the last element.
// In a name `-` may stand before a letter (fetch-data); a minus between two names needs blanks. `$${` is a literal `${`.
// Bounds: an expression has 64 KiB and 64 levels of nesting, a text with expressions 1 MiB, what it becomes 16 MiB.
// Thread safety: immutable once parsed.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"

namespace reprise::flow {

using json::Json;

// What is wrong with the text, and where in it.
struct ExpressionMistake {
  std::size_t offset = 0;  // in bytes, from the start of the text that was parsed
  std::string message;
  std::string help = {};  // may be empty
};

// What an expression can see while it is evaluated.
class Scope {
 public:
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  virtual ~Scope() = default;

  // The value of the longest beginning of `path` that the scope knows itself; `used` says how many of its parts that are (at least 1).
  // The evaluator looks up the rest in the value. The error is a sentence: `there is no parameter "dat"`.
  // The value must live as long as the scope.
  virtual std::expected<const Json*, std::string> find(std::span<const std::string> path, std::size_t& used) const = 0;
};

// A path somewhere in an expression. Only its leading names: what stands behind an index or a computed member is not in it.
struct Reference {
  std::vector<std::string> path;
  std::size_t offset = 0;    // in the text that was parsed
  bool has_default = false;  // it is an argument of default(): nothing is wrong when it is missing at run time
};

namespace detail {
struct Expr;
}

class Expression {
 public:
  // The error is a sentence about the values: `steps.list.output has no member "items" (it has "rows")`.
  std::expected<Json, std::string> evaluate(const Scope& scope) const;
  std::vector<Reference> references() const;
  bool gives_words() const noexcept;  // it is words(…): a command gets one word for each element
  const std::string& text() const noexcept { return text_; }

 private:
  friend std::expected<Expression, ExpressionMistake> parse_expression(std::string_view text);
  std::string text_;
  std::shared_ptr<const detail::Expr> root_;
};

// What stands between ${ and }.
std::expected<Expression, ExpressionMistake> parse_expression(std::string_view text);

enum class Quoting : unsigned char {
  none,         // the plain text of each value
  shell,        // each value as one quoted word of sh, lists and maps as JSON; words(list) as several
  spread,       // the same, and every list as several words: the rule of runs that were begun before 0.2
  interpreter,  // each value as JSON, which is a literal of most languages
  url,          // each value stays in its place in an URL, or the text is refused: url_text.hpp
};

// Text with expressions in it.
class Template {
 public:
  Template() = default;
  explicit Template(std::string literal);  // no expression, whatever it contains

  bool is_literal() const noexcept { return parts_.size() <= 1 && (parts_.empty() || !parts_.front().expression); }
  // "${item}" and nothing around it: its value need not be text.
  bool is_single_expression() const noexcept { return parts_.size() == 1 && parts_.front().expression.has_value(); }
  // "${words(…)}" and nothing around it: several arguments.
  bool gives_words() const noexcept { return is_single_expression() && parts_.front().expression->gives_words(); }

  std::expected<std::string, std::string> render(const Scope& scope, Quoting quoting) const;
  // The value itself when it is a single expression, otherwise text.
  std::expected<Json, std::string> evaluate(const Scope& scope) const;
  std::vector<Reference> references() const;  // offsets in the whole text
  const std::string& text() const noexcept { return text_; }

 private:
  friend std::expected<Template, ExpressionMistake> parse_template(std::string_view text);
  struct Part {
    std::string literal = {};
    std::optional<Expression> expression = {};
    std::size_t offset = 0;
  };
  std::string text_;
  std::vector<Part> parts_;
};

std::expected<Template, ExpressionMistake> parse_template(std::string_view text);

// Is this value true for `if`? false, null, 0, "" and empty lists and maps are not.
bool is_true(const Json& value);

// One word of sh that means exactly this text.
std::string shell_quoted(std::string_view text);

}  // namespace reprise::flow
