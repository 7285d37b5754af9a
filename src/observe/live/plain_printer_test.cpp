// Plain lines: what a person reads in a log file of a build server.
#include "observe/live/plain_printer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "observe/words.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;

PrintedStep steps(std::string_view step) {
  if (step == "fetch") return {.max_attempts = 5, .has_items = true};
  return {.max_attempts = step == "ever" ? std::nullopt : std::optional<std::uint64_t>{3}, .has_items = false};
}

const PlainPrinter printer{steps};
const WallTime noon{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + 12h + 3s};

Event event_of(EventType type, std::string step = "fetch") {
  return {.type = type, .sequence = 1, .time = noon, .step = std::move(step), .item = 57, .attempt = 2};
}

Failure throttled() {
  return {.failure_class = FailureClass::transient, .kind = FailureKind::throttled, .http_status = 429};
}

TEST(ObservePlainPrinter, TellsAFailureAndItsWaitInOneLine) {
  Event failed = event_of(EventType::failed);
  failed.will_retry = true;
  failed.failure = throttled();
  EXPECT_EQ(printer.line(failed), "");
  Event retrying = event_of(EventType::retrying);
  retrying.failure = throttled();
  retrying.delay = 2100ms;
  EXPECT_EQ(printer.line(retrying),
            "12:00:03Z fetch[57] attempt 2/5 failed: HTTP 429 (transient, throttled); retry in 2.1s");
  retrying.step = "ever";
  retrying.floored = true;
  EXPECT_EQ(printer.line(retrying),
            "12:00:03Z ever attempt 2 failed: HTTP 429 (transient, throttled); retry in 2.1s as the other side asked");
  retrying.failure.reset();
  retrying.delay = 0ms;
  EXPECT_EQ(printer.line(retrying), "12:00:03Z ever retry at once");
}

TEST(ObservePlainPrinter, TellsWhyThereIsNoFurtherAttempt) {
  Event failed = event_of(EventType::failed, "load");
  failed.failure = Failure{.type = "ValueError", .message = "bad", .failure_class = FailureClass::deterministic};
  failed.reason = StopReason::permanent;
  EXPECT_EQ(printer.line(failed),
            "12:00:03Z load attempt 2/3 failed: ValueError: bad (deterministic, invalid_input); given up: this failure "
            "is permanent");
  failed.will_retry = true;  // another way is tried
  failed.reason = StopReason::attempts;
  EXPECT_EQ(printer.line(failed),
            "12:00:03Z load attempt 2/3 failed: ValueError: bad (deterministic, invalid_input); no further attempt of "
            "this kind: its attempts "
            "were used up");
  failed.will_retry = false;
  failed.precondition = true;
  EXPECT_EQ(
      printer.line(failed),
      "12:00:03Z load not begun, its precondition failed: ValueError: bad (deterministic, invalid_input); given up");
}

TEST(ObservePlainPrinter, NamesTheRunsOwnEvents) {
  Event ended = event_of(EventType::ended, "");
  ended.status = RunStatus::failed;
  ended.reason = StopReason::max_visits;
  ended.total_elapsed = 90s;
  EXPECT_EQ(printer.line(ended), "12:00:03Z run failed after 1m30s: the step was visited too often");
  Event canceled = event_of(EventType::cancel_requested, "");
  canceled.text = "enough";
  EXPECT_EQ(printer.line(canceled), "12:00:03Z cancelling the run: enough");
  EXPECT_EQ(printer.line(event_of(EventType{200}, "")),
            "12:00:03Z something this version does not know (event type 200)");
  Event prepared = event_of(EventType::prepared);
  prepared.items = 1;
  EXPECT_EQ(printer.line(prepared), "12:00:03Z fetch 1 item");
}

// Whatever a program wrote into its message, and whatever happened: one line, nothing that would steer a terminal.
TEST(ObservePlainPrinter, WritesOneHarmlessLine) {
  EXPECT_TRUE(rc::check("no control characters", [] {
    Event event = event_of(static_cast<EventType>(*rc::gen::inRange(0, 30)), *rc::gen::arbitrary<std::string>());
    event.text = *rc::gen::arbitrary<std::string>();
    event.failure = Failure{.type = *rc::gen::arbitrary<std::string>(), .message = *rc::gen::arbitrary<std::string>()};
    event.reason = static_cast<StopReason>(*rc::gen::inRange(0, 12));
    for (const char c : printer.line(event)) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }));
}

TEST(ObserveWords, SayWhatFailedOnce) {
  EXPECT_EQ(what_failed({.message = "HTTP 503", .http_status = 503}), "HTTP 503");
  EXPECT_EQ(what_failed({.message = "make: exit 2", .exit_code = 2}), "make: exit 2");
  EXPECT_EQ(what_failed({.type = "OSError", .message = "disk", .exit_code = 1}), "exit 1: OSError: disk");
  EXPECT_EQ(what_failed({.signal = 9}), "SIGKILL");
  EXPECT_EQ(what_failed({}), "failed without a message");
  EXPECT_EQ(what_failed({.kind = FailureKind::stalled}), "stalled");
  EXPECT_EQ(what_failed({.message = std::string(500, 'x')}), std::string(200, 'x') + "…");
  EXPECT_EQ(class_words({.failure_class = FailureClass::transient, .http_status = 429}), "transient, throttled");
  EXPECT_EQ(class_words({.failure_class = FailureClass::deterministic, .http_status = 429}), "deterministic");
}

}  // namespace
}  // namespace reprise::observe
