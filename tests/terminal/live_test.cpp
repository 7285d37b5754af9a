// What people see: the real command in a terminal, recorded, and every frame of it looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include <re2/re2.h>

#include "terminal/replay.hpp"
#include "terminal/session.hpp"

namespace reprise::terminal {
namespace {

using testing_support::Setting;
using testing_support::TemporaryDirectory;
using Lines = std::vector<std::string>;

// The display of a flow begins with a line that has the flow's name, and these have no step of that name.
Look look_of(const std::string& flow) {
  return {.first_line = "^(●|\\*) " + flow + "( |$)", .never_stays = "^○ then:|^  ↻ |retry (in|now)|█|░"};
}

bool has_line(const Lines& lines, const std::string& pattern) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return RE2::PartialMatch(line, pattern); });
}

// In the display, at any time.
bool was_shown(const Replay& replay, const std::string& pattern) {
  return std::ranges::any_of(replay.frames, [&](const Moment& frame) { return has_line(frame.display, pattern); });
}

std::string bytes_of(const Recording& recording) {
  std::string bytes;
  for (const Happening& happening : recording.happenings) {
    if (happening.kind == Kind::output) bytes += happening.data;
  }
  return bytes;
}

class Live : public ::testing::Test {
 protected:
  SessionSettings running(const std::string& document, const Lines& more = {}) {
    SessionSettings settings{
        .command = {REPRISE_COMMAND, "run", document}, .size = {100, 30}, .folder = folder_.path()};
    settings.command.insert(settings.command.end(), more.begin(), more.end());
    settings.environment = {{"HOME", folder_.path()}, {"TMPDIR", folder_.path()}};
    return settings;
  }
  std::string flow(const std::string& text) { return folder_.write("flow.yaml", text); }

  // Plays it, complains about everything that is wrong in it, and keeps the recording of a failed test for people to look at.
  Replay played(const Session& session, const Look& look) {
    Replay result = replay(session.recording, look);
    EXPECT_EQ(in_words(result.complaints), "");
    EXPECT_EQ(session.not_done, Lines{});
    EXPECT_TRUE(session.modes_restored);
    if (HasFailure()) {
      const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
      std::ofstream file{name + ".cast", std::ios::binary};
      write(file, session.recording);
      ADD_FAILURE() << "its recording is " << name << ".cast; at the end the screen was:\n"
                    << in_words(result.screen.rows());
    }
    return result;
  }

  // A picture may be on its way while the window changes, and then something of the one before stays: that is nobody's fault, and rare.
  Session pulled_at(const SessionSettings& settings, const Look& look) {
    Session session = run_session(settings);
    for (int again = 0; again < 4 && replay(session.recording, look).crossed_a_resize; ++again)
      session = run_session(settings);
    return session;
  }

  TemporaryDirectory folder_;
};

constexpr const char* three_steps = R"(
name: three
steps:
  - {id: first, run: "true"}
  - {id: second, needs: first, run: "until test -e go_on; do sleep 0.05; done"}
  - {id: third, needs: second, run: "true"}
)";

constexpr const char* hopeless = R"(
name: hopeless
defaults: {retry: {policy: standard, initial: 300ms, jitter: none}}
steps:
  - {id: fetch, run: "echo connection reset by peer >&2; exit 75"}
  - {id: report, needs: fetch, run: "true"}
)";

TEST_F(Live, Quickstart) {
  const Session session = run_session(running(REPRISE_QUICKSTART));
  EXPECT_EQ(session.exit_code, 0);
  const Replay result = played(session, look_of("quickstart"));
  const Lines lines = result.screen.lines();
  EXPECT_TRUE(has_line(lines, "^✔ download completed after 3 attempts .* recovered after 2 retries"));
  EXPECT_TRUE(has_line(lines, "^✔ weather 24 of 24 items"));
  EXPECT_TRUE(has_line(lines, "^✔ run .* succeeded"));
  EXPECT_TRUE(was_shown(result, "^○ then: weather, report, translate, goodbye"));
  EXPECT_TRUE(was_shown(result, "^● weather +█*░* [0-9]+/24"));
  EXPECT_TRUE(was_shown(result, "retry in [0-9.]+s"));
  EXPECT_FALSE(was_shown(result, "[0-9]h")) << "before its first event nobody knows when it began";
}

TEST_F(Live, AFlowThatFailsSaysWhatWhyAndWhatNow) {
  const Session session = run_session(running(flow(hopeless)));
  EXPECT_EQ(session.exit_code, 1);
  const Lines lines = played(session, look_of("hopeless")).screen.lines();
  EXPECT_TRUE(has_line(lines, "^✖ fetch exhausted all 3 attempts"));
  EXPECT_TRUE(has_line(lines, "connection reset by peer"));
  EXPECT_TRUE(has_line(lines, "^○ report not reached"));
  EXPECT_TRUE(has_line(lines, "reprise retry "));
  EXPECT_TRUE(has_line(lines, "reprise why "));
}

TEST_F(Live, CtrlC) {
  SessionSettings settings = running(flow(three_steps));
  settings.actions = {{.when = "^● second", .what = Press{"\x03"}}};
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 130);
  const Lines lines = played(session, look_of("three")).screen.lines();
  EXPECT_TRUE(has_line(lines, "^stopping: nothing new starts"));
  EXPECT_TRUE(has_line(lines, "resume with: reprise resume "));
}

TEST_F(Live, CtrlZTakesTheDisplayAwayAndFgBringsItBack) {
  SessionSettings settings = running(flow(three_steps));
  settings.actions = {{.when = "^● second", .what = Press{"\x1a"}},
                      {.when = "Stopped", .what = Foreground{}},
                      {.when = "^● second", .what = Press{"\x03"}}};
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 130);
  const Replay result = played(session, look_of("three"));
  const auto after =
      std::ranges::find_if(result.frames, [](const Moment& frame) { return has_line(frame.above, "Stopped"); });
  ASSERT_NE(after, result.frames.begin());
  ASSERT_NE(after, result.frames.end());
  EXPECT_EQ(std::prev(after)->display, Lines{}) << "the shell's words must not stand in the middle of it";
  EXPECT_TRUE(has_line(after->display, "^● second"));
}

TEST_F(Live, KilledItLeavesATerminalThatWorks) {
  SessionSettings settings = running(flow(three_steps));
  settings.actions = {{.when = "^● second", .what = Signal{SIGKILL}}};
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 137);
  const Replay result = played(session, look_of("three"));
  EXPECT_TRUE(result.screen.cursor_visible());
  EXPECT_FALSE(result.screen.updating());
  EXPECT_EQ(result.screen.cursor_column(), 0U) << "the prompt stands in a line of its own";
}

TEST_F(Live, AThousandItemsInAWindowThatIsPulledAt) {
  SessionSettings settings = running(REPRISE_MANY);
  settings.actions = {{.when = R"((\d+)/1000)", .at_least = 300, .what = Resize{{60, 15}}},
                      {.when = R"((\d+)/1000)", .at_least = 600, .what = Resize{{140, 40}}}};
  const Session session = pulled_at(settings, look_of("many"));
  EXPECT_EQ(session.exit_code, 0);
  const Replay result = played(session, look_of("many"));
  const Lines lines = result.screen.lines();
  EXPECT_TRUE(has_line(lines, "^✔ work 990 of 1000 items, 10 failed"));
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("✔ report"); }), 1);
  EXPECT_EQ(result.screen.width(), 140U);
}

// Wide characters that do not fit into the last column leave it empty, so that a line takes more rows than its columns say.
TEST_F(Live, WideWordsInAWindowThatBecomesNarrow) {
  std::string words;
  for (int count = 0; count < 25; ++count) words += "世";
  SessionSettings settings = running(flow("name: wide\nsteps:\n  - {id: fetch, run: \"echo x" + words +
                                          " >&2; exit 75\", retry: {policy: standard, initial: 1s, jitter: none}}\n"));
  settings.actions = {{.when = "世.* retry in", .what = Resize{{17, 20}}}};
  played(pulled_at(settings, look_of("wide")), look_of("wide"));
}

TEST_F(Live, SmallWindows) {
  for (const Size size : {Size{40, 6}, Size{20, 4}, Size{12, 2}, Size{5, 1}}) {
    SessionSettings settings = running(flow(hopeless), {"--store", "memory:"});
    settings.size = size;
    const Session session = run_session(settings);
    EXPECT_EQ(session.exit_code, 1) << to_text(size);
    Look look = look_of("hopeless");
    look.first_line = "^● hopeles";
    played(session, look);
  }
}

// A command may write what it likes; it does not reach the terminal as it is.
TEST_F(Live, HostileWordsAreOnlyWords) {
  const std::string document = R"(
name: hostile
defaults: {retry: {policy: standard, initial: 300ms, jitter: none}}
steps:
  - id: fetch
    run: |
      printf 'a\033[2Jb\033]0;title\007c\td\re\033[?25lf\377g\302\233h\n' >&2
      exit 75
)";
  const Session session = run_session(running(flow(document)));
  EXPECT_EQ(session.exit_code, 1);
  const Replay result = played(session, look_of("hostile"));
  EXPECT_TRUE(was_shown(result, "^↻ fetch +attempt 1/3 · exit 75: .*b.*c.*d"));
  EXPECT_TRUE(has_line(result.screen.lines(), "^✖ fetch exhausted all 3 attempts"));
}

TEST_F(Live, AResumedRunGoesOnInTheSameWay) {
  SessionSettings settings = running(flow(three_steps));
  settings.actions = {{.when = "^● second", .what = Press{"\x03"}}};
  ASSERT_EQ(run_session(settings).exit_code, 130);
  folder_.write("go_on", "");
  settings.command = {REPRISE_COMMAND, "resume", "@last"};
  settings.actions.clear();
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 0);
  const Lines lines = played(session, look_of("three")).screen.lines();
  EXPECT_TRUE(has_line(lines, "^✔ third"));
  EXPECT_FALSE(has_line(lines, "^✔ first")) << "it was told before";
}

TEST_F(Live, AStepHasNotFailedWhileAnItemOfItIsTriedAgain) {
  const std::string document = flow(R"(name: items
steps:
  - id: s
    for_each: [0, 1, 2]
    run: 'test -e again && exit 1; exit 64'
    retry: {max_attempts: 2, initial: 400ms, jitter: none}
)");
  EXPECT_EQ(run_session(running(document)).exit_code, 1);
  folder_.write("again", "");
  SessionSettings again = running(document);
  again.command = {REPRISE_COMMAND, "retry", "@last", "--step", "s", "--item", "0"};
  const Session session = run_session(again);
  EXPECT_EQ(session.exit_code, 1);
  const Replay seen = played(session, look_of("items"));
  EXPECT_TRUE(was_shown(seen, "0 of 1 step"));
  const bool counted_too_early = std::ranges::any_of(seen.frames, [](const Moment& frame) {
    return has_line(frame.display, "1 of 1 step") && has_line(frame.display, "retry in");
  });
  EXPECT_FALSE(counted_too_early) << "the step was counted as over while its item waited";
  EXPECT_TRUE(was_shown(seen, "s.0. attempt 2 .1 of 2 used"));
}

TEST_F(Live, WithoutUtf8OnlyAscii) {
  SessionSettings settings = running(REPRISE_QUICKSTART);
  settings.environment.push_back({"LC_ALL", "C"});
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 0);
  const Replay result = played(session, look_of("quickstart"));
  EXPECT_TRUE(was_shown(result, R"(^o then: weather, report, translate, goodbye)"));
  EXPECT_TRUE(std::ranges::all_of(bytes_of(session.recording),
                                  [](char byte) { return static_cast<unsigned char>(byte) < 0x80; }));
}

TEST_F(Live, PlainWhereNobodyCanSeeIt) {
  for (const Setting& setting : {Setting{"TERM", "dumb"}, Setting{"NO_COLOR", "1"}, Setting{"CI", "true"}}) {
    SessionSettings settings = running(flow(hopeless), {"--store", "memory:"});
    settings.environment.push_back(setting);
    const Session session = run_session(settings);
    EXPECT_EQ(session.exit_code, 1) << setting.name;
    const std::string bytes = bytes_of(session.recording);
    EXPECT_EQ(bytes.find('\x1b'), std::string::npos) << setting.name << ": " << bytes;
    std::string text = bytes;
    RE2::GlobalReplace(&text, "\r\n", "\n");  // the terminal's own line ends
    EXPECT_EQ(text.find('\r'), std::string::npos) << setting.name;
    EXPECT_NE(bytes.find("fetch attempt 1/3 failed"), std::string::npos) << bytes;
  }
}

TEST_F(Live, PlainIntoAFile) {
  SessionSettings settings = running(flow(hopeless));
  settings.command = {"sh", "-c", "\"$0\" run flow.yaml --store memory: 2>told; code=$?; cat told; exit $code",
                      REPRISE_COMMAND};
  const Session session = run_session(settings);
  EXPECT_EQ(session.exit_code, 1);
  std::ifstream file{folder_.path() + "/told", std::ios::binary};
  const std::string told{std::istreambuf_iterator<char>{file}, {}};
  EXPECT_NE(told.find("fetch attempt 1/3 failed"), std::string::npos) << told;
  EXPECT_EQ(told.find_first_of("\x1b\r"), std::string::npos) << told;
}

TEST_F(Live, WhoAsksForItGetsItWithoutColours) {
  SessionSettings settings = running(flow(hopeless), {"--store", "memory:", "--progress", "tty"});
  settings.environment.insert(settings.environment.end(), {{"NO_COLOR", "1"}, {"CI", "true"}});
  const Session session = run_session(settings);
  const Replay result = played(session, look_of("hopeless"));
  EXPECT_TRUE(was_shown(result, "^↻ fetch +attempt 1/3"));
  EXPECT_FALSE(RE2::PartialMatch(bytes_of(session.recording), "\x1b\\[[0-9;]*m"));
}

}  // namespace
}  // namespace reprise::terminal
