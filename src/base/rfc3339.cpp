#include "base/rfc3339.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace reprise::base {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::seconds;

// ---- writing ----

template <class Number>
std::string padded(Number number, std::size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

std::string fraction_of(std::chrono::nanoseconds rest) {
  if (rest.count() == 0) return "";
  std::string digits = padded(rest.count(), 9);
  while (digits.ends_with("000")) digits.resize(digits.size() - 3);
  return "." + digits;
}

// ---- reading ----

std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  const char* const end = text.data() + std::min(digits, text.size());
  const auto read = std::from_chars(text.data(), end, number);
  if (text.size() < digits || text.front() == '-' || read.ptr != end || read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

bool skip(std::string_view& text, std::string_view any_of) {
  if (text.empty() || !any_of.contains(text.front())) return false;
  text.remove_prefix(1);
  return true;
}

// std::nullopt: a point without digits.
std::optional<std::chrono::nanoseconds> take_fraction(std::string_view& text) {
  if (!skip(text, ".")) return std::chrono::nanoseconds{0};
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string digits{text.substr(0, end)};
  text.remove_prefix(end);
  if (digits.empty()) return std::nullopt;
  digits.resize(9, '0');
  std::int64_t nanoseconds = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), nanoseconds);
  return std::chrono::nanoseconds{nanoseconds};
}

// Z, +01:00, -05:30: what to subtract to get UTC.
std::optional<std::chrono::minutes> parse_zone(std::string_view text) {
  if (skip(text, "Zz")) return text.empty() ? std::optional{std::chrono::minutes{0}} : std::nullopt;
  const bool is_west = text.starts_with('-');
  if (!skip(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || !skip(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || !text.empty() || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::chrono::minutes offset = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
  return is_west ? -offset : offset;
}

}  // namespace

std::string utc_clock(UtcTime time) {
  const auto whole = floor<seconds>(time);
  const std::chrono::hh_mm_ss clock{whole - floor<days>(whole)};
  return padded(clock.hours().count(), 2) + ":" + padded(clock.minutes().count(), 2) + ":" +
         padded(clock.seconds().count(), 2);
}

std::string to_rfc3339(UtcTime time) {
  const auto whole = floor<seconds>(time);
  const std::chrono::year_month_day date{floor<days>(whole)};
  // Not the difference of the two: before the first whole second that nanoseconds reach there is none.
  constexpr std::int64_t second_ns = 1'000'000'000;
  const std::int64_t rest = time.time_since_epoch().count() % second_ns;
  return padded(static_cast<int>(date.year()), 4) + "-" + padded(static_cast<unsigned>(date.month()), 2) + "-" +
         padded(static_cast<unsigned>(date.day()), 2) + "T" + utc_clock(time) +
         fraction_of(std::chrono::nanoseconds{rest < 0 ? rest + second_ns : rest}) + "Z";
}

std::optional<UtcTime> parse_rfc3339(std::string_view text) {
  const auto year = take_number(text, 4);
  const bool dash = skip(text, "-");
  const auto month = take_number(text, 2);
  const bool dash2 = skip(text, "-");
  const auto day = take_number(text, 2);
  const bool separator = skip(text, "Tt ");
  const auto hour = take_number(text, 2);
  const bool colon = skip(text, ":");
  const auto minute = take_number(text, 2);
  const bool colon2 = skip(text, ":");
  const auto second = take_number(text, 2);
  if (!year || !dash || !month || !dash2 || !day || !separator || !hour || !colon || !minute || !colon2 || !second)
    return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto zone = parse_zone(text);
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  constexpr int last_year = 2261;  // nanoseconds in 64 bits end in 2262
  const bool in_range = *year >= 1970 && *year <= last_year && *hour <= 23 && *minute <= 59 && *second <= 59;
  if (!fraction || !zone || !date.ok() || !in_range) return std::nullopt;
  const UtcTime local = UtcTime{std::chrono::sys_days{date}} + std::chrono::hours{*hour} +
                        std::chrono::minutes{*minute} + seconds{*second} + *fraction;
  return local - *zone;
}

}  // namespace reprise::base
