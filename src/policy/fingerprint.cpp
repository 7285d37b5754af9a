// Telling whether the same failure happened again: a message without the parts that change from run to run.
#include <reprise/classify.hpp>

#include <algorithm>
#include <array>

#include "policy/hashing.hpp"
#include "policy/words.hpp"

namespace reprise {
namespace {

constexpr std::size_t normalized_bytes_max = 512;
constexpr std::size_t scanned_bytes_max = 4096;
constexpr std::size_t long_number_digits = 4;  // shorter ones are codes ("exit 3", "HTTP 503") and stay

using words::is_digit;
using words::is_word;

bool is_hex(char c) noexcept { return is_digit(c) || (words::lower(c) >= 'a' && words::lower(c) <= 'f'); }

// A piece of the message that varies: how many bytes it spans and what stands in its place.
struct Piece {
  std::size_t length = 0;
  std::string_view mark = {};
};

std::size_t count_while(std::string_view text, bool (*accept)(char) noexcept) noexcept {
  std::size_t count = 0;
  while (count < text.size() && accept(text[count])) ++count;
  return count;
}

Piece uuid(std::string_view text) noexcept {
  constexpr std::array<std::size_t, 5> groups{8, 4, 4, 4, 12};
  std::size_t at = 0;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (group > 0 && (at >= text.size() || text[at++] != '-')) return {};
    if (count_while(text.substr(at), is_hex) < groups[group]) return {};
    at += groups[group];
  }
  return {at, "<id>"};
}

// Matches `shape`, where d stands for a digit and everything else for itself.
std::size_t match_shape(std::string_view text, std::string_view shape) noexcept {
  if (text.size() < shape.size()) return 0;
  for (std::size_t index = 0; index < shape.size(); ++index) {
    const bool fits = shape[index] == 'd' ? is_digit(text[index]) : text[index] == shape[index];
    if (!fits) return 0;
  }
  return shape.size();
}

bool is_fraction_or_zone(char c) noexcept {
  return is_digit(c) || c == '.' || c == ',' || c == '+' || c == ':' || c == 'Z';
}

// 2026-03-01T10:20:30.123Z, 2026/03/01 10:20:30, 10:20:30.5, 2026-03-01
Piece timestamp(std::string_view text) noexcept {
  std::size_t length = std::max(match_shape(text, "dddd-dd-dd"), match_shape(text, "dddd/dd/dd"));
  if (length > 0 && length < text.size() && (text[length] == 'T' || text[length] == ' ') &&
      match_shape(text.substr(length + 1), "dd:dd:dd") > 0) {
    ++length;
  }
  if (const std::size_t time = match_shape(text.substr(length), "dd:dd:dd")) {
    length += time;
    const std::size_t rest = count_while(text.substr(length), is_fraction_or_zone);
    length += rest;
    while (rest > 0 && (text[length - 1] == '.' || text[length - 1] == ',' || text[length - 1] == ':')) --length;
  }
  return length > 0 ? Piece{length, "<time>"} : Piece{};
}

// 0x7ffc12, or 8 and more hex digits in a row with at least one digit among them (a commit, an address).
Piece hex(std::string_view text) noexcept {
  if (text.size() > 2 && text[0] == '0' && words::lower(text[1]) == 'x') {
    const std::size_t digits = count_while(text.substr(2), is_hex);
    return digits > 0 ? Piece{digits + 2, "<hex>"} : Piece{};
  }
  const std::size_t digits = count_while(text, is_hex);
  const bool whole = digits == text.size() || !is_word(text[digits]);
  const std::string_view run = text.substr(0, digits);
  const bool mixed = std::ranges::any_of(run, is_digit) && !std::ranges::all_of(run, is_digit);
  return digits >= 8 && whole && mixed ? Piece{digits, "<hex>"} : Piece{};
}

bool is_path(char c) noexcept {
  return is_word(c) || c == '/' || c == '.' || c == '-' || c == '+' || c == '~' || c == '@' || c == '%';
}

Piece temporary_path(std::string_view text) noexcept {
  for (const std::string_view root : {"/tmp/", "/var/tmp/", "/var/folders/", "/dev/shm/", "/run/user/"}) {
    if (text.starts_with(root)) {
      std::size_t length = count_while(text, is_path);
      while (text[length - 1] == '.') --length;  // the sentence's full stop
      return {length, "<tmp>"};
    }
  }
  return {};
}

// "0.1 s" with a blank; without a fraction "3 m" may be metres, and the first rules took no blank before a short unit at all.
bool may_stand_apart(std::string_view unit, bool has_fraction, FingerprintRules rules) noexcept {
  if (unit.size() >= 4) return true;
  return rules != FingerprintRules::by_message &&
         (unit == "s" || unit == "ms" || unit == "us" || unit == "ns" || has_fraction);
}

// 1.5s, 300ms, 1h30m, 12 seconds, 0.1 s
Piece duration(std::string_view text, FingerprintRules rules) noexcept {
  constexpr std::array<std::string_view, 18> units{
      "milliseconds", "millisecond", "microseconds", "nanoseconds", "seconds", "second", "minutes", "minute", "hours",
      "hour",         "secs",        "ms",           "us",          "ns",      "s",      "m",       "h",      "d"};
  std::size_t length = 0;
  for (;;) {
    std::size_t at = length + count_while(text.substr(length), is_digit);
    if (at == length) break;
    const bool has_fraction = at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1]);
    if (has_fraction) at += 1 + count_while(text.substr(at + 1), is_digit);
    std::size_t unit_at = at;
    if (unit_at < text.size() && text[unit_at] == ' ') ++unit_at;
    const auto unit = std::ranges::find_if(units, [&](std::string_view name) {
      if (unit_at > at && !may_stand_apart(name, has_fraction, rules)) return false;
      const std::string_view rest = text.substr(unit_at);
      if (!rest.starts_with(name)) return false;
      return rest.size() == name.size() || !is_word(rest[name.size()]) || is_digit(rest[name.size()]);
    });
    if (unit == units.end()) break;
    length = unit_at + unit->size();
  }
  const bool whole = length == text.size() || (length > 0 && !is_word(text[length]));
  return length > 0 && whole ? Piece{length, "<duration>"} : Piece{};
}

// main.go and src/main are file names; "status" in "status:503" is not.
bool follows_file_name(std::string_view before) noexcept {
  std::size_t begin = before.size();
  while (begin > 0 && is_path(before[begin - 1])) --begin;
  return before.substr(begin).find_first_of("./") != std::string_view::npos;
}

// file.cc:12:5, main.go:1234
Piece line_and_column(std::string_view text) noexcept {
  if (text.empty() || text[0] != ':') return {};
  std::size_t length = 1 + count_while(text.substr(1), is_digit);
  if (length == 1) return {};
  if (length + 1 < text.size() && text[length] == ':' && is_digit(text[length + 1])) {
    length += 1 + count_while(text.substr(length + 1), is_digit);
  }
  return {length, ":<line>"};
}

Piece long_number(std::string_view text) noexcept {
  const std::size_t digits = count_while(text, is_digit);
  return digits >= long_number_digits ? Piece{digits, "<n>"} : Piece{};
}

Piece varying_piece(std::string_view message, std::size_t at, FingerprintRules rules) noexcept {
  const std::string_view text = message.substr(at);
  const bool inside_word = at > 0 && is_word(message[at - 1]);
  if (text[0] == '/' && !inside_word) return temporary_path(text);
  if (text[0] == ':' && inside_word) return follows_file_name(message.substr(0, at)) ? line_and_column(text) : Piece{};
  if (!is_hex(text[0])) return {};
  if (inside_word) return is_digit(text[0]) && !is_digit(message[at - 1]) ? long_number(text) : Piece{};
  for (Piece (*const read)(std::string_view) noexcept : {uuid, timestamp, hex}) {
    if (const Piece piece = read(text); piece.length > 0) return piece;
  }
  const Piece span = duration(text, rules);
  return span.length > 0 ? span : long_number(text);
}

std::string normalized(std::string_view message, FingerprintRules rules) {
  message = message.substr(0, scanned_bytes_max);
  std::string result;
  std::size_t at = 0;
  while (at < message.size() && result.size() < normalized_bytes_max) {
    const Piece piece = varying_piece(message, at, rules);
    if (piece.length > 0) {
      result += piece.mark;
      at += piece.length;
      continue;
    }
    const char c = message[at++];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank) {
      result += words::lower(c);
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  result.resize(std::min(result.size(), normalized_bytes_max));
  return result;
}

}  // namespace

std::string normalize_message(std::string_view message) { return normalized(message, FingerprintRules::by_cause); }

std::uint64_t fingerprint(std::string_view step, FailureClass failure_class, const Failure& failure,
                          FingerprintRules rules) {
  std::uint64_t hash = hash_seed;
  mix(hash, step);
  mix(hash, name_of(failure_class));
  const bool has_cause = failure.cause != 0 && rules != FingerprintRules::by_message;
  mix(hash, has_cause ? std::to_string(failure.cause) : normalized(failure.message, rules));
  mix(hash, failure.exit_code ? std::to_string(*failure.exit_code) : std::string{});
  return hash;
}

std::uint64_t fingerprint(std::string_view step, FailureClass failure_class, std::string_view message,
                          std::optional<int> exit_code) {
  return fingerprint(step, failure_class, Failure{.message = std::string{message}, .exit_code = exit_code});
}

}  // namespace reprise
