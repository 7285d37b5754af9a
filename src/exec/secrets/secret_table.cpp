#include "exec/secrets/secret_table.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/encoding.hpp"
#include "base/hex.hpp"
#include "text/ascii.hpp"
#include "text/utf8.hpp"

namespace reprise::exec {
namespace {

using Pattern = SecretTable::Pattern;
using Match = SecretTable::Match;

// A few different numbers, without memory of their own, since this is asked for at many bytes of a text.
// Bounds: 64, then no more are taken: a secret would need dozens of quotes in a row to be read in more ways.
class Places {
 public:
  void add(std::size_t number) noexcept {
    if (count_ < numbers_.size() && std::find(begin(), end(), number) == end()) numbers_[count_++] = number;
  }
  void clear() noexcept { count_ = 0; }
  bool is_empty() const noexcept { return count_ == 0; }
  const std::size_t* begin() const noexcept { return numbers_.data(); }
  const std::size_t* end() const noexcept { return numbers_.data() + count_; }

 private:
  std::array<std::size_t, 64> numbers_;
  std::size_t count_ = 0;
};

constexpr std::size_t backslashes_max = 8;     // text within text within text; each level doubles them
constexpr std::size_t percent_levels_max = 2;  // %2525 within a query of a query
constexpr std::size_t cut_bytes_min = 4;       // of a secret before …: fewer say nothing about it
constexpr std::size_t base64_bytes_min = 6;    // fewer characters of it stand in any text
constexpr std::string_view eight_backslashes = R"(\\\\\\\\)";
constexpr std::string_view ellipsis = "…";
constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr auto replacement_byte = static_cast<unsigned char>(replacement.front());

// ---- forms of one character ----------------------------------------

bool is_mark(char c) noexcept {
  return c > ' ' && c < 0x7F && !text::is_digit(c) && !(text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z');
}

constexpr std::string_view controls = "\n\t\r\b\f";
constexpr std::string_view control_letters = "ntrbf";

char escape_letter(char control) noexcept {
  const std::size_t at = controls.find(control);
  return at == std::string_view::npos ? '\0' : control_letters[at];
}

char escaped_control(char letter) noexcept {
  const std::size_t at = control_letters.find(letter);
  return at == std::string_view::npos ? '\0' : controls[at];
}

// text::safe_to_show() makes one line of text, and U+FFFD of what could control a terminal; JSON has that for what is no character.
bool is_line_blank(char c) noexcept { return c == '\t' || c == '\n' || c == '\r'; }

bool is_replaced(std::string_view pattern) noexcept {
  const text::Character first = text::first_character(pattern);
  return first.bytes == 0 || (text::is_control(first.code_point) && !is_line_blank(pattern.front()));
}

// One character of a pattern, looked for at one place of the text. Each way to write it that is found adds the place behind it.
// `backslashes`: so many stand for one in this text. They are the same everywhere in it; without that, runs of them could be read in very
// many ways.
class Spelling {
 public:
  Spelling(std::string_view pattern, std::string_view text, std::size_t backslashes, Places& ends, bool& needs_more)
      : text_{text}, backslashes_{backslashes}, ends_{ends}, needs_more_{needs_more} {
    const text::Character first = text::first_character(pattern);
    unit_ = pattern.substr(0, std::max<std::size_t>(first.bytes, 1));
    code_point_ = first.code_point;
    is_character_ = first.bytes > 0;
    is_replaced_ = is_replaced(pattern);
  }

  std::size_t bytes() const noexcept { return unit_.size(); }

  void find_at(std::size_t place) {
    try_text(place, unit_ == "\\" ? eight_backslashes.substr(0, backslashes_) : unit_);
    if (is_replaced_) try_text(place, replacement);
    if (is_line_blank(unit_.front())) try_text(place, " ");
    if (place >= text_.size()) return;
    switch (text_[place]) {
      case '%':
        return try_percent(place);
      case '\\':
        return try_escaped(place);
      case '\'':
        return unit_ == "'" ? try_quoted(place) : void();
      case '+':
        return unit_ == " " ? ends_.add(place + 1) : void();
      default:
        return;
    }
  }

 private:
  // False: the text says something else there, or ends.
  bool reads(std::size_t place, std::string_view wanted) {
    const std::string_view there = text_.substr(std::min(place, text_.size()), wanted.size());
    if (there == wanted) return true;
    if (wanted.starts_with(there)) needs_more_ = true;
    return false;
  }

  void try_text(std::size_t place, std::string_view wanted) {
    if (reads(place, wanted)) ends_.add(place + wanted.size());
  }

  // As many hexadecimal digits, of either case, as the number has there.
  bool reads_hex(std::size_t place, std::uint32_t number, std::size_t digits) {
    for (std::size_t index = 0; index < digits; ++index, ++place) {
      if (place >= text_.size()) {
        needs_more_ = true;
        return false;
      }
      if (base::hex_value(text_[place]) != static_cast<int>(number >> 4 * (digits - 1 - index) & 0xFU)) return false;
    }
    return true;
  }

  void try_percent(std::size_t place) {
    for (const char c : unit_) {
      if (!reads(place, "%")) return;
      ++place;
      const auto byte = static_cast<unsigned char>(c);
      for (std::size_t level = 0; level < percent_levels_max && !reads_hex(place, byte, 2) && reads(place, "25");
           ++level)
        place += 2;
      if (!reads_hex(place, byte, 2)) return;
      place += 2;
    }
    ends_.add(place);
    if (unit_ == "%" && reads(place, "25")) ends_.add(place + 2);
  }

  std::size_t behind_backslashes(std::size_t place) {
    const std::size_t most = std::min(text_.size(), place + backslashes_max);
    while (place < most && text_[place] == '\\') ++place;
    if (place == text_.size()) needs_more_ = true;
    return place;
  }

  void try_escaped(std::size_t place) {
    const std::size_t behind = behind_backslashes(place);
    if (unit_.size() == 1 && unit_ != "\\") {
      const char c = unit_.front();
      if (is_mark(c) || c == ' ') try_text(behind, unit_);
      if (const char letter = escape_letter(c); letter != '\0') try_text(behind, {&letter, 1});
    }
    if (is_character_) try_code(behind);
  }

  // The u of \u00fc and its digits; beyond 16 bits there are two of them.
  void try_code(std::size_t place) {
    if (!reads(place, "u")) return;
    ++place;
    const bool is_pair = code_point_ > 0xFFFF;
    const std::uint32_t high = is_pair ? 0xD7C0U + (code_point_ >> 10U) : code_point_;
    if (!reads_hex(place, high, 4)) return;
    place += 4;
    if (is_pair) {
      const std::size_t behind = behind_backslashes(place);
      if (behind == place || !reads(behind, "u") || !reads_hex(behind + 1, 0xDC00U + (code_point_ & 0x3FFU), 4)) return;
      place = behind + 5;
    }
    ends_.add(place);
  }

  // '\'' and '"'"', with more backslashes when that stands in a text itself.
  void try_quoted(std::size_t place) {
    const std::size_t behind = behind_backslashes(place + 1);
    if (behind > place + 1) try_text(behind, "''");
    if (!reads(behind, "\"'")) return;
    const std::size_t closing = behind_backslashes(behind + 2);
    if (reads(closing, "\"'")) ends_.add(closing + 2);
  }

  std::string_view text_;
  std::size_t backslashes_;
  Places& ends_;
  bool& needs_more_;
  std::string_view unit_;
  std::uint32_t code_point_ = 0;
  bool is_character_ = false;
  bool is_replaced_ = false;
};

// ---- one pattern ----------------------------------------

// The rest of an escape that was cut with the text, before …. Its bytes; std::string_view::npos: there is no … here.
std::size_t bytes_before_ellipsis(std::string_view rest, bool& needs_more) {
  std::size_t at = 0;
  while (at < rest.size() && at < backslashes_max && (rest[at] == '\\' || rest[at] == '%')) ++at;
  if (at > 0 && at < rest.size() && rest[at] == 'u') ++at;
  for (std::size_t digits = 0; at > 0 && digits < 3 && at < rest.size() && base::hex_value(rest[at]) >= 0; ++digits)
    ++at;
  const std::string_view there = rest.substr(at, ellipsis.size());
  if (there == ellipsis) return at;
  if (ellipsis.starts_with(there)) needs_more = true;
  return std::string_view::npos;
}

void match_pattern(const Pattern& pattern, std::string_view text, std::size_t backslashes, Match& match) {
  const auto found = [&](std::size_t length) {
    if (length <= match.length) return;
    match.length = length;
    match.pattern = &pattern;
  };
  Places both[2];
  Places* places = &both[0];
  Places* ends = &both[1];
  places->add(0);
  for (std::size_t at = 0; at < pattern.text.size() && !places->is_empty();) {
    ends->clear();
    Spelling spelling{std::string_view{pattern.text}.substr(at), text, backslashes, *ends, match.needs_more};
    for (const std::size_t place : *places) {
      spelling.find_at(place);
      if (at < cut_bytes_min) continue;
      const std::size_t rest = bytes_before_ellipsis(text.substr(place), match.needs_more);
      if (rest != std::string_view::npos) found(place + rest);
    }
    at += spelling.bytes();
    std::swap(places, ends);
  }
  for (const std::size_t place : *places) found(place);
}

void match_pattern(const Pattern& pattern, std::string_view text, Match& match) {
  const bool has_backslash = pattern.text.find('\\') != std::string::npos;
  for (std::size_t backslashes = 1; backslashes <= (has_backslash ? backslashes_max : 1); backslashes *= 2)
    match_pattern(pattern, text, backslashes, match);
}

// ---- the patterns of a secret ----------------------------------------

constexpr std::string_view blanks = " \t\r\n\f\v";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// What base64 makes of the secret, wherever it begins in a group of three bytes: without the characters that it shares with what stands before
// it, and with and without the one that it may share with what follows.
std::vector<std::string> base64_patterns(std::string_view secret) {
  std::vector<std::string> patterns;
  for (const bool is_for_urls : {false, true}) {
    for (std::size_t before = 0; before < 3; ++before) {
      const std::size_t first = (8 * before + 5) / 6;
      const std::size_t whole = 8 * (before + secret.size()) / 6;
      const std::string bytes = std::string(before, '\0').append(secret);
      std::string all = is_for_urls ? base::base64_for_urls(bytes) : base::base64(bytes);
      all.resize(std::min(all.find('='), all.size()));
      if (whole < first + base64_bytes_min) continue;
      patterns.push_back(all.substr(first, whole - first));
      if (all.size() > whole) patterns.push_back(all.substr(first));
    }
  }
  return patterns;
}

std::vector<std::string> patterns_of(const std::string& secret) {
  std::vector<std::string> patterns;
  std::set<std::string> known{""};
  const auto add = [&](std::string pattern) {
    if (known.insert(pattern).second) patterns.push_back(std::move(pattern));
  };
  add(secret);
  const std::string_view bare = trimmed(secret);
  add(std::string{bare});
  for (std::size_t at = 0; at < bare.size() && bare.find('\n') != std::string_view::npos;) {
    const std::size_t end = std::min(bare.find('\n', at), bare.size());
    const std::string_view line = trimmed(bare.substr(at, end - at));
    if (line.size() >= short_secret_bytes) add(std::string{line});
    at = end + 1;
  }
  for (std::string& pattern : base64_patterns(secret)) add(std::move(pattern));
  if (bare != secret) {
    for (std::string& pattern : base64_patterns(bare)) add(std::move(pattern));
  }
  return patterns;
}

// ---- where to look ----------------------------------------

// The first bytes of the patterns of which a form may begin here: looking at them alone keeps text full of % and \ cheap.
class Beginnings {
 public:
  explicit Beginnings(std::string_view text) : text_{text} {
    add(text.front());
    if (text.front() == '%') add_percent();
    if (text.front() == '\\') add_escaped();
    if (text.front() == '+') add(' ');
  }

  const Places& bytes() const noexcept { return bytes_; }
  bool needs_more() const noexcept { return needs_more_; }

 private:
  void add(char byte) noexcept { bytes_.add(static_cast<unsigned char>(byte)); }

  // -1: something else stands there, or nothing yet.
  int hex_number(std::size_t place, std::size_t digits) {
    int number = 0;
    for (std::size_t index = 0; index < digits; ++index) {
      if (place + index >= text_.size()) needs_more_ = true;
      const int digit = needs_more_ ? -1 : base::hex_value(text_[place + index]);
      if (digit < 0) return -1;
      number = number * 16 + digit;
    }
    return number;
  }

  void add_percent() {
    for (std::size_t level = 0; level <= percent_levels_max; ++level) {
      const int byte = hex_number(1 + 2 * level, 2);
      if (byte >= 0) add(static_cast<char>(byte));
      if (byte != '%') return;
    }
  }

  void add_escaped() {
    const std::size_t behind = std::min(text_.find_first_not_of('\\'), backslashes_max);
    if (behind >= text_.size()) {
      needs_more_ = true;
      return;
    }
    if (is_mark(text_[behind]) || text_[behind] == ' ') add(text_[behind]);
    if (const char control = escaped_control(text_[behind]); control != '\0') add(control);
    if (text_[behind] != 'u') return;
    const int code = hex_number(behind + 1, 4);
    if (code >= 0) add(lead_byte(static_cast<std::uint32_t>(code)));
  }

  static char lead_byte(std::uint32_t code) noexcept {
    const bool is_high_half = code >= 0xD800 && code < 0xDC00;  // of a pair that stands for one character
    if (is_high_half) return static_cast<char>(0xF0U | (code - 0xD7C0U) >> 8U);
    return static_cast<char>(code < 0x80 ? code : code < 0x800 ? 0xC0U | code >> 6U : 0xE0U | code >> 12U);
  }

  std::string_view text_;
  Places bytes_;
  bool needs_more_ = false;
};

}  // namespace

SecretTable::SecretTable(const std::vector<std::string>& secrets) {
  for (std::uint32_t secret = 0; secret < secrets.size(); ++secret) {
    if (secrets[secret].empty()) continue;
    std::uint32_t number = 0;
    for (std::string& text : patterns_of(secrets[secret])) patterns_.push_back({std::move(text), secret, number++});
  }
  for (std::uint32_t index = 0; index < patterns_.size(); ++index) {
    const std::string& text = patterns_[index].text;
    const auto first = static_cast<unsigned char>(text.front());
    by_first_byte_[first].push_back(index);
    if (is_replaced(text) && first != replacement_byte) by_first_byte_[replacement_byte].push_back(index);
    expect(text);
  }
}

// Notes the first two bytes of all forms of the pattern.
void SecretTable::expect(std::string_view pattern) {
  const auto allow = [this](unsigned char first, const std::string& seconds) {
    may_begin_[first] = true;
    for (const char second : seconds) pairs_.set(first * 256U + static_cast<unsigned char>(second));
  };
  std::string any;
  for (int byte = 0; byte < 256; ++byte) any += static_cast<char>(byte);
  std::string seconds = any;
  if (pattern.size() > 1) {
    seconds = std::string{pattern[1], '%', '\\'};
    if (pattern[1] == ' ') seconds += '+';
    if (pattern.front() == '\'') seconds += '"';
    if (is_line_blank(pattern[1])) seconds += ' ';
    if (is_replaced(pattern.substr(1))) seconds += static_cast<char>(replacement_byte);
  }
  allow(static_cast<unsigned char>(pattern.front()), seconds);
  if (pattern.front() == ' ') allow('+', seconds);
  if (is_replaced(pattern)) allow(replacement_byte, any);
  allow('%', "0123456789abcdefABCDEF");
  allow('\\', any);
}

Match SecretTable::match_at(std::string_view text) const {
  Match match;
  const Beginnings beginnings{text};
  match.needs_more = beginnings.needs_more();
  for (const std::size_t byte : beginnings.bytes()) {
    for (const std::uint32_t index : by_first_byte_[byte]) match_pattern(patterns_[index], text, match);
  }
  return match;
}

const Pattern* SecretTable::find(std::uint32_t secret, std::uint32_t number) const noexcept {
  const auto found = std::ranges::find_if(
      patterns_, [&](const Pattern& pattern) { return pattern.secret == secret && pattern.number == number; });
  return found != patterns_.end() ? &*found : nullptr;
}

}  // namespace reprise::exec
