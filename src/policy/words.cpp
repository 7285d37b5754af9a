#include "policy/words.hpp"

namespace reprise::words {
namespace {

bool equal_ignoring_case(std::string_view text, std::string_view phrase) noexcept {
  for (std::size_t index = 0; index < phrase.size(); ++index) {
    if (lower(text[index]) != phrase[index]) return false;
  }
  return true;
}

bool stands_alone(std::string_view message, std::size_t begin, std::size_t length) noexcept {
  const std::size_t end = begin + length;
  const bool joined_before = begin > 0 && is_word(message[begin]) && is_word(message[begin - 1]);
  const bool joined_after = end < message.size() && is_word(message[end - 1]) && is_word(message[end]);
  return !joined_before && !joined_after;
}

// Where `phrase` stands as a whole, from `from` on; npos if it does not.
std::size_t find(std::string_view message, std::string_view phrase, std::size_t from = 0) noexcept {
  for (std::size_t at = from; at + phrase.size() <= message.size(); ++at) {
    if (lower(message[at]) != phrase.front()) continue;
    if (equal_ignoring_case(message.substr(at, phrase.size()), phrase) && stands_alone(message, at, phrase.size()))
      return at;
  }
  return std::string_view::npos;
}

// "exit code 1", "exit status: 2" – but not "exit code 0".
bool has_nonzero_exit(std::string_view message, std::string_view phrase) noexcept {
  for (std::size_t at = find(message, phrase); at != std::string_view::npos; at = find(message, phrase, at + 1)) {
    std::size_t digit = at + phrase.size();
    while (digit < message.size() && (message[digit] == ' ' || message[digit] == ':' || message[digit] == '=')) ++digit;
    while (digit < message.size() && message[digit] == '0') ++digit;
    if (digit < message.size() && is_digit(message[digit])) return true;
  }
  return false;
}

}  // namespace

bool contains(std::string_view message, std::string_view phrase) noexcept {
  return find(message, phrase) != std::string_view::npos;
}

bool reports_failure(std::string_view message) noexcept {
  for (const std::string_view word : {"failed", "fail", "fails", "failing", "failure", "failures", "error", "errors"}) {
    if (contains(message, word)) return true;
  }
  return has_nonzero_exit(message, "exit code") || has_nonzero_exit(message, "exit status");
}

}  // namespace reprise::words
