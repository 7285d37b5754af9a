// From records to events: stories told with every field.
#include "event/history.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace reprise::event {
namespace {

using namespace std::chrono_literals;

constexpr Time second = 1'000'000'000;
constexpr Time noon = 1'790'000'000 * second;

WallTime at(Duration after) { return WallTime{Duration{noon} + after}; }

const RunId run{.bytes = {1, 2, 3}};
const Failure timeout{.type = "TimeoutError", .message = "no answer", .kind = FailureKind::timeout};
const Failure timeout_judged{.type = "TimeoutError",
                             .message = "no answer",
                             .failure_class = FailureClass::transient,
                             .kind = FailureKind::timeout};

EventHistory history() { return {run, {{"fetch", "tool"}, {"store", "agent"}}}; }

Record failed_at(Time time, std::uint32_t attempt, bool will_retry) {
  return {.type = EventType::failed,
          .time = time,
          .attempt = attempt,
          .will_retry = will_retry,
          .reason = will_retry ? StopReason::none : StopReason::attempts,
          .failure = &timeout};
}

Record started_at(Time time, std::uint32_t attempt) {
  return {.type = EventType::started, .time = time, .attempt = attempt};
}

Record retrying_at(Time time, std::uint32_t next_attempt, std::int64_t delay) {
  return {.type = EventType::retrying, .time = time, .attempt = next_attempt, .delay = delay, .due = time + delay};
}

TEST(EventHistory, a_retry_that_succeeds) {
  EventHistory told = history();
  EXPECT_EQ(told.add({.type = EventType::submitted,
                      .sequence = 1,
                      .time = noon,
                      .due = noon + second,
                      .plan = 4,
                      .priority = 5,
                      .text = "order-17",
                      .payload = {"in", 2, false}}),
            (Event{.type = EventType::submitted,
                   .sequence = 1,
                   .time = at(0s),
                   .run = run,
                   .due = at(1s),
                   .text = "order-17",
                   .output = "in",
                   .output_size = 2}));
  EXPECT_EQ(told.add({.type = EventType::started, .sequence = 2, .time = noon + second, .attempt = 1}),
            (Event{.type = EventType::started,
                   .sequence = 2,
                   .time = at(1s),
                   .run = run,
                   .step = "fetch",
                   .attempt = 1,
                   .actor_type = "tool",
                   .is_retry = false}));
  EXPECT_EQ(told.add({.type = EventType::failed,
                      .sequence = 3,
                      .time = noon + 3 * second,
                      .attempt = 1,
                      .will_retry = true,
                      .rule = 2,
                      .failure_class = FailureClass::transient,
                      .failure = &timeout}),
            (Event{.type = EventType::failed,
                   .sequence = 3,
                   .time = at(3s),
                   .run = run,
                   .step = "fetch",
                   .attempt = 1,
                   .actor_type = "tool",
                   .will_retry = true,
                   .failure = timeout_judged,
                   .rule = 2}));
  EXPECT_EQ(told.add({.type = EventType::retrying,
                      .sequence = 4,
                      .time = noon + 3 * second,
                      .attempt = 2,
                      .floored = true,
                      .rule = 2,
                      .delay = 5 * second,
                      .nominal = 6 * second,
                      .delay_min = 4 * second,
                      .delay_max = 7 * second,
                      .due = noon + 8 * second}),
            (Event{.type = EventType::retrying,
                   .sequence = 4,
                   .time = at(3s),
                   .run = run,
                   .step = "fetch",
                   .attempt = 1,
                   .actor_type = "tool",
                   .failure = timeout_judged,
                   .rule = 2,
                   .next_attempt = 2,
                   .delay = 5s,
                   .range = {6s, 4s, 7s},
                   .floored = true,
                   .due = at(8s)}));
  EXPECT_EQ(told.add({.type = EventType::started, .sequence = 5, .time = noon + 8 * second, .attempt = 2}),
            (Event{.type = EventType::started,
                   .sequence = 5,
                   .time = at(8s),
                   .run = run,
                   .step = "fetch",
                   .attempt = 2,
                   .actor_type = "tool",
                   .is_retry = true,
                   .failure = timeout_judged,
                   .delay = 5s}));
  EXPECT_EQ(told.add({.type = EventType::completed,
                      .sequence = 6,
                      .time = noon + 9 * second,
                      .attempt = 2,
                      .payload = {"out", 3, false}}),
            (Event{.type = EventType::completed,
                   .sequence = 6,
                   .time = at(9s),
                   .run = run,
                   .step = "fetch",
                   .attempt = 2,
                   .actor_type = "tool",
                   .is_retry = true,
                   .total_attempts = 2,
                   .total_elapsed = 8s,
                   .output = "out",
                   .output_size = 3}));
  EXPECT_EQ(
      told.add({.type = EventType::ended, .sequence = 7, .time = noon + 10 * second, .status = RunStatus::succeeded}),
      (Event{.type = EventType::ended,
             .sequence = 7,
             .time = at(10s),
             .run = run,
             .total_elapsed = 10s,
             .status = RunStatus::succeeded}));
}

TEST(EventHistory, the_last_failure_carries_the_totals) {
  EventHistory told = history();
  told.add({.type = EventType::submitted, .time = noon});
  told.add(started_at(noon + second, 1));
  told.add(failed_at(noon + 2 * second, 1, true));
  told.add(retrying_at(noon + 2 * second, 2, second));
  told.add(started_at(noon + 3 * second, 2));
  Record last = failed_at(noon + 5 * second, 2, false);
  last.lost = true;
  EXPECT_EQ(told.add(last), (Event{.type = EventType::failed,
                                   .time = at(5s),
                                   .run = run,
                                   .step = "fetch",
                                   .attempt = 2,
                                   .actor_type = "tool",
                                   .is_retry = true,
                                   .lost = true,
                                   .failure = timeout_judged,
                                   .reason = StopReason::attempts,
                                   .used_attempts = 1,
                                   .lost_attempts = 1,
                                   .total_attempts = 2,
                                   .total_elapsed = 4s}));
}

TEST(EventHistory, a_failure_that_is_retried_has_no_totals) {
  EventHistory told = history();
  told.add(started_at(noon, 1));
  const Event event = told.add(failed_at(noon + second, 1, true));
  EXPECT_EQ(event.total_attempts, 0U);
  EXPECT_EQ(event.total_elapsed, 0s);
}

TEST(EventHistory, items_are_told_apart) {
  EventHistory told = history();
  Record first = started_at(noon, 1);
  Record other = started_at(noon + second, 1);
  first.step = other.step = 1;
  other.item = 7;
  told.add(first);
  told.add(other);
  Record failure = failed_at(noon + 2 * second, 1, true);
  failure.step = 1;
  told.add(failure);
  other.type = EventType::completed;
  other.time = noon + 3 * second;
  const Event done = told.add(other);
  EXPECT_EQ(done.step, "store");
  EXPECT_EQ(done.item, 7U);
  EXPECT_EQ(done.total_elapsed, 2s);
  first.attempt = 2;
  EXPECT_EQ(told.add(first).failure, timeout_judged);
}

TEST(EventHistory, every_wait_has_its_own_delay_and_failure) {
  EventHistory told = history();
  told.add(started_at(noon, 1));
  told.add(failed_at(noon, 1, true));
  told.add(retrying_at(noon, 2, second));
  told.add(started_at(noon, 2));
  const Failure reset{.type = "ConnectionResetError", .failure_class = FailureClass::transient};
  Record second_failure = failed_at(noon, 2, true);
  second_failure.failure = &reset;
  told.add(second_failure);
  told.add(retrying_at(noon, 3, 2 * second));
  const Event third = told.add(started_at(noon, 3));
  EXPECT_EQ(third.failure, reset);
  EXPECT_EQ(third.delay, 2s);
}

TEST(EventHistory, an_attempt_that_was_interrupted_starts_again_as_what_it_was) {
  EventHistory told = history();
  told.add(started_at(noon, 1));
  told.add(failed_at(noon, 1, true));
  told.add(retrying_at(noon, 2, second));
  told.add(started_at(noon + second, 2));
  told.add({.type = EventType::interrupted, .time = noon + 2 * second, .attempt = 2});
  const Event again = told.add(started_at(noon + 3 * second, 2));
  EXPECT_TRUE(again.is_retry);
  EXPECT_EQ(again.failure, timeout_judged);
  EXPECT_EQ(told.add({.type = EventType::completed, .time = noon + 4 * second, .attempt = 2}).total_elapsed, 4s);
}

TEST(EventHistory, work_that_begins_anew_knows_nothing_of_before) {
  for (const EventType type : {EventType::reopened, EventType::revisited}) {
    EventHistory told = history();
    told.add(started_at(noon, 1));
    told.add(failed_at(noon, 1, true));
    told.add(retrying_at(noon, 2, second));
    told.add({.type = type, .time = noon});
    const Event first = told.add(started_at(noon + 5 * second, 1));
    EXPECT_FALSE(first.is_retry);
    EXPECT_EQ(first.failure, std::nullopt);
    EXPECT_EQ(first.delay, 0s);
    EXPECT_EQ(told.add({.type = EventType::completed, .time = noon + 6 * second, .attempt = 1}).total_elapsed, 1s);
  }
}

TEST(EventHistory, what_has_ended_is_forgotten) {
  EventHistory told = history();
  told.add(started_at(noon, 1));
  told.add(failed_at(noon, 1, true));
  told.add({.type = EventType::completed, .time = noon, .attempt = 2});
  EXPECT_EQ(told.add(started_at(noon, 2)).failure, std::nullopt);
  told.add({.type = EventType::reopened, .time = noon});
  EXPECT_EQ(told.add({.type = EventType::completed, .time = noon + second}).total_elapsed, 0s);
}

TEST(EventHistory, the_handlers_own_word_stays_and_the_judgement_fills_the_gap) {
  EventHistory told = history();
  Record record = failed_at(noon, 1, false);
  record.failure_class = FailureClass::deterministic;
  EXPECT_EQ(told.add(record).failure->failure_class, FailureClass::deterministic);
  const Failure own{.failure_class = FailureClass::budget_exhausted};
  record.failure = &own;
  EXPECT_EQ(told.add(record).failure->failure_class, FailureClass::budget_exhausted);
  record.failure = nullptr;
  EXPECT_EQ(told.add(record).failure, Failure{.failure_class = FailureClass::deterministic});
}

TEST(EventHistory, a_failed_precondition_concerns_no_attempt) {
  EventHistory told = history();
  Record record = failed_at(noon, 1, false);
  record.precondition = true;
  const Event event = told.add(record);
  EXPECT_EQ(event.attempt, 0U);
  EXPECT_EQ(event.total_attempts, 0U);
  EXPECT_EQ(event.total_elapsed, 0s);
}

TEST(EventHistory, work_that_never_started_took_no_attempt) {
  EventHistory told = history();
  const Event event = told.add({.type = EventType::completed, .time = noon + second});
  EXPECT_EQ(event.total_attempts, 0U);
  EXPECT_EQ(event.total_elapsed, 0s);
}

TEST(EventHistory, events_of_the_run_have_no_step) {
  for (unsigned number = 1; number <= 38; ++number) {
    const auto type = static_cast<EventType>(number);
    const bool of_the_run = type == EventType::submitted || type == EventType::recovered ||
                            type == EventType::cancel_requested || type == EventType::paused ||
                            type == EventType::resumed || type == EventType::signaled || type == EventType::reopened ||
                            type == EventType::ended || type == EventType::finishing || type == EventType::continued ||
                            type == EventType::diverged || type == EventType::published;
    const bool of_the_future = name_of(type) == "unknown";
    EXPECT_EQ(history().add({.type = type, .attempt = 1}).step.empty(), of_the_run || of_the_future) << name_of(type);
  }
}

TEST(EventHistory, a_reservation_has_no_clock_and_is_forgotten_when_it_is_taken_back) {
  EventHistory told = history();
  told.add({.type = EventType::submitted, .time = noon});
  told.add({.type = EventType::reserved, .time = noon, .attempt = 1});
  EXPECT_TRUE(told.add({.type = EventType::reserved, .time = noon, .attempt = 1, .withdrawn = true}).withdrawn);
  told.add({.type = EventType::reserved, .time = noon, .attempt = 1});
  told.add({.type = EventType::started, .time = noon + 2 * second, .attempt = 1});
  const Event done = told.add({.type = EventType::completed, .time = noon + 3 * second, .attempt = 1});
  EXPECT_EQ(done.total_elapsed, 1s);
  EXPECT_EQ(done.used_attempts, 0U) << "every attempt counts";
}

TEST(EventHistory, a_reservation_that_a_crash_left_is_a_lost_attempt) {
  const Failure lost{.type = "WorkerLost", .failure_class = FailureClass::transient};
  EventHistory told = history();
  told.add({.type = EventType::submitted, .time = noon});
  told.add({.type = EventType::reserved, .time = noon, .attempt = 1});
  const Event failed = told.add(
      {.type = EventType::failed, .time = noon + second, .attempt = 1, .will_retry = true, .lost = true, .failure = &lost});
  EXPECT_EQ(failed.lost_attempts, 1U);
  EXPECT_EQ(failed.used_attempts, 0U);
  const Event started = told.add({.type = EventType::started, .time = noon + 2 * second, .attempt = 2});
  EXPECT_TRUE(started.is_retry);
  EXPECT_EQ(started.used_attempts, 1U);
  const Event done = told.add({.type = EventType::completed, .time = noon + 5 * second, .attempt = 2});
  EXPECT_EQ(done.total_elapsed, 3s) << "it has not run before";
}

TEST(EventHistory, other_fields_go_where_they_belong) {
  EventHistory told = history();
  EXPECT_EQ(told.add({.type = EventType::prepared, .step = 1, .items = 12}).items, 12U);
  EXPECT_EQ(told.add({.type = EventType::progress, .text = "half way"}).text, "half way");
  const Event signal = told.add({.type = EventType::signaled, .text = "approved", .payload = {"by me", 5, false}});
  EXPECT_EQ(signal.text, "approved");
  EXPECT_EQ(signal.output, "by me");
  EXPECT_EQ(signal.output_size, 5U);
  RunId other;
  other.bytes[15] = 7;
  const Event handed = told.add({.type = EventType::handed_over, .attempt = 1, .due = noon, .other = other});
  EXPECT_EQ(handed.text, "00000000-0000-0000-0000-000000000007");
  EXPECT_EQ(handed.due, at(0s));
  EXPECT_EQ(told.add({.type = EventType::handed_over, .attempt = 1}).text, "") << "what works for it is no run";
  EXPECT_EQ(told.add({.type = EventType::extended, .attempt = 1, .due = noon}).due, at(0s));
  const Event cancel =
      told.add({.type = EventType::cancel_requested, .reason = StopReason::deadline, .text = "too late"});
  EXPECT_EQ(cancel.text, "too late");
  EXPECT_EQ(cancel.reason, StopReason::deadline);
  const Event end = told.add({.type = EventType::ended, .reason = StopReason::deadline, .status = RunStatus::canceled});
  EXPECT_EQ(end.status, RunStatus::canceled);
  EXPECT_EQ(end.reason, StopReason::deadline);
}

TEST(EventHistory, a_large_payload_shows_its_hash) {
  std::string hash(32, '\0');
  hash[0] = '\xAB';
  hash[31] = '\x01';
  const Event event = history().add({.type = EventType::completed, .payload = {hash, 5000, true}});
  EXPECT_EQ(event.output, "ab" + std::string(60, '0') + "01");
  EXPECT_EQ(event.output_size, 5000U);
}

TEST(EventHistory, a_clock_that_was_set_back_gives_no_negative_times) {
  EventHistory told = history();
  told.add({.type = EventType::submitted, .time = noon});
  told.add(started_at(noon, 1));
  EXPECT_EQ(told.add({.type = EventType::completed, .time = noon - second, .attempt = 1}).total_elapsed, 0s);
  EXPECT_EQ(told.add({.type = EventType::ended, .time = noon - second}).total_elapsed, 0s);
  EventHistory wide = history();
  wide.add({.type = EventType::submitted, .time = std::numeric_limits<Time>::min()});
  EXPECT_EQ(wide.add({.type = EventType::ended, .time = std::numeric_limits<Time>::max()}).total_elapsed,
            Duration::max());
}

TEST(EventHistory, odd_records_do_no_harm) {
  EventHistory told = history();
  EXPECT_EQ(told.add({.type = EventType::ended, .time = noon}).total_elapsed, 0s) << "nobody knows since when";
  EXPECT_EQ(told.add({.type = EventType::started, .step = 9, .attempt = 1}).step, "#9") << "a step nobody named";
  EXPECT_EQ(told.add(retrying_at(noon, 0, 0)).attempt, 0U);
  EXPECT_EQ(told.add(retrying_at(noon, 2, 0)).failure, std::nullopt) << "nothing failed before";
  EXPECT_EQ(told.add({.type = static_cast<EventType>(200), .sequence = 8, .time = noon}),
            (Event{.type = static_cast<EventType>(200), .sequence = 8, .time = at(0s), .run = run}));
}

}  // namespace
}  // namespace reprise::event
