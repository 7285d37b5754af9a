// Plays a recording on a screen and looks at every frame: does it do only what a frame may do, and does the display stay clean?
//
// A frame is what stands between the two ends of a synchronized update. Complaints are sentences; none means:
// - everything was understood by the terminal, in frames and between them;
// - frames only write, go up, erase and colour; the cursor is hidden only inside of them; nothing but text and colours stands between them;
// - the display never reaches into the last column, and no frame that prints nothing above the display erases something and then writes the same again:
//   that would flicker where a terminal knows no synchronized updates;
// - there is one display at most, at the bottom, after every frame, and nothing of older ones is left anywhere;
// - what was printed above the display stays as it is, for ever;
// - the k-th frame does not come before (k - extra) / frames_per_second seconds; extra are the first, the last, and one for
//   each change of size, key and signal. A frame is never seen before it was written, so a busy
//   machine cannot break this.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/screen.hpp"
#include "terminal/recording.hpp"

namespace reprise::terminal {

struct Look {
  std::string first_line;        // RE2: how the first line of the display looks, and no line that stays
  std::string never_stays = {};  // RE2: what only lines of the display have; "": not looked for
  double frames_per_second = 10;
};

struct Moment {
  double seconds = 0;
  std::vector<std::string> above = {};    // lines that stay
  std::vector<std::string> display = {};  // lines that do not; none: there is no display
};

struct Replay {
  testing_support::Screen screen;  // at the end
  std::vector<std::string> complaints = {};
  std::vector<Moment> frames = {};
  // A frame was drawn for the size before and written after the change: nobody can write and ask for the size in one go,
  // so it goes up too few rows and leaves something; or so many of them were on their way that the one drawn anew came late.
  bool crossed_a_resize = false;
};

Replay replay(const Recording& recording, const Look& look);

std::string in_words(const std::vector<std::string>& complaints);  // one a line, the first few of them

}  // namespace reprise::terminal
