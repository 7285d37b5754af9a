// Recordings made by hand, good ones and one bad one for each promise: the checks that look at the real display must be able to fail.
#include "terminal/replay.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace reprise::terminal {
namespace {

const Look look{.first_line = "^== flow", .never_stays = "^  item"};

std::string frame(const std::string& inside) { return "\x1b[?2026h\x1b[?25l\r" + inside + "\x1b[?25h\x1b[?2026l"; }
std::string display(int count) { return "== flow " + std::to_string(count) + "\x1b[K\r\n  item\x1b[K"; }

// One output a second.
Recording recording_of(const std::vector<std::string>& outputs) {
  Recording recording{.size = {20, 6}};
  for (const std::string& output : outputs)
    recording.happenings.push_back({static_cast<double>(recording.happenings.size()), Kind::output, output});
  return recording;
}

std::string complaints_of(const std::vector<std::string>& outputs) {
  return in_words(replay(recording_of(outputs), look).complaints);
}

const std::vector<std::string> good{frame(display(1)), frame("\x1b[1Adone: a\x1b[K\r\n" + display(2)),
                                    frame("\x1b[1A" + display(3)), frame("\x1b[1A\x1b[J"), "the end\r\n"};

std::vector<std::string> with(std::size_t number, const std::string& output) {
  std::vector<std::string> outputs = good;
  outputs[number] = output;
  return outputs;
}

TEST(Replay, AGoodRecordingIsGood) {
  const Replay result = replay(recording_of(good), look);
  EXPECT_EQ(in_words(result.complaints), "");
  EXPECT_EQ(result.screen.lines(), (std::vector<std::string>{"done: a", "the end"}));
  ASSERT_EQ(result.frames.size(), 4U);
  EXPECT_EQ(result.frames[1].above, (std::vector<std::string>{"done: a"}));
  EXPECT_EQ(result.frames[1].display, (std::vector<std::string>{"== flow 2", "  item"}));
  EXPECT_TRUE(result.frames[3].display.empty());
}

TEST(Replay, ReadsMayCutFramesAnywhere) {
  std::string bytes;
  for (const std::string& output : good) bytes += output;
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += 7) pieces.push_back(bytes.substr(at, 7));
  EXPECT_EQ(complaints_of(pieces), "");
}

TEST(Replay, EachBrokenPromiseIsFound) {
  EXPECT_NE(complaints_of(with(2, frame(display(3)))).find("more than one display"), std::string::npos)
      << "it forgot to go up";
  EXPECT_NE(complaints_of(with(2, frame("\x1b[2A" + display(3) + "\x1b[J"))).find("changed or is gone"),
            std::string::npos)
      << "it went up too far";
  EXPECT_NE(complaints_of(with(3, frame("\x1b[1A\x1b[K\n"))).find("left of an older"), std::string::npos)
      << "it erased a part";
  EXPECT_NE(complaints_of(with(2, frame("\x1b[1A\x1b[K" + display(3)))).find("writes again"), std::string::npos)
      << "flicker";
  EXPECT_NE(complaints_of(with(2, frame("\x1b[1A== flow xxxxxxxxxxxx\r\n"))).find("last column"), std::string::npos);
  EXPECT_NE(complaints_of(with(2, frame("\x1b[1A\x1b[2K" + display(3)))).find("more than a frame may"),
            std::string::npos);
  EXPECT_NE(complaints_of(with(2, frame("\x1b[1A\t" + display(3)))).find("not understood"), std::string::npos);
  EXPECT_NE(complaints_of(with(2, frame("\x1b[1A\x1b[31m" + display(3)))).find("colour stays on"), std::string::npos);
  EXPECT_NE(complaints_of(with(2, "\x1b[?2026h\r\x1b[1A" + display(3) + "\x1b[?2026l")).find("hide the cursor"),
            std::string::npos);
  EXPECT_NE(complaints_of(with(4, "\x1b[1Athe end\r\n")).find("between frames"), std::string::npos);
  EXPECT_NE(complaints_of(with(4, "\x1b[?2026h\x1b[?25l")).find("no end"), std::string::npos);
}

TEST(Replay, FramesAreCountedAgainstTheirTime) {
  Recording recording{.size = {20, 6}};
  for (int number = 0; number < 40; ++number) {
    recording.happenings.push_back(
        {number * 0.1, Kind::output, frame((number == 0 ? "" : "\x1b[1A") + display(number))});
  }
  EXPECT_EQ(in_words(replay(recording, look).complaints), "");
  for (Happening& happening : recording.happenings) happening.seconds /= 2;
  EXPECT_NE(in_words(replay(recording, look).complaints).find("too many frames"), std::string::npos);
}

TEST(Replay, AShrunkenTerminalWrapsWhatWasDrawn) {
  Recording recording = recording_of({frame("== flow 1 of many\x1b[K\r\n  item\x1b[K")});
  recording.happenings.push_back({1.0, Kind::resize, "10x6"});
  recording.happenings.push_back({2.0, Kind::output, frame("\x1b[2A== flow 2\x1b[K\r\n  item\x1b[K\r\n\x1b[J")});
  EXPECT_EQ(in_words(replay(recording, look).complaints), "");
  EXPECT_FALSE(replay(recording, look).crossed_a_resize);
  recording.happenings.back().data =
      frame("\x1b[1A== flow 2\x1b[K\r\n  item\x1b[K\r\n\x1b[J");  // as if nothing had wrapped
  EXPECT_NE(in_words(replay(recording, look).complaints), "");
  recording.happenings.back().data = frame("\x1b[1A== flow 2 of many\x1b[K\r\n  item\x1b[K\r\n\x1b[J");
  EXPECT_TRUE(replay(recording, look).crossed_a_resize) << "it was drawn for the window as it had been";
}

TEST(Recording, IsReadAsItWasWritten) {
  Recording recording{.size = {100, 30}};
  recording.happenings = {{0.25, Kind::output, "\x1b[K\"\\\r\n\t世\xff\xc3"},
                          {1.5, Kind::resize, "60x15"},
                          {2, Kind::input, "\x03"},
                          {2.125, Kind::mark, "exit 130"}};
  std::stringstream file;
  write(file, recording);
  EXPECT_EQ(read_recording(file), recording) << file.str();
  EXPECT_NE(file.str().find("\\udcff"), std::string::npos);
  std::stringstream other{"{\"version\": 1}\n"};
  EXPECT_FALSE(read_recording(other));
  std::stringstream cut{file.str().substr(0, file.str().size() - 3)};
  EXPECT_FALSE(read_recording(cut));
}

}  // namespace
}  // namespace reprise::terminal
