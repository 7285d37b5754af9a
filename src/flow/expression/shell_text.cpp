#include "flow/expression/shell_text.hpp"

#include <algorithm>

#include "flow/expression/expression.hpp"
#include "text/ascii.hpp"

namespace reprise::flow {
namespace {

using Place = ShellReader::Place;

constexpr std::string_view into_variable =
    "put it into a variable on a line before: value=${…}, and use \"$value\" here";

std::string escaped(std::string_view text, std::string_view specials) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (specials.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

std::string inside_single_quotes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, text::is_digit);
}

// A minus must not meet another one.
std::string in_arithmetic(const std::string& number) { return number.starts_with('-') ? "(" + number + ")" : number; }

template <typename Write>
std::string joined(const std::vector<std::string>& words, const Write& write) {
  std::string out;
  for (const std::string& word : words) {
    if (&word != &words.front()) out += ' ';
    out += write(word);
  }
  return out;
}

std::string written(const std::vector<std::string>& words, Place place) {
  return joined(words, [&](const std::string& word) -> std::string {
    switch (place) {
      case Place::command:
        return shell_quoted(word);
      case Place::single_quotes:
        return inside_single_quotes(word);
      case Place::double_quotes:
        return escaped(word, "\\$`\"");
      case Place::document:
        return escaped(word, "\\$`");
      case Place::comment:
        return on_one_line(word);
      case Place::arithmetic:
        return in_arithmetic(word);
      default:
        return word;
    }
  });
}

bool any_contains(const std::vector<std::string>& words, char c) {
  return std::ranges::any_of(words, [&](const std::string& word) { return word.find(c) != std::string::npos; });
}

// Empty: the value can be written here.
std::string refusal(const std::vector<std::string>& words, const ShellReader& reader) {
  const std::string remedy = "; " + std::string{into_variable};
  const Place place = reader.place();
  if (any_contains(words, '\0')) return "has a NUL character, which no command line can have";
  if (place == Place::lost) return "stands " + std::string{reader.lost_because()} + remedy;
  if (place == Place::escaped) return "stands behind a backslash; a literal ${ is written $${";
  if (reader.is_inside(Place::backquotes)) return "stands inside backquotes; write $(…) instead of them";
  if (reader.is_inside(Place::braces)) return "stands inside ${…} of the shell" + remedy;
  if (reader.is_inside(Place::arithmetic)) {
    const bool is_number = place == Place::arithmetic && words.size() == 1 && is_whole_number(words[0]);
    return is_number ? "" : "stands inside $((…)), where only one whole number can stand";
  }
  if (place == Place::command && words.size() > 1 && reader.is_assignment()) {
    return "is a list, and a variable takes one value; write \"${…}\" to join its elements by blanks";
  }
  const bool in_document = reader.is_inside(Place::document) || reader.is_inside(Place::plain_document);
  const bool is_at_end = place == Place::document || place == Place::plain_document;
  if (in_document && !is_at_end && any_contains(words, '\n')) {
    return "has several lines, and stands in a substitution inside a here-document" + remedy;
  }
  return {};
}

}  // namespace

std::string shell_quoted(std::string_view text) { return "'" + inside_single_quotes(text) + "'"; }

void ShellText::add_literal(std::string_view text) {
  text_ += text;
  reader_.read(text);
}

std::expected<void, std::string> ShellText::add_words(const std::vector<std::string>& words) {
  if (std::string why = refusal(words, reader_); !why.empty()) return std::unexpected{std::move(why)};
  const std::string value = written(words, reader_.place());
  reader_.pass_value(value);
  // Passing a value loses the reader in one case only: a line of it would end the here-document it stands in.
  if (reader_.place() == Place::lost) return std::unexpected{"stands " + std::string{reader_.lost_because()}};
  text_ += value;
  return {};
}

}  // namespace reprise::flow
