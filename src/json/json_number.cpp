#include "json/json_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

namespace reprise::json {
namespace {

constexpr double two_to_63 = 9'223'372'036'854'775'808.0;
constexpr double two_to_64 = 18'446'744'073'709'551'616.0;

// Conversion to double would round what lies beyond 2^53, therefore the double is cut to a whole number instead.
template <typename Whole>
std::partial_ordering compare_whole(Whole left, double right, double lowest, double beyond) noexcept {
  if (std::isnan(right)) return std::partial_ordering::unordered;
  if (right < lowest) return std::partial_ordering::greater;
  if (right >= beyond) return std::partial_ordering::less;
  const double cut = std::trunc(right);
  const auto whole = static_cast<Whole>(cut);
  if (left != whole) return left <=> whole;
  return cut <=> right;
}

std::partial_ordering compare_to_double(const Json& left, double right) noexcept {
  if (const auto* whole = left.if_int64()) return compare_whole(*whole, right, -two_to_63, two_to_63);
  if (const auto* whole = left.if_uint64()) return compare_whole(*whole, right, 0.0, two_to_64);
  return left.get_double() <=> right;
}

std::partial_ordering reversed(std::partial_ordering order) noexcept {
  if (order == std::partial_ordering::less) return std::partial_ordering::greater;
  if (order == std::partial_ordering::greater) return std::partial_ordering::less;
  return order;
}

__extension__ typedef unsigned __int128 Wide;

// |value| = mantissa * 10^exponent, with the fewest digits that mean this value.
struct Decimal {
  std::uint64_t mantissa = 0;
  int exponent = 0;
};

Decimal without_zeros(Decimal decimal) noexcept {
  while (decimal.mantissa != 0 && decimal.mantissa % 10 == 0) {
    decimal.mantissa /= 10;
    ++decimal.exponent;
  }
  return decimal;
}

Decimal decimal_of(double value) noexcept {
  std::array<char, 32> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value), std::chars_format::scientific);
  const std::string_view text{buffer.data(), static_cast<std::size_t>(written.ptr - buffer.data())};
  const std::size_t mark = text.find('e');
  if (mark == std::string_view::npos) return {};
  Decimal decimal;
  for (const char c : text.substr(0, mark)) {
    if (c == '.') continue;
    decimal.mantissa = decimal.mantissa * 10 + static_cast<std::uint64_t>(c - '0');
  }
  const std::size_t digits = text[mark + 1] == '+' ? mark + 2 : mark + 1;
  std::from_chars(text.data() + digits, text.data() + text.size(), decimal.exponent);
  decimal.exponent -= mark >= 2 ? static_cast<int>(mark) - 2 : 0;
  return without_zeros(decimal);
}

// All digits of a number, however many: 0.DIGITS × 10^point, without zeros at either end; none for 0.
struct Digits {
  bool negative = false;
  std::string digits;
  std::int64_t point = 0;

  bool operator==(const Digits&) const = default;
};

// Of a JSON number.
Digits digits_in(std::string_view text) {
  constexpr std::int64_t exponent_max = 1'000'000'000'000;  // more than a text has digits; keeps sums small
  Digits all;
  all.negative = text.front() == '-';
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  std::int64_t point = -1;  // digits before it; -1: it has not come yet
  for (const char c : text.substr(0, mark)) {
    if (c == '.') point = static_cast<std::int64_t>(all.digits.size());
    if (c >= '0' && c <= '9') all.digits += c;
  }
  all.point = point < 0 ? static_cast<std::int64_t>(all.digits.size()) : point;
  if (mark < text.size()) {
    std::string_view power = text.substr(mark + 1);
    if (power.front() == '+') power.remove_prefix(1);
    std::int64_t exponent = power.front() == '-' ? -exponent_max : exponent_max;  // also when it has too many digits
    std::from_chars(power.data(), power.data() + power.size(), exponent);
    all.point += std::clamp(exponent, -exponent_max, exponent_max);
  }
  const std::size_t first = std::min(all.digits.find_first_not_of('0'), all.digits.size());
  all.digits.erase(0, first);
  all.point -= static_cast<std::int64_t>(first);
  all.digits.erase(all.digits.find_last_not_of('0') + 1);
  return all.digits.empty() ? Digits{} : all;
}

std::partial_ordering compare_digits(const Digits& left, const Digits& right) {
  if (left == right) return std::partial_ordering::equivalent;
  const auto sign = [](const Digits& number) { return number.digits.empty() ? 0 : number.negative ? -1 : 1; };
  if (sign(left) != sign(right)) return sign(left) <=> sign(right);
  const bool is_smaller = left.point != right.point ? left.point < right.point : left.digits < right.digits;
  return is_smaller != left.negative ? std::partial_ordering::less : std::partial_ordering::greater;
}

bool is_held_by_spelling(const Json& number) noexcept { return !number.is_number(); }

Decimal decimal_of(const Json& number) noexcept {
  const Json value = computable(number);
  if (const auto* whole = value.if_int64()) {
    const auto bits = static_cast<std::uint64_t>(*whole);
    return without_zeros({*whole < 0 ? 0 - bits : bits, 0});
  }
  if (const auto* whole = value.if_uint64()) return without_zeros({*whole, 0});
  return decimal_of(value.get_double());
}

std::size_t mixed(std::size_t seed, std::size_t hash) noexcept {
  return (seed ^ hash) * 0x9E37'79B9'7F4A'7C15U + (hash >> 29U);
}

std::size_t hash_of_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

double rounded(const Json& number) noexcept {
  const Json value = computable(number);
  if (const auto* whole = value.if_int64()) return static_cast<double>(*whole);
  if (const auto* whole = value.if_uint64()) return static_cast<double>(*whole);
  return value.get_double();
}

}  // namespace

std::partial_ordering compare_numbers(const Json& left, const Json& right) {
  if (is_held_by_spelling(left) || is_held_by_spelling(right))
    return compare_digits(digits_in(to_text(left)), digits_in(to_text(right)));
  if (right.is_double()) return compare_to_double(left, right.get_double());
  if (left.is_double()) return reversed(compare_to_double(right, left.get_double()));
  if (left.is_int64() && right.is_int64()) return left.get_int64() <=> right.get_int64();
  if (left.is_uint64() && right.is_uint64()) return left.get_uint64() <=> right.get_uint64();
  if (left.is_int64()) {
    if (left.get_int64() < 0) return std::partial_ordering::less;
    return static_cast<std::uint64_t>(left.get_int64()) <=> right.get_uint64();
  }
  return reversed(compare_numbers(right, left));
}

bool is_whole(const Json& value) {
  if (value.is_int64() || value.is_uint64()) return true;
  if (is_number(value) && is_held_by_spelling(value)) {
    const Digits all = digits_in(to_text(value));
    return static_cast<std::int64_t>(all.digits.size()) <= all.point;
  }
  return value.is_double() && std::trunc(value.get_double()) == value.get_double();
}

bool is_multiple(const Json& value, const Json& divisor) noexcept {
  const Decimal dividend = decimal_of(value);
  const Decimal unit = decimal_of(divisor);
  if (dividend.mantissa == 0) return true;
  if (unit.mantissa == 0) return false;
  if (dividend.exponent < unit.exponent) return false;  // it has digits where the divisor and its multiples have none
  Wide remainder = dividend.mantissa % unit.mantissa;
  for (int zero = unit.exponent; zero < dividend.exponent && remainder != 0; ++zero)
    remainder = remainder * 10 % unit.mantissa;
  return remainder == 0;
}

std::size_t hash_of(const Json& value) {
  if (is_number(value)) return std::hash<double>{}(rounded(value));
  const std::size_t seed = static_cast<std::size_t>(value.kind()) + 1;
  switch (value.kind()) {
    case boost::json::kind::string:
      return hash_of_text({value.get_string().data(), value.get_string().size()});
    case boost::json::kind::array: {
      std::size_t hash = seed;
      for (const Json& element : value.get_array()) hash = mixed(hash, hash_of(element));
      return hash;
    }
    case boost::json::kind::object: {
      std::size_t sum = 0;  // the order of the members must not matter
      for (const auto& member : value.get_object()) {
        const std::string_view key{member.key().data(), member.key().size()};
        sum += mixed(hash_of_text(key), hash_of(member.value()));
      }
      return mixed(seed, sum);
    }
    case boost::json::kind::bool_:
      return mixed(seed, value.get_bool() ? 1 : 2);
    default:
      return seed;
  }
}

}  // namespace reprise::json
