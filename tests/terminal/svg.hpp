// A terminal window as SVG: the last screen of a recording, or a few moments of it as a film that begins again and again.
//
// It needs no script and no font of its own, so it works inside of an <img>. Every piece of text is held to its columns, whatever font the reader has.
// Where nothing moves (readers who asked for less motion, programs that know no animation) the last moment is shown. The text of the last moment
// stands in <desc>, for people who cannot see it and for programs that compare it.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "terminal/recording.hpp"

namespace reprise::terminal {

struct Picture {
  std::string title;         // for people who cannot see it
  std::string window_title;  // stands on top of the window
  std::size_t moments = 1;   // more than 1: a film of at most that many
};

std::string svg_of(const Recording& recording, const Picture& picture);

std::vector<std::string> last_screen(const Recording& recording);  // without empty rows at its end

}  // namespace reprise::terminal
