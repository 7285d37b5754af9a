// Capture: the beginning and the end of any stream, the right count of what is missing, and no more memory than stated.
#include "exec/process/capture.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace reprise::exec {
namespace {

CapturedText captured(CaptureLimits limits, const std::vector<std::string>& pieces) {
  Capture capture{limits};
  for (const std::string& piece : pieces) capture.add(piece);
  return capture.take();
}

TEST(ExecCapture, KeepsShortStreamsWhole) {
  const CapturedText text = captured({.head = 4, .tail = 4}, {"abc", "def", "gh"});
  EXPECT_TRUE(text.is_whole());
  EXPECT_EQ(text.head, "abcdefgh");
  EXPECT_EQ(text.tail, "");
  EXPECT_EQ(text.text(), "abcdefgh");
}

TEST(ExecCapture, KeepsBothEndsOfLongOnes) {
  const CapturedText text = captured({.head = 4, .tail = 4}, {"abc", "def", "ghi"});
  EXPECT_FALSE(text.is_whole());
  EXPECT_EQ(text.head, "abcd");
  EXPECT_EQ(text.tail, "fghi");
  EXPECT_EQ(text.size, 9U);
  EXPECT_EQ(text.text(), "abcd\n[… 1 bytes are missing here …]\nfghi");
}

TEST(ExecCapture, AnEmptyStreamIsWhole) {
  const CapturedText text = captured({.head = 4, .tail = 4}, {});
  EXPECT_TRUE(text.is_whole());
  EXPECT_EQ(text.text(), "");
}

TEST(ExecCapture, TheWholeIsKeptWhenItIsWanted) {
  const CapturedText text = captured({.head = 1, .tail = 1, .whole = 6}, {"abc", "def"});
  EXPECT_TRUE(text.is_whole());
  EXPECT_EQ(text.head, "abcdef");
}

TEST(ExecCapture, AWholeThatIsTooLongIsCut) {
  const CapturedText text = captured({.head = 2, .tail = 3, .whole = 6}, {"abc", "defg"});
  EXPECT_EQ(text.head, "ab");
  EXPECT_EQ(text.tail, "efg");
  EXPECT_EQ(text.size, 7U);
}

TEST(ExecCapture, NothingMayBeKept) {
  const CapturedText text = captured({.head = 0, .tail = 0}, {"abc"});
  EXPECT_FALSE(text.is_whole());
  EXPECT_EQ(text.text(), "[… 3 bytes are missing here …]\n");
}

TEST(ExecCapture, CutsLeaveNoHalfCharacters) {
  const CapturedText text = captured({.head = 4, .tail = 2}, {"aéé…é…é"});  // 1 2 2 3 2 3 2
  EXPECT_EQ(text.head, "aé\xC3");
  EXPECT_EQ(text.text(), "aé\n[… 10 bytes are missing here …]\né");
  const CapturedText other = captured({.head = 2, .tail = 2}, {"é……"});
  EXPECT_EQ(other.text(), "é\n[… 6 bytes are missing here …]\n");
  const CapturedText binary = captured({.head = 5, .tail = 0}, {"\x80\x80\x80\x80\x80\x80"});
  EXPECT_EQ(binary.text().substr(0, 5), "\x80\x80\x80\x80\x80") << "was no text before the cut either";
}

TEST(ExecCapture, AnyStreamInAnyPieces) {
  EXPECT_TRUE(rc::check("head, tail and size", [] {
    const auto limit = [] { return rc::gen::inRange<std::size_t>(0, 12); };
    const CaptureLimits limits{.head = *limit(), .tail = *limit(), .whole = *rc::gen::inRange<std::size_t>(0, 30)};
    const auto pieces = *rc::gen::resize(
        *rc::gen::inRange(0, 30),
        rc::gen::container<std::vector<std::string>>(rc::gen::resize(8, rc::gen::string<std::string>())));
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    const CapturedText text = captured(limits, pieces);
    RC_ASSERT(text.size == all.size());
    if (all.size() <= std::max(limits.head + limits.tail, limits.whole)) {
      RC_ASSERT(text.is_whole());
      RC_ASSERT(text.head == all);
      RC_ASSERT(text.tail.empty());
    } else {
      RC_ASSERT(text.head == all.substr(0, limits.head));
      RC_ASSERT(text.tail == all.substr(all.size() - limits.tail));
    }
  }));
}

}  // namespace
}  // namespace reprise::exec
