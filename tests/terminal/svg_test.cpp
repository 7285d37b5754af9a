// Pictures: what stands in them, that they need nothing from outside, and that a film shows its last moment where nothing moves.
#include "terminal/svg.hpp"

#include <gtest/gtest.h>

namespace reprise::terminal {
namespace {

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + words.size())) ++count;
  return count;
}

const Recording story{.size = {20, 4},
                      .happenings = {{0.1, Kind::output, "$ work\r\n"},
                                     {0.2, Kind::output, "waiting"},
                                     {1.2, Kind::output, "\r\x1b[K\x1b[32mdone\x1b[0m <&>\r\n"}}};

TEST(Svg, AStillShowsTheLastScreen) {
  const std::string svg = svg_of(story, {.title = "A <title>", .window_title = "work"});
  EXPECT_EQ(last_screen(story), (std::vector<std::string>{"$ work", "done <&>"}));
  EXPECT_NE(svg.find("<title>A &lt;title&gt;</title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc>\n$ work\ndone &lt;&amp;&gt;\n</desc>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">done</text>"), std::string::npos) << "a stretch of its own, because it has a colour";
  EXPECT_EQ(svg.find("waiting"), std::string::npos);
  EXPECT_EQ(svg.find("@keyframes"), std::string::npos);
}

TEST(Svg, AFilmShowsMomentsAndEndsWithTheLast) {
  const std::string svg = svg_of(story, {.title = "t", .window_title = "w", .moments = 3});
  EXPECT_EQ(count_of(svg, ">$ work</text>"), 1U) << "what does not change is drawn once";
  EXPECT_EQ(count_of(svg, ">waiting</text>"), 1U);
  EXPECT_EQ(count_of(svg, "@keyframes"), 2U);
  EXPECT_NE(svg.find(".m1-2{animation-name:m1-2;visibility:hidden}"), std::string::npos)
      << "hidden where nothing moves\n"
      << svg;
  EXPECT_NE(svg.find(".m2-3{animation-name:m2-3}"), std::string::npos) << "the last moment is not";
  EXPECT_NE(svg.find("prefers-reduced-motion"), std::string::npos);
}

TEST(Svg, MomentsAreChosenFromBeginningToEnd) {
  Recording many{.size = {20, 4}};
  for (int step = 0; step < 50; ++step) {
    const std::string word(static_cast<std::size_t>(step % 18 + 1), static_cast<char>('a' + step % 26));
    many.happenings.push_back({step * 0.1, Kind::output, "\r\x1b[K" + word});
  }
  const std::string svg = svg_of(many, {.title = "t", .window_title = "w", .moments = 5});
  EXPECT_EQ(count_of(svg, "@keyframes"), 5U);
  EXPECT_NE(svg.find(">a</text>"), std::string::npos) << "the first";
  EXPECT_NE(svg.find(">" + last_screen(many).front() + "</text>"), std::string::npos) << "and the last";
}

TEST(Svg, NeedsNothingFromOutside) {
  const std::string svg = svg_of(story, {.title = "t", .window_title = "w", .moments = 3});
  EXPECT_EQ(count_of(svg, "http"), 1U) << "the name of the format alone";
  for (const char* word : {"<script", "href", "url(", "@import", "<foreignObject"})
    EXPECT_EQ(svg.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace reprise::terminal
