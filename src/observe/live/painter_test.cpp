// The bytes of a picture: nothing for what has not changed, nothing erased that stays, and a terminal in order after each of them.
#include "observe/live/painter.hpp"

#include <gtest/gtest.h>

namespace reprise::observe {
namespace {

const std::string begin = "\x1b[?2026h\x1b[?25l\r";
const std::string end = "\x1b[?25h\x1b[?2026l";
const TerminalSize size{.columns = 20, .rows = 10};

TEST(ObservePainter, WritesOnlyLinesThatChanged) {
  Painter painter{false};
  EXPECT_EQ(painter.paint(size, {}, {{{"one"}}, {{"two"}}}), begin + "one\x1b[K\r\ntwo\x1b[K\r\n" + end);
  EXPECT_EQ(painter.paint(size, {}, {{{"one"}}, {{"two"}}}), "");
  EXPECT_EQ(painter.paint(size, {}, {{{"one"}}, {{"2"}}}), begin + "\x1b[2A\r\n2\x1b[K\r\n" + end);
  EXPECT_EQ(painter.paint(size, {}, {{{"one"}}}), begin + "\x1b[2A\r\n\x1b[J" + end);
}

TEST(ObservePainter, PutsLinesThatStayAboveThePicture) {
  Painter painter{true};
  static_cast<void>(painter.paint(size, {}, {{{"one", Style::good}}}));
  EXPECT_EQ(painter.paint(size, {{{"stays"}}}, {{{"one", Style::good}}}),
            begin + "\x1b[1A\x1b[K\n\x1b[J\x1b[Astays\r\n\x1b[32mone\x1b[0m\r\n" + end);
}

TEST(ObservePainter, KnowsThatANarrowerTerminalHasWrappedItsLines) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, {{{"seventeen columns"}}, {{"four"}}}));
  EXPECT_EQ(painter.paint({.columns = 6, .rows = 10}, {}, {{{"x"}}}), begin + "\x1b[4A\x1b[K\n\x1b[J\x1b[Ax\r\n" + end);
  EXPECT_EQ(painter.paint({.columns = 40, .rows = 10}, {}, {{{"x"}}}),
            begin + "\x1b[1A\x1b[K\n\x1b[J\x1b[Ax\r\n" + end);
}

TEST(ObservePainter, KnowsThatWideCharactersAreNotCut) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, {{{"日本語日本"}}}));
  EXPECT_EQ(painter.paint({.columns = 5, .rows = 10}, {}, {{{"x"}}}), begin + "\x1b[3A\x1b[K\n\x1b[J\x1b[Ax\r\n" + end);
}

// tmux would keep in its history what is erased from the first row on.
TEST(ObservePainter, ErasesFromTheSecondRowOn) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, {{{"one"}}}));
  EXPECT_EQ(painter.paint(size, {}, {}), begin + "\x1b[1A\x1b[K\n\x1b[J\x1b[A" + end);
  EXPECT_EQ(painter.paint(size, {{{"stays"}}}, {}), begin + "\x1b[Kstays\r\n" + end);
}

TEST(ObservePainter, NeverGoesAboveTheTopOfTheTerminal) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, std::vector<StyledLine>(8, StyledLine{{"line"}})));
  EXPECT_EQ(painter.paint({.columns = 20, .rows = 4}, {}, {{{"x"}}}), begin + "\x1b[3A\x1b[K\n\x1b[J\x1b[Ax\r\n" + end);
}

TEST(ObservePainter, DrawsAnewInALowerTerminal) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, {{{"1"}}, {{"2"}}, {{"3"}}, {{"4"}}, {{"5"}}}));
  EXPECT_EQ(painter.paint({.columns = 20, .rows = 4}, {}, {{{"1"}}, {{"2"}}}),
            begin + "\x1b[3A\x1b[K\n\x1b[J\x1b[A1\r\n2\r\n" + end);
}

TEST(ObservePainter, LeavesWhatSomebodyElseHasWrittenOver) {
  Painter painter{false};
  static_cast<void>(painter.paint(size, {}, {{{"one"}}}));
  painter.leave();
  EXPECT_EQ(painter.paint(size, {}, {{{"one"}}}), begin + "one\x1b[K\r\n" + end);
}

TEST(ObserveStyled, ClipsByColumnsAndKeepsStyles) {
  const StyledLine line{{"ab", Style::good}, {"日本語", Style::bad}};
  EXPECT_EQ(columns_of(line), 8U);
  EXPECT_EQ(clipped(line, 8, "…"), line);
  EXPECT_EQ(clipped(line, 6, "…"), (StyledLine{{"ab", Style::good}, {"日", Style::bad}, {"…"}}));
  EXPECT_EQ(without_styles(clipped(line, 1, "...")), ".");
  EXPECT_EQ(with_escape_codes(line), "\x1b[32mab\x1b[0m\x1b[31m日本語\x1b[0m");
}

TEST(ObserveStyled, HasOnlyAsciiWhereNothingElseIsShown) { EXPECT_EQ(in_ascii("a … b · ü✔\xff"), "a ... b - ???"); }

}  // namespace
}  // namespace reprise::observe
