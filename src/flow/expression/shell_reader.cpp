#include "flow/expression/shell_reader.hpp"

#include <algorithm>

namespace reprise::flow {
namespace {

constexpr std::size_t frames_max = 64;
constexpr std::size_t documents_max = 16;
constexpr std::size_t word_bytes_max = 256;  // more of a word is never looked at
constexpr std::string_view word_ends = " \t\n;&|<>()";

bool is_name_character(char c) noexcept {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

ShellReader::Place ShellReader::place() const noexcept {
  if (!lost_.empty()) return Place::lost;
  return is_escaped_ ? Place::escaped : frames_.back().place;
}

bool ShellReader::is_inside(Place place) const noexcept {
  return std::ranges::find(frames_, place, &Frame::place) != frames_.end();
}

bool ShellReader::is_assignment() const noexcept {
  const std::string& word = frames_.back().word;
  const std::size_t sign = word.find('=');
  return sign != std::string::npos && sign > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(sign), is_name_character);
}

void ShellReader::read(std::string_view text) {
  rest_ = text;
  while (!rest_.empty() && lost_.empty()) step();
}

void ShellReader::pass_value(std::string_view written) {
  const Place here = place();
  if (here == Place::command) {
    add_to_word(written.empty() ? "" : "'");
  } else if (here == Place::document || here == Place::plain_document) {
    line_has_value_ = true;
    for (const char c : written) {
      if (c != '\n') {
        line_ += c;
      } else {
        end_document_line();
        line_has_value_ = true;
      }
    }
  }
}

void ShellReader::step() {
  const Place here = frames_.back().place;
  const bool in_document = here == Place::document || here == Place::plain_document;
  if (rest_.front() == '\n' && !in_document && (is_inside(Place::document) || is_inside(Place::plain_document))) {
    return lose("behind a here-document in which a substitution goes over several lines");
  }
  if (rest_.front() == '\n' && !in_document && here != Place::command && here != Place::comment &&
      !documents_.empty()) {
    return lose("behind a line that begins a here-document and ends inside quotes or brackets");
  }
  switch (here) {
    case Place::command:
      return step_in_command();
    case Place::comment:
      return rest_.front() == '\n' ? pop() : skip(1);
    case Place::braces:
      return step_in_braces();
    case Place::arithmetic:
      return step_in_arithmetic();
    case Place::document:
    case Place::plain_document:
      return step_in_document();
    default:
      return step_in_quotes();
  }
}

void ShellReader::step_in_command() {
  const char c = rest_.front();
  switch (c) {
    case '\\':
      if (!rest_.starts_with("\\\n")) add_to_word("\\");
      return skip_escape();
    case '\'':
      return push(Place::single_quotes, 1);
    case '"':
      return push(Place::double_quotes, 1);
    case '`':
      return push(Place::backquotes, 1);
    case '$':
      return read_dollar();
    case '#':
      if (frames_.back().word.empty()) return push(Place::comment, 1);
      return skip(1);
    case '(':
      if (rest_.starts_with("((")) return lose("behind ((, which shells read differently");
      end_word();
      return push(Place::command, 1);
    case ')':
      end_word();
      if (frames_.size() > 1 && !documents_.empty()) return lose("behind a here-document whose text is missing");
      if (frames_.size() > 1) pop();  // otherwise the end of a pattern of `case`
      return skip(1);
    case '<':
      if (rest_.starts_with("<<") && !rest_.starts_with("<<<")) return read_delimiter();
      end_word();
      return skip(rest_.starts_with("<<<") ? 3 : 1);
    case '\n':
      return end_command_line();
    default:
      if (word_ends.contains(c)) {
        end_word();
      } else {
        add_to_word(rest_.substr(0, 1));
      }
      return skip(1);
  }
}

void ShellReader::step_in_quotes() {
  const char c = rest_.front();
  const Place here = frames_.back().place;
  const char closing = here == Place::single_quotes ? '\'' : here == Place::double_quotes ? '"' : '`';
  if (c == closing) {
    pop();
    return skip(1);
  }
  if (c == '\\' && here != Place::single_quotes) return skip_escape();
  if (here == Place::double_quotes && c == '`') return push(Place::backquotes, 1);
  if (here == Place::double_quotes && c == '$') return read_dollar();
  skip(1);
}

void ShellReader::step_in_braces() {
  switch (rest_.front()) {
    case '}':
      pop();
      return skip(1);
    case '\\':
      return skip_escape();
    case '\'':
      if (frames_.back().is_quoted) return lose("behind quotes in \"${…}\", which shells read differently");
      return push(Place::single_quotes, 1);
    case '"':
      if (frames_.back().is_quoted) return lose("behind quotes in \"${…}\", which shells read differently");
      return push(Place::double_quotes, 1);
    case '`':
      return push(Place::backquotes, 1);
    case '$':
      return read_dollar();
    default:
      return skip(1);
  }
}

void ShellReader::step_in_arithmetic() {
  Frame& here = frames_.back();
  switch (rest_.front()) {
    case '(':
      ++here.parentheses;
      return skip(1);
    case ')':
      if (here.parentheses > 0) {
        --here.parentheses;
        return skip(1);
      }
      if (!rest_.starts_with("))")) return lose("behind $((, which does not end with ))");
      pop();
      return skip(2);
    case '\'':
    case '"':
    case '`':
    case '\\':
      return lose("behind quotes in $((…)), which shells read differently");
    case '$':
      return read_dollar();
    default:
      return skip(1);
  }
}

void ShellReader::step_in_document() {
  const char c = rest_.front();
  if (c == '\n') {
    skip(1);
    return end_document_line();
  }
  if (frames_.back().place == Place::document) {
    if (c == '$') return read_dollar();
    if (c == '`') return push(Place::backquotes, 1);
    if (c == '\\') {
      if (rest_.size() > 1 && rest_[1] != '\n') line_ += rest_.substr(0, 2);
      return skip_escape();
    }
  }
  line_ += c;
  skip(1);
}

void ShellReader::read_dollar() {
  const Place here = frames_.back().place;
  const bool is_quoted = here == Place::double_quotes || here == Place::document || frames_.back().is_quoted;
  if (rest_.starts_with("$((")) return push(Place::arithmetic, 3);
  if (rest_.starts_with("$(")) return push(Place::command, 2);
  if (rest_.starts_with("${")) {
    push(Place::braces, 2);
    frames_.back().is_quoted = is_quoted;
    return;
  }
  if (rest_.starts_with("$'") && !is_quoted) return lose("behind $'…', which shells read differently");
  if (here == Place::command) add_to_word("$");
  if (here == Place::document) line_ += '$';
  skip(1);
}

void ShellReader::read_delimiter() {
  end_word();
  skip(2);
  Document document;
  if (rest_.starts_with('-')) {
    document.strips_tabs = true;
    skip(1);
  }
  skip(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
  read_delimiter_word(document);
  if (rest_.empty()) return lose("in the end word of a here-document");
  const bool is_strange = document.delimiter.find_first_of("$`\\\n") != std::string::npos;
  if (is_strange || (document.delimiter.empty() && !document.is_quoted) || documents_.size() == documents_max) {
    return lose("behind a here-document whose end word is unusual");
  }
  documents_.push_back(std::move(document));
}

void ShellReader::read_delimiter_word(Document& document) {
  while (!rest_.empty() && !word_ends.contains(rest_.front())) {
    const char c = rest_.front();
    skip(1);
    if (c == '\'' || c == '"') {
      const std::size_t end = std::min(rest_.find(c), rest_.size());
      document.is_quoted = true;
      document.delimiter += rest_.substr(0, end);
      skip(std::min(end + 1, rest_.size()));
    } else if (c == '\\') {
      document.is_quoted = true;
      document.delimiter += rest_.substr(0, 1);
      skip(std::min<std::size_t>(1, rest_.size()));
    } else {
      document.delimiter += c;
    }
  }
}

// The patterns of `case` have closing parentheses of their own. Among words that does no harm; inside something else it would be taken
// for the end of the substitution.
void ShellReader::end_word() {
  const bool is_among_words =
      std::ranges::all_of(frames_, [](const Frame& each) { return each.place == Place::command; });
  if (frames_.back().word == "case" && !is_among_words) lose("behind `case` inside a substitution");
  frames_.back().word.clear();
}

void ShellReader::end_command_line() {
  end_word();
  skip(1);
  open_document();
}

void ShellReader::open_document() {
  if (documents_.empty()) return;
  open_ = std::move(documents_.front());
  documents_.pop_front();
  push(open_.is_quoted ? Place::plain_document : Place::document, 0);
}

void ShellReader::end_document_line() {
  std::string_view line = line_;
  if (open_.strips_tabs) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
  const bool is_end = line == open_.delimiter;
  if (is_end && line_has_value_) return lose("in a here-document that its value would end");
  line_.clear();
  line_has_value_ = false;
  if (!is_end) return;
  pop();
  open_document();
}

void ShellReader::skip_escape() {
  is_escaped_ = rest_.size() == 1;
  skip(std::min<std::size_t>(2, rest_.size()));
}

void ShellReader::push(Place place, std::size_t sign_bytes) {
  if (frames_.size() == frames_max) return lose("deeper than 64 quotes and brackets");
  const std::string_view sign = rest_.substr(0, sign_bytes);
  const bool is_in_word = frames_.back().place == Place::command && place != Place::comment && sign != "(";
  if (is_in_word) add_to_word(sign);
  if (frames_.back().place == Place::document) line_ += sign;
  frames_.push_back({.place = place});
  skip(sign_bytes);
}

void ShellReader::add_to_word(std::string_view text) {
  std::string& word = frames_.back().word;
  if (word.size() < word_bytes_max) word += text;
}

void ShellReader::lose(std::string_view why) {
  if (lost_.empty()) lost_ = why;
  rest_ = {};
}

}  // namespace reprise::flow
