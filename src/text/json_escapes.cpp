#include "text/json_escapes.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "text/utf8.hpp"

namespace reprise::text {
namespace {

constexpr std::size_t pair_bytes = 12;  // \ud83d\ude00

// The code of the \uXXXX escape at `at`; 0 if there is none.
unsigned escape_at(std::string_view source, std::size_t at) noexcept {
  if (at + 6 > source.size() || source.substr(at, 2) != "\\u") return 0;
  const char* begin = source.data() + at + 2;
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(begin, begin + 4, value, 16);
  return error == std::errc{} && stop == begin + 4 ? value : 0;
}

// The character that two escapes at `at` stand for; 0 if they do not.
unsigned pair_at(std::string_view source, std::size_t at) noexcept {
  const unsigned high = escape_at(source, at);
  const unsigned low = high >= 0xD800 && high < 0xDC00 ? escape_at(source, at + 6) : 0;
  return low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((high - 0xD800) << 10U) + (low - 0xDC00) : 0;
}

bool looks_like_json(std::string_view source) noexcept {
  const std::size_t first = source.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (source[first] == '{' || source[first] == '[' || source[first] == '"');
}

// Copies a text and knows the place of its end.
class Writer {
 public:
  void write(std::string_view part) {
    text_ += part;
    while (!part.empty()) {
      const bool line_end = part.front() == '\n';
      place_.line += line_end ? 1 : 0;
      place_.column = line_end ? 1 : place_.column + 1;
      part.remove_prefix(std::max<std::size_t>(first_character(part).bytes, 1));
    }
  }
  const Place& place() const noexcept { return place_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  Place place_;
};

}  // namespace

JoinedEscapes join_surrogate_escapes(std::string_view source) {
  if (!looks_like_json(source) || source.find("\\u") == std::string_view::npos) return {};
  JoinedEscapes joined;
  Writer writer;
  std::size_t copied = 0;
  bool quoted = false;
  for (std::size_t at = source.find_first_of("\"\\"); at < source.size(); at = source.find_first_of("\"\\", at)) {
    const unsigned character = quoted ? pair_at(source, at) : 0;
    if (character != 0) {
      writer.write(source.substr(copied, at - copied));
      joined.places.push_back(writer.place());
      writer.write(fmt::format("\\U{:08X}", character));
      at += pair_bytes;
      copied = at;
    } else if (source[at] == '"') {
      quoted = !quoted;
      ++at;
    } else {
      at += 2;  // an escape is at least two characters, and an escaped backslash must not begin the next one
    }
  }
  if (joined.places.empty()) return {};
  writer.write(source.substr(copied));
  joined.text = writer.take();
  return joined;
}

Place place_before_joining(Place place, const std::vector<Place>& joined) noexcept {
  const auto before = [](const Place& left, const Place& right) {
    return std::tie(left.line, left.column) < std::tie(right.line, right.column);
  };
  const auto line_begin = std::lower_bound(joined.begin(), joined.end(), Place{place.line, 0}, before);
  const auto here = std::lower_bound(line_begin, joined.end(), place, before);
  place.column += 2 * static_cast<std::uint32_t>(here - line_begin);
  return place;
}

}  // namespace reprise::text
