// What a terminal was sent, and when: a file that can be read, compared and played (it is the format asciicast 2).
//
//   {"version": 2, "width": 100, "height": 30}         first line
//   [0.013, "o", "hello\r\n"]                           output: one read of the terminal
//   [0.250, "r", "60x15"]                               it got another size
//   [0.300, "i", "\u0003"]                              keys were pressed
//   [0.310, "m", "exit 130"]                            something else happened: exit CODE, stopped, signal NAME
//
// Times are seconds since the command was started. A byte that is not UTF-8 stands as \udc80 to \udcff, so that nothing is lost.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::terminal {

struct Size {
  std::size_t width = 80;
  std::size_t height = 24;

  bool operator==(const Size&) const = default;
};

std::optional<Size> parse_size(std::string_view text);  // "100x30"
std::string to_text(Size size);

enum class Kind : char { output = 'o', resize = 'r', input = 'i', mark = 'm' };

struct Happening {
  double seconds = 0;
  Kind kind = Kind::output;
  std::string data = {};

  bool operator==(const Happening&) const = default;
};

struct Recording {
  Size size = {};
  std::vector<Happening> happenings = {};

  bool operator==(const Recording&) const = default;
};

void write(std::ostream& out, const Recording& recording);
std::optional<Recording> read_recording(std::istream& in);  // nothing: this is no recording

}  // namespace reprise::terminal
