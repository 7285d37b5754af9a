// Text with expressions in it: taken apart, and put together again for people, for sh and for URLs.
#include <algorithm>
#include <utility>

#include "flow/expression/expression.hpp"
#include "flow/expression/expression_tokens.hpp"
#include "flow/expression/expression_tree.hpp"
#include "flow/expression/shell_text.hpp"
#include "flow/expression/url_text.hpp"

namespace reprise::flow {
namespace {

using Mistake = std::unexpected<ExpressionMistake>;

constexpr std::string_view opening = "${";
constexpr std::string_view escaped_opening = "$${";

// The place of the } that ends an expression; quoted text may hold others.
std::expected<std::size_t, ExpressionMistake> end_of_expression(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin; at < text.size();) {
    if (text[at] == '}') return at;
    const bool is_quote = text[at] == '\'' || text[at] == '"';
    const std::size_t bytes = is_quote ? detail::quoted_bytes(text.substr(at)) : 1;
    if (bytes == std::string_view::npos) {
      return Mistake{
          {at, std::string{"this text has no closing "} + text[at], "a quote inside the text is written \\' or \\\""}};
    }
    at += bytes;
  }
  return Mistake{{begin - opening.size(), "this ${ has no closing }", "a literal ${ is written $${"}};
}

std::unexpected<ExpressionMistake> at_place(ExpressionMistake mistake, std::size_t begin) {
  mistake.offset += begin;
  if (mistake.help.empty()) mistake.help = "a ${ that is meant for the shell is written $${";
  return std::unexpected{std::move(mistake)};
}

enum class Lists : bool { whole, as_words };

std::vector<std::string> words_of(const Json& value, Lists lists) {
  if (!value.is_array() || lists == Lists::whole) return {json::to_plain(value)};
  std::vector<std::string> words;
  for (const Json& element : value.get_array()) words.push_back(json::to_plain(element));
  return words;
}

// One rendering: how literal text and values are added depends on the quoting alone.
class Renderer {
 public:
  explicit Renderer(Quoting quoting) : quoting_{quoting} {}

  void add_literal(std::string_view text) {
    switch (quoting_) {
      case Quoting::shell:
      case Quoting::spread:
        return shell_.add_literal(text);
      case Quoting::url:
        return url_.add_literal(text);
      case Quoting::interpreter:
      case Quoting::none:
        plain_ += text;
    }
  }

  // `following` is the literal text behind the value; $ stands for another value, empty is the end.
  std::expected<void, std::string> add_value(const Json& value, const Expression& source, std::string_view following) {
    if (is_shell()) {
      const bool spreads = quoting_ == Quoting::spread || source.gives_words();
      const auto added = shell_.add_words(words_of(value, spreads ? Lists::as_words : Lists::whole));
      if (!added) return std::unexpected{"${" + source.text() + "} " + added.error()};
    } else if (quoting_ == Quoting::url) {
      if (auto added = url_.add_value(json::to_plain(value), source.text(), following); !added) return added;
    } else if (quoting_ == Quoting::interpreter) {
      plain_ += json::to_text(value);
    } else {
      plain_ += json::to_plain(value);
    }
    if (text().size() > detail::result_bytes_max) return std::unexpected{"the text would be longer than 16 MiB"};
    return {};
  }

  std::expected<std::string, std::string> finish() const {
    if (quoting_ == Quoting::url) {
      if (auto checked = url_.check(); !checked) return std::unexpected{std::move(checked.error())};
    }
    return text();
  }

 private:
  const std::string& text() const noexcept {
    if (is_shell()) return shell_.text();
    return quoting_ == Quoting::url ? url_.text() : plain_;
  }
  bool is_shell() const noexcept { return quoting_ == Quoting::shell || quoting_ == Quoting::spread; }

  Quoting quoting_;
  std::string plain_;
  ShellText shell_;
  UrlText url_;
};

}  // namespace

Template::Template(std::string literal) : text_{std::move(literal)} {
  if (!text_.empty()) parts_.push_back({.literal = text_});
}

std::expected<Template, ExpressionMistake> parse_template(std::string_view text) {
  if (text.size() > detail::template_bytes_max) return Mistake{{0, "a text with expressions has at most 1 MiB"}};
  Template result;
  result.text_ = text;
  std::string literal;
  const auto end_literal = [&] {
    if (!literal.empty()) result.parts_.push_back({.literal = std::exchange(literal, {})});
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(escaped_opening)) {
      literal += opening;
      at += escaped_opening.size();
    } else if (rest.starts_with("${{")) {
      return Mistake{{at, "`${{` means nothing here", "write ${…} with single braces"}};
    } else if (rest.starts_with(opening)) {
      const std::size_t begin = at + opening.size();
      const auto end = end_of_expression(text, begin);
      if (!end) return Mistake{end.error()};
      auto expression = parse_expression(text.substr(begin, *end - begin));
      if (!expression) return at_place(std::move(expression.error()), begin);
      end_literal();
      result.parts_.push_back({.expression = std::move(*expression), .offset = begin});
      at = *end + 1;
    } else {
      literal += text[at++];
    }
  }
  end_literal();
  return result;
}

std::expected<std::string, std::string> Template::render(const Scope& scope, Quoting quoting) const {
  Renderer renderer{quoting};
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const Part& part = parts_[index];
    if (!part.expression) {
      renderer.add_literal(part.literal);
      continue;
    }
    const auto value = part.expression->evaluate(scope);
    if (!value) return std::unexpected{value.error()};
    const bool is_last = index + 1 == parts_.size();
    const std::string_view following = is_last                        ? std::string_view{}
                                       : parts_[index + 1].expression ? std::string_view{"$"}
                                                                      : parts_[index + 1].literal;
    if (auto added = renderer.add_value(*value, *part.expression, following); !added) {
      return std::unexpected{std::move(added.error())};
    }
  }
  return renderer.finish();
}

std::expected<Json, std::string> Template::evaluate(const Scope& scope) const {
  if (is_single_expression()) return parts_.front().expression->evaluate(scope);
  auto text = render(scope, Quoting::none);
  if (!text) return std::unexpected{std::move(text.error())};
  return Json(*text);
}

std::vector<Reference> Template::references() const {
  std::vector<Reference> all;
  for (const Part& part : parts_) {
    if (!part.expression) continue;
    for (Reference& reference : part.expression->references()) {
      reference.offset += part.offset;
      all.push_back(std::move(reference));
    }
  }
  return all;
}

}  // namespace reprise::flow
