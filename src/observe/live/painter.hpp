// The bytes that turn one picture at the bottom of a terminal into the next.
//
// A picture is one piece of bytes that begins and ends a synchronized update and hides the cursor only in between, so whoever is killed
// leaves a terminal that works. Lines that have not changed are not written; nothing is erased that stays. The cursor rests in the line below
// the picture. Thread safety: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "observe/styled.hpp"

namespace reprise::observe {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;

  bool operator==(const TerminalSize&) const = default;
};

class Painter {
 public:
  explicit Painter(bool has_colours) : has_colours_{has_colours} {}

  // `staying`: lines that are written above the picture, once. Empty when nothing has to be written.
  // The picture's lines must be narrower than the terminal, and fewer than its rows.
  std::string paint(TerminalSize size, const std::vector<StyledLine>& staying, const std::vector<StyledLine>& picture);
  // Somebody else has written: the next picture is drawn below, and what was drawn is left as it is.
  void leave() { drawn_.clear(); }

 private:
  struct Drawn {
    std::string bytes;
    std::string text;  // the same without colours
  };
  Drawn drawn(const StyledLine& line) const;
  // How many rows the last picture takes now: a terminal that has become narrower has wrapped its lines.
  std::size_t rows_above(TerminalSize size) const;

  bool has_colours_;
  TerminalSize size_ = {};  // of the terminal when it was drawn
  std::vector<Drawn> drawn_;
};

}  // namespace reprise::observe
