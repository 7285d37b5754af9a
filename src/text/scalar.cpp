#include "text/scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include "text/ascii.hpp"

namespace reprise::text {
namespace {

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) noexcept {
  return std::ranges::find(words, text) != words.end();
}

std::string_view without_sign(std::string_view text) noexcept {
  return !text.empty() && (text.front() == '-' || text.front() == '+') ? text.substr(1) : text;
}

bool all_digits(std::string_view text) noexcept { return !text.empty() && std::ranges::all_of(text, is_digit); }

// A decimal number taken apart: value = 0.DIGITS… × 10^point, sign aside.
struct Decimal {
  bool negative = false;
  std::string digits;  // without leading zeros, at most kept_max of them
  std::int64_t point = 0;

  static constexpr std::size_t kept_max =
      40;  // twice what 2^63 needs: what is cut off cannot change a rounding to nanoseconds
};

std::optional<std::int64_t> read_exponent(std::string_view text) noexcept {
  if (text.empty()) return 0;
  text.remove_prefix(1);  // e or E
  const bool negative = text.starts_with('-');
  text = without_sign(text);
  if (!all_digits(text)) return std::nullopt;
  constexpr std::int64_t absurd = 1'000'000;  // far beyond any double; keeps sums small
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > absurd) value = absurd;
  return negative ? -value : value;
}

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal decimal;
  decimal.negative = text.starts_with('-');
  text = without_sign(text);
  const std::size_t exponent_at = text.find_first_of("eE");
  const auto exponent = read_exponent(exponent_at == std::string_view::npos ? "" : text.substr(exponent_at));
  if (!exponent) return std::nullopt;
  text = text.substr(0, exponent_at);
  bool any_digit = false;
  bool past_point = false;
  for (const char c : text) {
    if (c == '.' && !past_point) {
      past_point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    any_digit = true;
    const bool leading_zero = decimal.digits.empty() && c == '0';
    if (!leading_zero && decimal.digits.size() < Decimal::kept_max) decimal.digits += c;
    if (!past_point && !leading_zero) ++decimal.point;
    if (past_point && leading_zero) --decimal.point;
  }
  if (!any_digit) return std::nullopt;
  decimal.point += *exponent;
  return decimal;
}

}  // namespace

NodeType scalar_type(std::string_view text) noexcept {
  if (is_any_of(text, {"", "~", "null", "Null", "NULL"})) return NodeType::null;
  if (is_any_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return NodeType::boolean;
  const std::string_view bare = without_sign(text);
  if (all_digits(bare)) return NodeType::integer;
  if (is_any_of(bare, {".inf", ".Inf", ".INF"}) || is_any_of(text, {".nan", ".NaN", ".NAN"})) return NodeType::number;
  const bool may_be_number = !bare.empty() && (is_digit(bare.front()) || bare.front() == '.');
  return may_be_number && read_decimal(text) ? NodeType::number : NodeType::string;
}

std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> finite_number(std::string_view text) noexcept {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small is as good as zero; too large is not a number anybody meant.
    const auto decimal = read_decimal(text);
    return decimal && decimal->point < 0 ? std::optional{0.0} : std::nullopt;
  }
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<Duration> decimal_duration(std::string_view text, std::int64_t unit_ns) noexcept {
  auto decimal = read_decimal(text);
  if (!decimal) return std::nullopt;
  if (decimal->digits.empty()) return Duration{0};
  if (decimal->negative) return std::nullopt;
  for (std::int64_t unit = unit_ns; unit > 1; unit /= 10) ++decimal->point;
  if (decimal->point > 19) return std::nullopt;  // 2^63 has 19 digits
  std::uint64_t value = 0;
  for (std::int64_t place = 0; place < decimal->point; ++place) {
    const auto index = static_cast<std::size_t>(place);
    value =
        value * 10 + (index < decimal->digits.size() ? static_cast<std::uint64_t>(decimal->digits[index] - '0') : 0);
  }
  // Half a nanosecond and more rounds up.
  const bool rounds_up = decimal->point >= 0 && static_cast<std::size_t>(decimal->point) < decimal->digits.size() &&
                         decimal->digits[static_cast<std::size_t>(decimal->point)] >= '5';
  if (rounds_up) ++value;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return Duration{static_cast<std::int64_t>(value)};
}

std::string decimal_text(Duration duration, std::int64_t unit_ns) {
  const std::int64_t whole = duration.count() / unit_ns;
  std::int64_t rest = duration.count() % unit_ns;
  if (rest == 0) return fmt::format("{}", whole);
  std::string fraction;
  for (std::int64_t unit = unit_ns / 10; rest != 0; unit /= 10) {
    fraction += static_cast<char>('0' + rest / unit);
    rest %= unit;
  }
  return fmt::format("{}.{}", whole, fraction);
}

}  // namespace reprise::text
