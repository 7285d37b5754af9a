// Finds secrets in text, in each form that text takes on its way through this program and the tools it calls.
//
// A secret is looked for as a whole, without the blanks around it, line by line (people print keys in lines), and inside of base64, wherever
// it begins there (libcurl makes that of user:password in a URL). Each of these patterns is found
//   as it is;                               percent-encoded, also twice, in either case, a blank also as +;
//   with JSON's escapes, \u00fc too, also as text within text;      as sh quotes it: \" \$ '\'' '"'"';
//   as messages show it: on one line, with U+FFFD for what is not fit to be shown;
// in any mixture, and also when its end was cut off and … stands there instead. Other forms (reversed, hexadecimal, compressed) are not found.
// Bounds: one occurrence has at most 32 times the bytes of its secret. Thread safety: immutable.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::exec {

class SecretTable {
 public:
  struct Pattern {
    std::string text;
    std::uint32_t secret = 0;  // its place in the list that the table was made of
    std::uint32_t number = 0;  // among the patterns of that secret; the same value always has the same ones
  };

  struct Match {
    std::size_t length = 0;            // of the longest occurrence that begins here; 0 = none
    const Pattern* pattern = nullptr;  // whose occurrence that is
    bool needs_more = false;           // one may begin here, but the text ends too early
  };

  explicit SecretTable(const std::vector<std::string>& secrets);  // empty ones are never found
  SecretTable(const SecretTable&) = delete;
  SecretTable& operator=(const SecretTable&) = delete;

  bool is_empty() const noexcept { return patterns_.empty(); }
  // Quick: false for nearly every place of nearly every text. True: ask match_at().
  bool may_match_at(std::string_view text) const noexcept {
    const auto first = static_cast<unsigned char>(text.front());
    return may_begin_[first] && (text.size() < 2 || pairs_[first * 256U + static_cast<unsigned char>(text[1])]);
  }
  Match match_at(std::string_view text) const;  // at its first byte; there must be one
  const Pattern* find(std::uint32_t secret, std::uint32_t number) const noexcept;

 private:
  void expect(std::string_view pattern);

  std::vector<Pattern> patterns_;  // those of one secret side by side
  std::array<std::vector<std::uint32_t>, 256> by_first_byte_;
  std::array<bool, 256> may_begin_{};  // a form of a pattern
  std::bitset<65536> pairs_;           // two bytes that one begins with
};

// A secret that has fewer bytes than this is masked like any other, and with it whatever happens to look the same.
inline constexpr std::size_t short_secret_bytes = 4;

}  // namespace reprise::exec
