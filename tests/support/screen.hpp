// A terminal for tests: bytes go in, a grid of characters with styles comes out. Small and strict.
//
//   Screen screen{80, 24};
//   screen.feed("one\r\ntwo\x1b[A\r\x1b[Kthree");
//   screen.rows();      // {"three", "two", "", …}
//   screen.garbage();   // {}: all of it was understood
//
// It knows what a well-behaved progress display needs: CR, LF, cursor up, erase to the end of the line or of the screen, colours, and the
// modes 25 (cursor) and 2026 (synchronized update). Everything else, bytes that are not UTF-8, tabs and bells too, is garbage and changes nothing.
// A line that is too long wraps softly and is laid out anew when the width changes, as tmux and VTE do it; scrollback has no limit.
// Not supported: characters that join others to one picture (flags, families). Thread safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::testing_support {

constexpr std::int32_t default_colour = -1;
constexpr std::int32_t first_rgb_colour =
    0x1000000;  // added to 0xRRGGBB; what is below is a number of the palette of 256

struct Style {
  std::int32_t foreground = default_colour;
  std::int32_t background = default_colour;
  bool bold = false;
  bool dim = false;
  bool italic = false;
  bool underlined = false;
  bool inverse = false;

  bool operator==(const Style&) const = default;
};

struct Cell {
  std::string text = {};   // one character with what combines with it; "": never written, or erased
  bool is_second = false;  // right half of a wide character; its text is ""
  Style style = {};
  bool was_cleared = false;  // something visible was erased here since forget_clears()

  bool same_as(const Cell& other) const {
    return text == other.text && is_second == other.is_second && style == other.style;
  }
  bool blank() const { return text.empty() && !is_second; }
};

struct Row {
  std::vector<Cell> cells = {};
  bool continues = false;  // the line goes on in the next row, because it did not fit

  std::size_t used() const;  // columns up to the last one that was written
  std::string text() const;  // without blanks at its end
};

class Screen {
 public:
  Screen(std::size_t width, std::size_t height);

  void feed(std::string_view bytes);
  void resize(std::size_t width, std::size_t height);

  // ---- what a person sees ----
  std::size_t width() const noexcept { return width_; }
  std::size_t height() const noexcept { return height_; }
  const Row& row(std::size_t number) const { return all_[top() + number]; }
  std::vector<std::string> rows() const;      // all `height` of them
  std::vector<std::string> all_rows() const;  // with those that were scrolled away
  // Scrollback and screen as lines: what was wrapped is one line again. Empty ones at the end are left out.
  std::vector<std::string> lines() const;

  std::size_t cursor_row() const noexcept { return cursor_row_; }
  std::size_t cursor_column() const noexcept { return cursor_column_; }
  bool cursor_visible() const noexcept { return cursor_visible_; }
  bool updating() const noexcept { return updating_; }  // between the two ends of a synchronized update
  const Style& style() const noexcept { return style_; }

  // ---- what a test wants to know ----
  const std::vector<std::string>& garbage() const noexcept { return garbage_; }
  bool mid_sequence() const noexcept { return !pending_.empty(); }  // the last bytes need more to mean something
  std::size_t scrolled() const noexcept { return top(); }           // rows above the screen
  void forget_clears();

 private:
  std::size_t top() const noexcept { return all_.size() - height_; }
  Row& cursor_line() { return all_[top() + cursor_row_]; }
  Row empty_row() const;

  std::size_t take_token(std::string_view bytes);  // how many it has used; 0: it needs more
  std::size_t take_escape(std::string_view bytes);
  std::size_t take_character(std::string_view bytes);
  bool control(std::string_view parameters, char final);
  bool colours(std::string_view parameters);
  void put(std::string_view character, std::size_t columns);
  void combine(std::string_view character);
  void line_feed();
  void erase(Row& row, std::size_t from);
  void not_known(std::string what) { garbage_.push_back(std::move(what)); }

  std::size_t width_;
  std::size_t height_;
  std::vector<Row> all_;  // scrollback, then the screen
  std::size_t cursor_row_ = 0;
  std::size_t cursor_column_ = 0;
  bool wraps_next_ = false;  // the last column was written: the next character goes to the next row
  bool cursor_visible_ = true;
  bool updating_ = false;
  Style style_ = {};
  std::string pending_;
  std::vector<std::string> garbage_;
};

// How many columns a character takes: 0, 1 or 2.
std::size_t columns_of(char32_t character);

}  // namespace reprise::testing_support
