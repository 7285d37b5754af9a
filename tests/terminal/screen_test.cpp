// The terminal of the tests is itself tested: moving, erasing, colours, wide characters, wrapping, and what it must refuse.
#include "support/screen.hpp"

#include <gtest/gtest.h>

namespace reprise::testing_support {
namespace {

using Texts = std::vector<std::string>;

TEST(Screen, WritesWhereTheCursorIs) {
  Screen screen{10, 3};
  screen.feed("one\r\ntwo\x1b[A\rO");
  EXPECT_EQ(screen.rows(), (Texts{"One", "two", ""}));
  EXPECT_EQ(screen.cursor_row(), 0U);
  EXPECT_EQ(screen.cursor_column(), 1U);
  screen.feed("\x1b[9A\n\nx");
  EXPECT_EQ(screen.rows(), (Texts{"One", "two", " x"})) << "up stops at the top, and a line feed keeps the column";
  EXPECT_EQ(screen.garbage(), Texts{});
}

TEST(Screen, ScrollsAndKeepsWhatLeaves) {
  Screen screen{10, 2};
  screen.feed("a\r\nb\r\nc\r\n");
  EXPECT_EQ(screen.rows(), (Texts{"c", ""}));
  EXPECT_EQ(screen.lines(), (Texts{"a", "b", "c"}));
  EXPECT_EQ(screen.scrolled(), 2U);
}

TEST(Screen, ErasesToTheEndOfLineAndScreen) {
  Screen screen{10, 3};
  screen.feed("aaaa\r\nbbbb\r\ncccc\x1b[2A\r\x1b[K");
  EXPECT_EQ(screen.rows(), (Texts{"", "bbbb", "cccc"}));
  screen.feed("\nbb\x1b[J");
  EXPECT_EQ(screen.rows(), (Texts{"", "bb", ""}));
  EXPECT_TRUE(screen.row(1).cells[2].was_cleared);
  EXPECT_FALSE(screen.row(1).cells[1].was_cleared);
  screen.forget_clears();
  EXPECT_FALSE(screen.row(1).cells[2].was_cleared);
}

TEST(Screen, KnowsColours) {
  Screen screen{20, 1};
  screen.feed("\x1b[1;31ma\x1b[22;38;5;208mb\x1b[38;2;1;2;3;49;7mc\x1b[0md\x1b[me");
  const std::vector<Cell>& cells = screen.row(0).cells;
  EXPECT_EQ(cells[0].style, (Style{.foreground = 1, .bold = true}));
  EXPECT_EQ(cells[1].style, (Style{.foreground = 208}));
  EXPECT_EQ(cells[2].style, (Style{.foreground = first_rgb_colour + 0x010203, .inverse = true}));
  EXPECT_EQ(cells[3].style, Style{});
  EXPECT_EQ(screen.garbage(), Texts{});
  screen.feed("\x1b[38;5m\x1b[99m");
  EXPECT_EQ(screen.garbage(), (Texts{"ESC[38;5m", "ESC[99m"}));
}

TEST(Screen, KnowsTheTwoModes) {
  Screen screen{10, 1};
  screen.feed("\x1b[?2026h\x1b[?25l");
  EXPECT_TRUE(screen.updating());
  EXPECT_FALSE(screen.cursor_visible());
  screen.feed("\x1b[?25h\x1b[?2026l");
  EXPECT_FALSE(screen.updating());
  EXPECT_TRUE(screen.cursor_visible());
}

TEST(Screen, TakesBytesInAnyPieces) {
  const std::string bytes = "\x1b[32m\xe4\xb8\x96\xc3\xa9\x1b[0m\x1b[K";
  Screen whole{10, 1};
  whole.feed(bytes);
  Screen pieces{10, 1};
  for (const char byte : bytes) {
    EXPECT_EQ(pieces.garbage(), Texts{});
    pieces.feed({&byte, 1});
  }
  EXPECT_FALSE(pieces.mid_sequence());
  EXPECT_EQ(pieces.rows(), whole.rows());
  pieces.feed("\xe4");
  EXPECT_TRUE(pieces.mid_sequence());
}

TEST(Screen, RefusesWhatItDoesNotKnow) {
  const auto garbage_of = [](std::string_view bytes) {
    Screen screen{20, 2};
    screen.feed("ab");
    screen.feed(bytes);
    EXPECT_EQ(screen.rows().front().substr(0, 2), "ab") << "nothing that was there may change";
    return screen.garbage().size();
  };
  EXPECT_EQ(garbage_of("\t"), 1U);
  EXPECT_EQ(garbage_of("\a"), 1U);
  EXPECT_EQ(garbage_of("\b"), 1U);
  EXPECT_EQ(garbage_of("\x7f"), 1U);
  EXPECT_EQ(garbage_of("\x1b[2J"), 1U) << "a display of a few lines has no business with the whole screen";
  EXPECT_EQ(garbage_of("\x1b[H"), 1U);
  EXPECT_EQ(garbage_of("\x1b[?1049h"), 1U);
  EXPECT_EQ(garbage_of("\x1b[1;2A"), 1U);
  EXPECT_EQ(garbage_of("\x1b"
                       "7"),
            1U);
  EXPECT_EQ(garbage_of("\xff"), 1U);
  EXPECT_EQ(garbage_of("\xc0\x80"), 2U) << "a zero in two bytes";
  EXPECT_EQ(garbage_of("\xe4\xb8z"), 1U) << "cut in the middle";
  EXPECT_EQ(garbage_of("\xed\xa0\x80"), 1U) << "half of a pair";
  EXPECT_EQ(garbage_of("\xc2\x9b"), 1U) << "a control character in two bytes";
  EXPECT_EQ(garbage_of("\x1b[" + std::string(100, '1')), 1U);
}

TEST(Screen, WideAndCombiningCharacters) {
  Screen screen{6, 2};
  screen.feed("世e\xcc\x81x");
  EXPECT_EQ(screen.rows(), (Texts{"世e\xcc\x81x", ""}));
  EXPECT_EQ(screen.cursor_column(), 4U);
  screen.feed("x世");
  EXPECT_EQ(screen.rows(), (Texts{"世e\xcc\x81xx", "世"})) << "it does not fit in the last column";
  screen.feed("\x1b[A\r.");
  EXPECT_EQ(screen.rows().front(), ". e\xcc\x81xx") << "half of a wide one does not stay";
}

TEST(Screen, TheLastColumnWrapsWithTheNextCharacter) {
  Screen screen{4, 3};
  screen.feed("abcd");
  EXPECT_EQ(screen.cursor_row(), 0U);
  screen.feed("\r\nx");
  EXPECT_EQ(screen.rows(), (Texts{"abcd", "x", ""}));
  EXPECT_EQ(screen.lines(), (Texts{"abcd", "x"}));
  screen.feed("\r\nabcde");
  EXPECT_EQ(screen.lines(), (Texts{"abcd", "x", "abcde"})) << "one line in two rows";
}

TEST(Screen, NarrowerWrapsAndWiderUnwraps) {
  Screen screen{10, 4};
  screen.feed("abcdefgh\r\nsecond\r\n> ");
  screen.resize(5, 4);
  EXPECT_EQ(screen.rows(), (Texts{"fgh", "secon", "d", ">"}));
  EXPECT_EQ(screen.scrolled(), 1U);
  EXPECT_EQ(screen.cursor_row(), 3U);
  EXPECT_EQ(screen.cursor_column(), 2U);
  EXPECT_EQ(screen.lines(), (Texts{"abcdefgh", "second", ">"}));
  screen.resize(10, 4);
  EXPECT_EQ(screen.rows(), (Texts{"abcdefgh", "second", ">", ""}));
  EXPECT_EQ(screen.cursor_row(), 2U);
  screen.feed("here");
  EXPECT_EQ(screen.rows()[2], "> here");
}

TEST(Screen, TheCursorStaysWithItsCharacter) {
  Screen screen{8, 4};
  screen.feed("abcdefg");
  screen.resize(3, 4);
  EXPECT_EQ(screen.cursor_row(), 2U);
  EXPECT_EQ(screen.cursor_column(), 1U);
  screen.feed("h");
  EXPECT_EQ(screen.lines(), (Texts{"abcdefgh"}));
}

TEST(Screen, LowerAndHigher) {
  Screen screen{10, 4};
  screen.feed("a\r\nb\r\nc");
  screen.resize(10, 2);
  EXPECT_EQ(screen.rows(), (Texts{"b", "c"}));
  EXPECT_EQ(screen.cursor_row(), 1U);
  screen.resize(10, 5);
  EXPECT_EQ(screen.rows(), (Texts{"a", "b", "c", "", ""})) << "what had left comes back";
  EXPECT_EQ(screen.cursor_row(), 2U);
}

TEST(Screen, WideCharactersAreNotCutByANewWidth) {
  Screen screen{6, 2};
  screen.feed("世界世");
  screen.resize(5, 2);
  EXPECT_EQ(screen.rows(), (Texts{"世界", "世"}));
  screen.resize(6, 2);
  EXPECT_EQ(screen.lines(), (Texts{"世界世"}));
}

}  // namespace
}  // namespace reprise::testing_support
