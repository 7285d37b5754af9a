// Retry-After (RFC 9110, 10.2.3): whole seconds, or a date in one of HTTP's three forms.
#include <reprise/classify.hpp>

#include <array>
#include <charconv>
#include <limits>

#include "policy/words.hpp"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Reads the parts of a date one after another; once something does not fit, everything after it fails too.
class DateReader {
 public:
  explicit DateReader(std::string_view text) noexcept : rest_{text} {}

  DateReader& literal(std::string_view expected) noexcept {
    ok_ = ok_ && rest_.starts_with(expected);
    if (ok_) rest_.remove_prefix(expected.size());
    return *this;
  }

  DateReader& letters() noexcept {  // the day's name says nothing that the date does not
    std::size_t count = 0;
    while (count < rest_.size() && words::is_word(rest_[count]) && !words::is_digit(rest_[count])) ++count;
    ok_ = ok_ && count >= 3;
    rest_.remove_prefix(count);
    return *this;
  }

  DateReader& month(unsigned& value) noexcept {
    for (unsigned index = 0; ok_ && index < months.size(); ++index) {
      if (rest_.starts_with(months[index])) {
        value = index + 1;
        rest_.remove_prefix(3);
        return *this;
      }
    }
    ok_ = false;
    return *this;
  }

  template <class Integer>
  DateReader& digits(std::size_t count, Integer& value) noexcept {
    if (ok_ && rest_.size() >= count) {
      const char* end = rest_.data() + count;
      const auto [stop, error] = std::from_chars(rest_.data(), end, value);
      ok_ = error == std::errc{} && stop == end && words::is_digit(rest_.front());
      rest_.remove_prefix(count);
    } else {
      ok_ = false;
    }
    return *this;
  }

  bool at_end() const noexcept { return ok_ && rest_.empty(); }
  bool ok() const noexcept { return ok_; }
  char next() const noexcept { return ok_ && !rest_.empty() ? rest_.front() : '\0'; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct DateTime {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;

  std::optional<std::chrono::sys_seconds> instant() const noexcept {
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;  // 60: a leap second
    return std::chrono::sys_days{date} + std::chrono::hours{hour} + std::chrono::minutes{minute} +
           std::chrono::seconds{second};
  }
};

DateReader& read_time(DateReader& reader, DateTime& at) noexcept {
  return reader.digits(2, at.hour).literal(":").digits(2, at.minute).literal(":").digits(2, at.second);
}

// Sun, 06 Nov 1994 08:49:37 GMT
std::optional<DateTime> imf_fixdate(std::string_view text) noexcept {
  DateTime at;
  DateReader reader{text};
  reader.letters()
      .literal(", ")
      .digits(2, at.day)
      .literal(" ")
      .month(at.month)
      .literal(" ")
      .digits(4, at.year)
      .literal(" ");
  return read_time(reader, at).literal(" GMT").at_end() ? std::optional{at} : std::nullopt;
}

// Sunday, 06-Nov-94 08:49:37 GMT; a two-digit year more than 50 years ahead means the past century.
std::optional<DateTime> rfc850_date(std::string_view text, std::chrono::sys_seconds now) noexcept {
  DateTime at;
  DateReader reader{text};
  reader.letters()
      .literal(", ")
      .digits(2, at.day)
      .literal("-")
      .month(at.month)
      .literal("-")
      .digits(2, at.year)
      .literal(" ");
  if (!read_time(reader, at).literal(" GMT").at_end()) return std::nullopt;
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(now)};
  const int this_year = static_cast<int>(today.year());
  at.year += this_year - this_year % 100;
  if (at.year > this_year + 50) at.year -= 100;
  return at;
}

// Sun Nov  6 08:49:37 1994
std::optional<DateTime> asctime_date(std::string_view text) noexcept {
  DateTime at;
  DateReader reader{text};
  reader.letters().literal(" ").month(at.month).literal(" ");
  if (reader.next() == ' ') {
    reader.literal(" ").digits(1, at.day);
  } else {
    reader.digits(2, at.day);
  }
  reader.literal(" ");
  return read_time(reader, at).literal(" ").digits(4, at.year).at_end() ? std::optional{at} : std::nullopt;
}

std::optional<Duration> whole_seconds(std::string_view value) noexcept {
  std::uint64_t seconds = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (stop != value.data() + value.size()) return std::nullopt;
  constexpr std::uint64_t most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1'000'000'000U;
  if (error == std::errc::result_out_of_range || seconds > most) return Duration::max();
  return error == std::errc{} ? std::optional<Duration>{std::chrono::seconds{seconds}} : std::nullopt;
}

}  // namespace

std::optional<Duration> parse_retry_after(std::string_view value, std::chrono::sys_seconds now) noexcept {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  if (value.empty()) return std::nullopt;
  if (words::is_digit(value.front())) return whole_seconds(value);

  std::optional<DateTime> date = imf_fixdate(value);
  if (!date) date = rfc850_date(value, now);
  if (!date) date = asctime_date(value);
  const auto instant = date ? date->instant() : std::nullopt;
  if (!instant) return std::nullopt;
  if (*instant <= now) return Duration{0};
  const std::chrono::seconds ahead = *instant - now;
  const auto most = std::chrono::duration_cast<std::chrono::seconds>(Duration::max());
  return ahead > most ? Duration::max() : std::chrono::duration_cast<Duration>(ahead);
}

}  // namespace reprise
