#include "terminal/recording.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <istream>
#include <ostream>

namespace reprise::terminal {
namespace {

constexpr std::uint32_t lost_byte = 0xDC00;  // plus the byte: a half of a pair that no text can have

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Bytes of the UTF-8 character at the front; 0: it is none.
std::size_t character_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length > text.size()) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if (!is_continuation(text[at])) return 0;
  }
  return length;
}

std::string escaped_unit(std::uint32_t unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) text += digits[unit >> shift & 0x0FU];
  return text;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char first = text.front();
    if (length == 0) {
      out += escaped_unit(lost_byte + static_cast<unsigned char>(first));
    } else if (first == '"' || first == '\\') {
      out += std::string{'\\', first};
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7F) {
      out += escaped_unit(static_cast<unsigned char>(first));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + "\"";
}

// What write() has written, and nothing more: this is not a reader of JSON.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_{line} {}

  bool skip(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    rest_.remove_prefix(words.size());
    return true;
  }

  template <class Number>
  bool number(Number& value) {
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (problem != std::errc{}) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  bool text(std::string& value) {
    if (!skip("\"")) return false;
    while (!rest_.empty()) {
      const char next = rest_.front();
      rest_.remove_prefix(1);
      if (next == '"') return true;
      if (next != '\\') {
        value += next;
      } else if (!escaped(value)) {
        return false;
      }
    }
    return false;
  }

  bool at_end() const { return rest_.empty(); }

 private:
  bool escaped(std::string& value) {
    if (rest_.empty()) return false;
    const char kind = rest_.front();
    rest_.remove_prefix(1);
    if (kind == 'n' || kind == 'r') return value += kind == 'n' ? '\n' : '\r', true;
    if (kind != 'u') return value += kind, true;
    unsigned unit = 0;
    const std::string_view digits = rest_.substr(0, 4);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (problem != std::errc{} || end != digits.data() + 4) return false;
    rest_.remove_prefix(4);
    value += static_cast<char>(unit & 0xFFU);
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<Size> parse_size(std::string_view text) {
  Size size;
  LineReader reader{text};
  if (!reader.number(size.width) || !reader.skip("x") || !reader.number(size.height) || !reader.at_end())
    return std::nullopt;
  return size;
}

std::string to_text(Size size) { return std::to_string(size.width) + "x" + std::to_string(size.height); }

void write(std::ostream& out, const Recording& recording) {
  out << "{\"version\": 2, \"width\": " << recording.size.width << ", \"height\": " << recording.size.height << "}\n";
  for (const Happening& happening : recording.happenings) {
    std::array<char, 32> seconds{};
    const auto end =
        std::to_chars(seconds.data(), seconds.data() + seconds.size(), happening.seconds, std::chars_format::fixed, 6)
            .ptr;
    out << '[' << std::string_view{seconds.data(), end} << ", \"" << static_cast<char>(happening.kind) << "\", "
        << quoted(happening.data) << "]\n";
  }
}

std::optional<Recording> read_recording(std::istream& in) {
  Recording recording;
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  LineReader head{line};
  const bool is_head = head.skip("{\"version\": 2, \"width\": ") && head.number(recording.size.width) &&
                       head.skip(", \"height\": ") && head.number(recording.size.height) && head.skip("}") &&
                       head.at_end();
  if (!is_head) return std::nullopt;
  while (std::getline(in, line)) {
    LineReader reader{line};
    Happening happening;
    std::string kind;
    const bool is_happening = reader.skip("[") && reader.number(happening.seconds) && reader.skip(", ") &&
                              reader.text(kind) && reader.skip(", ") && reader.text(happening.data) &&
                              reader.skip("]") && reader.at_end();
    if (!is_happening || kind.size() != 1 || std::string_view{"orim"}.find(kind) == std::string_view::npos)
      return std::nullopt;
    happening.kind = static_cast<Kind>(kind.front());
    recording.happenings.push_back(std::move(happening));
  }
  return recording;
}

}  // namespace reprise::terminal
