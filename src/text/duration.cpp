#include "text/duration.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "text/ascii.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"

namespace reprise::text {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ns;
};

// Longest names first, so that "ms" is not read as "m".
constexpr std::array<Unit, 10> units{{{"µs", 1'000},
                                      {"μs", 1'000},  // U+03BC beside U+00B5
                                      {"ns", 1},
                                      {"us", 1'000},
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"d", 86'400'000'000'000},
                                      {"w", 604'800'000'000'000}}};

// How people write units out, and what to write instead.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> long_names{{
    {"milliseconds", "ms"}, {"millisecond", "ms"}, {"millis", "ms"}, {"msec", "ms"},  {"seconds", "s"}, {"second", "s"},
    {"secs", "s"},          {"sec", "s"},          {"minutes", "m"}, {"minute", "m"}, {"mins", "m"},    {"min", "m"},
    {"hours", "h"},         {"hour", "h"},         {"hrs", "h"},     {"hr", "h"},     {"days", "d"},    {"day", "d"},
    {"weeks", "w"},         {"week", "w"},
}};

bool allows(DurationGrammar grammar, const Unit& unit) noexcept {
  const bool greek = static_cast<unsigned char>(unit.name.front()) >= 0x80;
  if (grammar == DurationGrammar::go) return unit.name != "d" && unit.name != "w";
  return !greek;
}

std::string unit_list(DurationGrammar grammar) {
  return grammar == DurationGrammar::go ? "ns, us, ms, s, m or h" : "ns, us, ms, s, m, h, d or w";
}

// number × unit in nanoseconds, rounded down like Go does; nullopt beyond 2^63-1.
std::optional<std::int64_t> scaled(std::string_view whole, std::string_view fraction, std::int64_t unit_ns) noexcept {
  std::int64_t total = 0;
  for (const char digit : whole) {
    if (__builtin_mul_overflow(total, 10, &total) || __builtin_add_overflow(total, digit - '0', &total))
      return std::nullopt;
  }
  if (__builtin_mul_overflow(total, unit_ns, &total)) return std::nullopt;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  for (const char digit : fraction) {
    if (denominator >= 1'000'000'000'000'000) break;  // what follows is less than a nanosecond of a week
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  __extension__ using Wide = __int128;
  const auto part = static_cast<std::int64_t>(static_cast<Wide>(numerator) * unit_ns / denominator);
  if (__builtin_add_overflow(total, part, &total)) return std::nullopt;
  return total;
}

// The error says what is wrong.
std::expected<Duration, std::string> read_parts(std::string_view text, DurationGrammar grammar) {
  const auto problem = [](std::string message) { return std::unexpected(std::move(message)); };
  if (text.empty()) return problem("is empty");
  if (text == "0" && grammar != DurationGrammar::humantime) return Duration{0};
  if (text.front() == '-' || text.front() == '+') return problem("has a sign");
  if (text.find_first_of(" \t\n") != std::string_view::npos) return problem("has a blank");

  std::int64_t total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto take_digits = [&] {
      const std::size_t count = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
      const std::string_view digits = rest.substr(0, count);
      rest.remove_prefix(count);
      return digits;
    };
    const std::string_view whole = take_digits();
    std::string_view fraction;
    const bool point = rest.starts_with('.');
    if (point) {
      rest.remove_prefix(1);
      fraction = take_digits();
      if (grammar == DurationGrammar::humantime) return problem("has a fraction");
    }
    const bool complete = grammar == DurationGrammar::go ? !whole.empty() || !fraction.empty()
                                                         : !whole.empty() && (!point || !fraction.empty());
    if (!complete) return problem("is not a duration");
    if (rest.empty()) return problem("has no unit");
    const auto unit =
        std::ranges::find_if(units, [&](const Unit& u) { return rest.starts_with(u.name) && allows(grammar, u); });
    if (unit == units.end()) return problem(fmt::format("has an unknown unit (units: {})", unit_list(grammar)));
    rest.remove_prefix(unit->name.size());
    const auto part = scaled(whole, fraction, unit->ns);
    if (!part || __builtin_add_overflow(total, *part, &total)) return problem("is longer than 292 years");
  }
  return Duration{total};
}

// What to write instead, when it can be guessed: "2 minutes" is 2m, and a unit or fraction that this grammar lacks is said in others.
std::string remedy_for(std::string_view text, DurationGrammar grammar) {
  constexpr std::size_t guessed_max = 40;
  if (text.size() > guessed_max) return {};
  std::string number;
  std::string word;
  for (const char c : text) {
    if (is_digit(c) || c == '.') {
      if (!word.empty()) return {};
      number += c;
    } else if (c != ' ') {
      word += to_lower(c);
    }
  }
  if (word.empty()) {
    const bool readable = read_parts(number + "s", grammar).has_value();
    return readable ? fmt::format("write {}ms or {}s", number, number) : "";
  }
  const auto long_name = std::ranges::find(long_names, word, [](const auto& entry) { return entry.first; });
  if (long_name != long_names.end()) word = long_name->second;
  const auto meant = read_parts(number + word, DurationGrammar::native);
  return meant ? "write " + format_duration(*meant, grammar) : "";
}

}  // namespace

std::expected<Duration, DurationProblem> parse_duration(std::string_view text, DurationGrammar grammar) {
  auto duration = read_parts(text, grammar);
  if (duration) return *duration;
  return std::unexpected(DurationProblem{std::move(duration).error(), remedy_for(text, grammar)});
}

std::string format_duration(Duration duration, DurationGrammar grammar) {
  if (duration == Duration{0}) return "0s";
  constexpr std::int64_t second = 1'000'000'000;
  std::string out;
  std::int64_t rest = duration.count();
  const auto take = [&](std::string_view name, std::int64_t unit) {
    if (rest < unit) return;
    out += fmt::format("{}{}", rest / unit, name);
    rest %= unit;
  };
  take("h", 3600 * second);
  take("m", 60 * second);
  if (grammar == DurationGrammar::humantime) {
    take("s", second);
    take("ms", 1'000'000);
    take("us", 1'000);
    take("ns", 1);
    return out;
  }
  for (const auto& [name, unit] : {Unit{"s", second}, Unit{"ms", 1'000'000}, Unit{"us", 1'000}, Unit{"ns", 1}}) {
    if (rest < unit) continue;
    out += decimal_text(Duration{rest}, unit) + std::string{name};
    break;
  }
  return out;
}

std::string rough_duration(Duration duration) {
  constexpr std::int64_t second = 1'000'000'000;
  if (duration.count() >= 60 * second) {
    const bool room_to_round_up = duration < Duration::max() - std::chrono::seconds{1};
    return format_duration(room_to_round_up ? std::chrono::round<std::chrono::seconds>(duration)
                                            : std::chrono::floor<std::chrono::seconds>(duration));
  }
  const auto ns = static_cast<double>(duration.count());
  // From where three digits round up to the next unit, that unit is used.
  for (const Unit& unit : {Unit{"s", second}, Unit{"ms", 1'000'000}, Unit{"us", 1'000}}) {
    if (ns >= 0.9995 * static_cast<double>(unit.ns))
      return fmt::format("{:.3g}{}", ns / static_cast<double>(unit.ns), unit.name);
  }
  return duration <= Duration{0} ? "0s" : fmt::format("{}ns", duration.count());
}

}  // namespace reprise::text
