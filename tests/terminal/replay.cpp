#include "terminal/replay.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <re2/re2.h>

namespace reprise::terminal {
namespace {

using testing_support::Cell;
using testing_support::Row;
using testing_support::Screen;

constexpr std::string_view update_begins = "\x1b[?2026h";
constexpr std::string_view update_ends = "\x1b[?2026l";
constexpr std::string_view cursor_off = "\x1b[?25l";
constexpr std::string_view cursor_on = "\x1b[?25h";

// Bytes, not characters: what is not UTF-8 is the screen's business.
const RE2& frame_content() {
  static const RE2 expression{R"((?:\r|\n|\x1b\[\d*A|\x1b\[K|\x1b\[J|\x1b\[[\d;]*m|[^\x00-\x1f\x7f])*)", RE2::Latin1};
  return expression;
}
const RE2& text_between() {
  static const RE2 expression{R"((?:\r|\n|\x1b\[[\d;]*m|[^\x00-\x1f\x7f])*)", RE2::Latin1};
  return expression;
}

std::string shown(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 200)) {
    if (byte == '\x1b') {
      text += "\\e";
    } else if (byte == '\r' || byte == '\n') {
      text += byte == '\r' ? "\\r" : "\\n";
    } else {
      text += byte;
    }
  }
  return text;
}

// What is on the screen before a frame, and where: a row keeps its number when it is scrolled.
struct Before {
  std::size_t first = 0;
  std::vector<Row> rows = {};

  explicit Before(const Screen& screen) : first{screen.scrolled()} {
    for (std::size_t number = 0; number < screen.height(); ++number) rows.push_back(screen.row(number));
  }

  // Text that was erased and came back the same; "" when there is none.
  std::string flicker(const Screen& screen) const {
    for (std::size_t number = 0; number < screen.height(); ++number) {
      const std::size_t here = screen.scrolled() + number;
      if (here < first || here >= first + rows.size()) continue;
      const std::vector<Cell>& old = rows[here - first].cells;
      const std::vector<Cell>& now = screen.row(number).cells;
      const auto same = [&](std::size_t column) {
        return now[column].was_cleared && !now[column].blank() && now[column].same_as(old[column]);
      };
      for (std::size_t column = 0; column < std::min(old.size(), now.size()); ++column) {
        if (same(column)) return screen.row(number).text();
      }
    }
    return {};
  }
};

class Player {
 public:
  Player(const Recording& recording, const Look& look)
      : recording_{recording},
        look_{look},
        first_line_{look.first_line},
        never_stays_{look.never_stays},
        result_{.screen = Screen{recording.size.width, recording.size.height}} {}

  Replay play() && {
    for (const Happening& happening : recording_.happenings) {
      seconds_ = happening.seconds;
      switch (happening.kind) {
        case Kind::output:
          take(happening.data);
          break;
        case Kind::resize:
          resize(happening.data);
          break;
        case Kind::input:  // whoever presses a key may be answered at once: the display is taken away, and brought back
        case Kind::mark:
          extra_frames_ += 2;
          break;
      }
    }
    if (in_frame_) complain("the last frame has no end");
    between();
    look_at_the_end();
    return std::move(result_);
  }

 private:
  Screen& screen() { return result_.screen; }
  void complain(const std::string& what) {
    result_.complaints.push_back("frame " + std::to_string(result_.frames.size() + 1) + " at " +
                                 std::to_string(seconds_) + " s: " + what);
  }

  void resize(std::string_view text) {
    const Size size = parse_size(text).value_or(recording_.size);
    between();
    screen().resize(size.width, size.height);
    resized_frames_ = frames_after_resize;
    late_until_ = seconds_ + late_after_resize;
    ++extra_frames_;
  }

  void take(std::string_view bytes) {
    collected_ += bytes;
    while (true) {
      const std::string_view wanted = in_frame_ ? update_ends : update_begins;
      const std::size_t at = collected_.find(wanted);
      if (at == std::string::npos) break;
      const std::size_t end = in_frame_ ? at + wanted.size() : at;
      const std::string piece = collected_.substr(0, end);
      collected_.erase(0, end);
      in_frame_ ? frame(piece) : text(piece);
      in_frame_ = !in_frame_;
    }
    // A picture is complete only with its end; text between frames can be looked at when no more comes.
  }

  void between() {
    if (!in_frame_) text(std::exchange(collected_, {}));
  }

  void text(const std::string& piece) {
    if (!RE2::FullMatch(piece, text_between())) complain("this stands between frames: " + shown(piece));
    feed(piece);
  }

  void feed(const std::string& piece) {
    const std::size_t known = screen().garbage().size();
    screen().feed(piece);
    for (const std::string& what : std::span{screen().garbage()}.subspan(known)) complain("not understood: " + what);
    if (screen().mid_sequence()) complain("it ends in the middle of a character or sequence");
  }

  void frame(const std::string& piece) {
    std::string_view inside = piece;
    inside.remove_prefix(update_begins.size());
    inside.remove_suffix(update_ends.size());
    if (inside.starts_with(cursor_off) && inside.ends_with(cursor_on) &&
        inside.size() >= cursor_off.size() + cursor_on.size()) {
      inside.remove_prefix(cursor_off.size());
      inside.remove_suffix(cursor_on.size());
    } else {
      complain("it does not hide the cursor first and show it last");
    }
    if (!RE2::FullMatch(inside, frame_content())) complain("it does more than a frame may: " + shown(inside));

    screen().forget_clears();
    const Before before{screen()};
    feed(piece);
    if (!screen().cursor_visible()) complain("the cursor stays hidden");
    if (screen().style() != testing_support::Style{}) complain("the colour stays on");
    const std::size_t above_before = kept_.size();
    look_at_display();
    const bool only_display = result_.frames.back().above.size() == above_before && resized_frames_ == 0;
    if (const std::string same = before.flicker(screen()); only_display && !same.empty()) {
      complain("it erases what it then writes again: " + same);
      result_.crossed_a_resize = result_.crossed_a_resize || seconds_ < late_until_;
    }
    // What was drawn for the size before may still come after a change, once; what follows is drawn anew.
    const bool is_too_wide = fills_last_column();
    if (resized_frames_ == 0 && is_too_wide) complain("the display reaches into the last column");
    result_.crossed_a_resize = result_.crossed_a_resize || (resized_frames_ == frames_after_resize && is_too_wide);
    resized_frames_ -= resized_frames_ > 0 ? 1 : 0;
    if (static_cast<double>(result_.frames.size()) >
        seconds_ * look_.frames_per_second + static_cast<double>(extra_frames_)) {
      complain("too many frames: this is number " + std::to_string(result_.frames.size()));
    }
  }

  void look_at_display() {
    Moment moment{.seconds = seconds_};
    const std::vector<std::string> lines = screen().lines();
    const auto is_first = [this](const std::string& line) { return RE2::PartialMatch(line, first_line_); };
    const auto begin = std::ranges::find_if(lines, is_first);
    moment.above.assign(lines.begin(), begin);
    moment.display.assign(begin, lines.end());
    // Rows, because a leftover can be joined to what comes after it.
    if (std::ranges::count_if(screen().all_rows(), is_first) > 1)
      complain("there is more than one display:\n" + in_words(moment.display));
    // Only lines that were printed above a display are known to stay.
    if (!kept_.empty() &&
        !std::ranges::equal(std::span{moment.above}.first(std::min(kept_.size(), moment.above.size())), kept_)) {
      complain("a line above the display has changed or is gone");
    }
    look_for_leftovers(moment.above);
    if (!moment.display.empty()) kept_ = moment.above;
    result_.frames.push_back(std::move(moment));
  }

  bool fills_last_column() {
    bool in_display = false;
    for (std::size_t number = 0; number < screen().height(); ++number) {
      const Row& row = screen().row(number);
      in_display = in_display || RE2::PartialMatch(row.text(), first_line_);
      if (in_display && !row.cells.back().blank()) return true;
    }
    return false;
  }

  void look_for_leftovers(const std::vector<std::string>& lines) {
    if (look_.never_stays.empty()) return;
    for (std::size_t index = looked_at_; index < lines.size(); ++index) {
      if (RE2::PartialMatch(lines[index], never_stays_)) complain("this is left of an older display: " + lines[index]);
    }
    looked_at_ = std::max(looked_at_, lines.size());
  }

  void look_at_the_end() {
    if (screen().updating()) complain("at the end: the update is not over");
    if (!screen().cursor_visible()) complain("at the end: the cursor is hidden");
    const std::vector<std::string> lines = screen().lines();
    if (lines.size() < kept_.size() || !std::ranges::equal(std::span{lines}.first(kept_.size()), kept_)) {
      complain("at the end: a line above the display has changed or is gone");
    }
    const bool was_cut_off = !result_.frames.empty() && !result_.frames.back().display.empty();
    if (!was_cut_off) look_for_leftovers(lines);
  }

  const Recording& recording_;
  const Look& look_;
  RE2 first_line_;
  RE2 never_stays_;
  Replay result_;
  std::string collected_;
  bool in_frame_ = false;
  static constexpr int frames_after_resize = 2;
  static constexpr double late_after_resize =
      1.0;  // on a busy machine more frames of the size before are still on their way
  double late_until_ = 0;
  int resized_frames_ = 0;        // how many of the next ones may be of the size before, or drawn anew
  std::size_t extra_frames_ = 2;  // the first and the last one
  double seconds_ = 0;
  std::size_t looked_at_ = 0;      // so many lines above the display were searched for leftovers
  std::vector<std::string> kept_;  // all lines above the display, as they were at the last frame
};

}  // namespace

Replay replay(const Recording& recording, const Look& look) { return Player{recording, look}.play(); }

std::string in_words(const std::vector<std::string>& complaints) {
  constexpr std::size_t shown_max = 12;
  std::string text;
  for (const std::string& complaint : std::span{complaints}.first(std::min(complaints.size(), shown_max)))
    text += complaint + "\n";
  if (complaints.size() > shown_max) text += "… and " + std::to_string(complaints.size() - shown_max) + " more\n";
  return text;
}

}  // namespace reprise::terminal
