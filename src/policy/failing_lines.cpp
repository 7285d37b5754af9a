#include "policy/failing_lines.hpp"

#include <algorithm>

#include <reprise/classify.hpp>

#include "policy/hashing.hpp"
#include "policy/words.hpp"

namespace reprise {
namespace {

constexpr std::size_t line_bytes_max = 200;
constexpr std::size_t read_bytes_max = std::size_t{256} << 10U;

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool begins_with_number(std::string_view text) noexcept { return !text.empty() && words::is_digit(text.front()); }

// A name: not a count ("2 tests, listed below") and not a mark of its own ("(failures=1)", "in 3s").
bool names_something(std::string_view rest) noexcept {
  rest = trimmed(rest);
  return !rest.empty() && rest.front() != '(' && !begins_with_number(rest) && !rest.starts_with("in ");
}

bool is_identifier(std::string_view word) noexcept {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return words::is_word(c) || c == '.' || c == ':' || c == '/' || c == '-';
  });
}

// pytest: FAILED tests/test_a.py::test_b - assert 3 == 4. What follows the name varies, so it is not a part of it.
std::string_view pytest_line(std::string_view line) noexcept {
  if (!line.starts_with("FAILED ") && !line.starts_with("ERROR ")) return {};
  const std::string_view name = line.substr(line.find(' ') + 1);
  const std::string_view place = name.substr(0, name.find(' '));
  if (place.find("::") == std::string_view::npos && !place.ends_with(".py")) return {};
  return line.substr(0, std::min(line.find(" - "), line.size()));
}

// unittest: FAIL: test_add (calc_test.CalcTest)
std::string_view unittest_line(std::string_view line) noexcept {
  for (const std::string_view begin : {"FAIL: ", "ERROR: "}) {
    if (!line.starts_with(begin)) continue;
    const std::string_view rest = line.substr(begin.size());
    const std::size_t blank = rest.find(" (");
    if (blank != std::string_view::npos && is_identifier(rest.substr(0, blank)) && rest.ends_with(')')) return line;
  }
  return {};
}

// TAP: not ok 3 - name. What is marked as still to be done, or as left out, has not failed.
std::string_view tap_line(std::string_view line) noexcept {
  if (!line.starts_with("not ok ") || !words::contains(line, "ok")) return {};
  return words::contains(line, "# todo") || words::contains(line, "# skip") ? std::string_view{} : line;
}

// jest, vitest, mocha, node:test: a cross and a name
std::string_view cross_line(std::string_view line) noexcept {
  for (const std::string_view cross : {"✕ ", "✗ ", "✖ ", "× "}) {
    if (line.starts_with(cross)) return names_something(line.substr(cross.size())) ? line : std::string_view{};
  }
  return {};
}

// rust: test calc::adds ... FAILED
std::string_view rust_line(std::string_view line) noexcept {
  return line.starts_with("test ") && line.ends_with("... FAILED") ? line : std::string_view{};
}

// ctest: 3 - unit.calc (Failed)
std::string_view ctest_line(std::string_view line) noexcept {
  if (!begins_with_number(line) || line.find(" - ") == std::string_view::npos) return {};
  for (const std::string_view mark : {"(Failed)", "(Timeout)", "(SEGFAULT)", "(Not Run)"}) {
    if (line.ends_with(mark)) return line.substr(line.find(" - ") + 3);
  }
  return {};
}

std::string_view go_line(std::string_view line) noexcept { return line.starts_with("--- FAIL: ") ? line : ""; }

std::string_view gtest_line(std::string_view line) noexcept {
  constexpr std::string_view begin = "[  FAILED  ] ";
  if (!line.starts_with(begin) || !names_something(line.substr(begin.size()))) return {};
  // The list at the end says it again, without the time: the same name counts once.
  return line.substr(0, std::min({line.find(" ("), line.find(", where "), line.size()}));
}

std::string_view naming_part(std::string_view line) noexcept {
  for (std::string_view (*const read)(std::string_view) noexcept :
       {go_line, pytest_line, unittest_line, tap_line, cross_line, gtest_line, rust_line, ctest_line}) {
    if (const std::string_view part = trimmed(read(line)); !part.empty()) return part;
  }
  return {};
}

// Cut between two characters.
std::string_view shortened(std::string_view line) noexcept {
  if (line.size() <= line_bytes_max) return line;
  std::size_t end = line_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
  return line.substr(0, end);
}

}  // namespace

std::vector<std::string> failing_lines(std::string_view written) {
  if (written.size() > read_bytes_max) written.remove_prefix(written.size() - read_bytes_max);
  std::vector<std::string> lines;
  while (!written.empty() && lines.size() < failing_lines_max) {
    const std::size_t end = std::min(written.find('\n'), written.size());
    const std::string_view part = shortened(naming_part(trimmed(written.substr(0, end))));
    if (!part.empty() && std::ranges::find(lines, part) == lines.end()) lines.emplace_back(part);
    written.remove_prefix(std::min(end + 1, written.size()));
  }
  return lines;
}

std::uint64_t cause_of(std::span<const std::string> lines) {
  if (lines.empty()) return 0;
  std::vector<std::string> normalized;
  normalized.reserve(lines.size());
  for (const std::string& line : lines) normalized.push_back(normalize_message(line));
  std::ranges::sort(normalized);
  normalized.erase(std::unique(normalized.begin(), normalized.end()), normalized.end());
  std::uint64_t hash = hash_seed;
  for (const std::string& line : normalized) mix(hash, line);
  return hash != 0 ? hash : 1;
}

}  // namespace reprise
