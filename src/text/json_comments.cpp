#include "text/json_comments.hpp"

#include <algorithm>

namespace reprise::text {
namespace {

constexpr std::string_view blanks = " \t\r\n";

bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Where the comment ends that begins here; `at` itself when none does. One that is not closed goes on to the end.
std::size_t end_of_comment(std::string_view text, std::size_t at) noexcept {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("//")) return at + std::min(rest.find('\n'), rest.size());
  if (!rest.starts_with("/*")) return at;
  const std::size_t close = rest.find("*/", 2);
  return at + (close == std::string_view::npos ? rest.size() : close + 2);
}

// Behind the string that begins here with its quote.
std::size_t end_of_string(std::string_view text, std::size_t at) noexcept {
  const char quote = text[at++];
  while (at < text.size() && text[at] != quote) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

bool looks_like_json(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_comment(text, at);
    if (end == at && blanks.find(text[at]) == std::string_view::npos) return text[at] == '{' || text[at] == '[';
    at = std::max(end, at + 1);
  }
  return false;
}

// One blank for each character, so that columns stay; line ends remain.
void put_blanks(std::string& out, std::string_view comment) {
  for (const char byte : comment) {
    if (byte == '\n' || byte == '\r') {
      out += byte;
    } else if (!is_continuation(byte)) {
      out += ' ';
    }
  }
}

}  // namespace

std::string without_json_comments(std::string_view text) {
  if (!looks_like_json(text)) return std::string{text};
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    // YAML allows a word such as https://example.org without quotes.
    const bool inside_a_word = at > 0 && text[at - 1] == ':';
    const std::size_t comment = inside_a_word ? at : end_of_comment(text, at);
    if (comment > at) {
      put_blanks(out, text.substr(at, comment - at));
      at = comment;
      continue;
    }
    const std::size_t end = text[at] == '"' ? end_of_string(text, at) : at + 1;
    out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace reprise::text
