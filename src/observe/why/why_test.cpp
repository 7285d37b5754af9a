// Why, told as whole stories: events made by hand, the text compared to the letter.
#include "observe/why/why.hpp"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

#include "observe/why/why_text.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;

constexpr WallTime ten_o_clock{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + 10h};

const Failure timeout{.type = "TimeoutError", .message = "no answer", .failure_class = FailureClass::transient};
const Failure exit_7{.type = "ExitError", .message = "boom", .failure_class = FailureClass::transient, .exit_code = 7};
const Failure refused{.message = "no such page", .failure_class = FailureClass::deterministic, .http_status = 404};

core::StepPlan step_named(const char* name, Policy policy, PolicyLevel level = PolicyLevel::step) {
  core::StepPlan step;
  step.name = std::make_shared<const std::string>(name);
  step.policy = std::move(policy);
  step.level = level;
  return step;
}

// Events of one step, a second apart.
class Story {
 public:
  explicit Story(core::StepPlan step, WorkSource source = WorkSource::document, Duration deadline = {})
      : name_{*step.name} {
    auto plan = std::make_shared<core::Plan>();
    plan->steps = {std::move(step)};
    plan->deadline = deadline.count();
    explainer_.emplace(plan, std::nullopt, source);
  }

  Story& tell(Event event, bool of_run = false) {
    event.time = ten_o_clock + seconds_++ * 1s + 250'123'456ns;
    if (!of_run) event.step = name_;
    explainer_->add(event);
    return *this;
  }
  Story& started(std::uint64_t attempt) { return tell({.type = EventType::started, .attempt = attempt}); }
  Story& retried(std::uint64_t attempt, const Failure& failure, Duration delay, DelayRange range,
                 bool floored = false) {
    tell({.type = EventType::failed, .attempt = attempt, .will_retry = true, .failure = failure});
    tell({.type = EventType::retrying,
          .attempt = attempt,
          .next_attempt = attempt + 1,
          .delay = delay,
          .range = range,
          .floored = floored,
          .due = ten_o_clock + 1h});
    return *this;
  }
  Story& gave_up(std::uint64_t attempt, const Failure& failure, StopReason reason, std::int32_t rule = -1) {
    return tell({.type = EventType::failed,
                 .attempt = attempt,
                 .failure = failure,
                 .reason = reason,
                 .rule = rule,
                 .total_attempts = attempt,
                 .total_elapsed = 1500ms});
  }
  Story& completed(std::uint64_t attempts) {
    return tell({.type = EventType::completed, .total_attempts = attempts, .total_elapsed = 2s});
  }

  std::string told() const {
    std::string text;
    for (const std::string& sentence : explainer_->about_the_run()) text += sentence + "\n";
    for (const Explanation& item : explainer_->explanations()) text += item_in_words(item, name_);
    return text;
  }

 private:
  std::string name_;
  std::optional<Explainer> explainer_;
  int seconds_ = 0;
};

TEST(ObserveWhy, WorkThatSucceededInTheEnd) {
  Story story{step_named("fetch", {.max_attempts = 5})};
  story.started(1).retried(1, timeout, 1312ms, {2s, 500ms, 2s}).started(2).completed(2);
  EXPECT_EQ(
      story.told(),
      "fetch: succeeded\n"
      "  Attempt 1 failed at 2026-11-15T10:00:01.250Z: TimeoutError: no answer.\n"
      "    It is transient, timeout, by the rule: type TimeoutError.\n"
      "    Tried again: transient failures are retried; max_attempts 5 leaves 4.\n"
      "    It waited 1.31s before attempt 2, drawn from 500ms to 2s (exponential backoff, nominal 2s, jitter full).\n"
      "  Attempt 2 succeeded, 2s after the first one began.\n");
}

TEST(ObserveWhy, WorkThatStillWaits) {
  Story story{step_named("fetch", {.max_attempts = std::nullopt, .backoff = Backoff::constant})};
  story.started(1).retried(1, timeout, 1s, {1s, 1s, 1s});
  EXPECT_EQ(story.told(),
            "fetch: waiting\n"
            "  Attempt 1 failed at 2026-11-15T10:00:01.250Z: TimeoutError: no answer.\n"
            "    It is transient, timeout, by the rule: type TimeoutError.\n"
            "    Tried again: transient failures are retried; max_attempts is unlimited.\n"
            "    It waits 1s before attempt 2, as constant backoff says.\n"
            "  It waits until 2026-11-15T11:00:00Z.\n");
}

TEST(ObserveWhy, AttemptsWereUsedUp) {
  Story story{step_named("fetch", {.max_attempts = 2})};
  story.started(1).retried(1, exit_7, 100ms, {1s, 0s, 1s}).started(2).gave_up(2, exit_7, StopReason::attempts);
  EXPECT_EQ(
      story.told(),
      "fetch: failed\n"
      "  Attempt 1 failed at 2026-11-15T10:00:01.250Z: exit 7: ExitError: boom.\n"
      "    It is transient, by the rule: exit 7.\n"
      "    Tried again: transient failures are retried; max_attempts 2 leaves 1.\n"
      "    It waited 100ms before attempt 2, drawn from 0s to 1s (exponential backoff, nominal 1s, jitter full).\n"
      "  Attempt 2 failed at 2026-11-15T10:00:04.250Z in the same way.\n"
      "    Given up (attempts): that was attempt 2 of max_attempts 2.\n"
      "  It failed for good after 2 attempts.\n"
      "  For another outcome:\n"
      "    - allow more attempts: max_attempts: 3 or more, under retry of step fetch\n");
}

// One line for each place a policy may come from.
TEST(ObserveWhy, TheRemedySaysWhereThePolicyStands) {
  const auto remedy = [](WorkSource source, PolicyLevel level) {
    Story story{step_named("a", {.max_attempts = 1}, level), source};
    const std::string text = story.gave_up(1, timeout, StopReason::attempts).told();
    return text.substr(text.rfind("    - ") + 6);
  };
  EXPECT_EQ(remedy(WorkSource::document, PolicyLevel::run),
            "allow more attempts: max_attempts: 2 or more, under defaults.retry\n");
  EXPECT_EQ(remedy(WorkSource::document, PolicyLevel::actor_type),
            "allow more attempts: max_attempts: 2 or more, under defaults.by_type\n");
  EXPECT_EQ(remedy(WorkSource::document, PolicyLevel::built_in),
            "allow more attempts: max_attempts: 2 or more, under retry of step a, which has none of its own\n");
  EXPECT_EQ(remedy(WorkSource::foreign_document, PolicyLevel::step),
            "allow more attempts: max_attempts 2 or more, in the policy of step a\n");
  EXPECT_EQ(remedy(WorkSource::program, PolicyLevel::step),
            "allow more attempts: max_attempts 2 or more in the policy of step a\n");
  EXPECT_EQ(remedy(WorkSource::exec, PolicyLevel::work_item), "allow more attempts: --max-attempts 2 or more\n");
}

TEST(ObserveWhy, ThePermanentClass) {
  Story story{step_named("fetch", {})};
  story.started(1).gave_up(1, refused, StopReason::permanent);
  EXPECT_EQ(
      story.told(),
      "fetch: failed\n"
      "  Attempt 1 failed at 2026-11-15T10:00:01.250Z: HTTP 404: no such page.\n"
      "    It is deterministic, not_found, by the rule: http 404.\n"
      "    Given up (permanent): deterministic failures are not retried unless only_on names them.\n"
      "  It failed for good after 1 attempt.\n"
      "  For another outcome:\n"
      "    - if it may go away by itself, write classify: [{when: \"http:404\", class: transient}] at the top of the "
      "document\n");
}

TEST(ObserveWhy, AClassByARuleOfTheDocument) {
  Failure ruled = exit_7;
  ruled.failure_class = FailureClass::deterministic;
  ruled.details = "classified by rule 2: exit:7\nmore";
  const std::string text = Story{step_named("a", {})}.gave_up(1, ruled, StopReason::permanent).told();
  EXPECT_NE(text.find("It is deterministic, by the rule: rule 2: exit:7.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("- if it may go away by itself, give it the class transient in classify, rule 2: exit:7\n"),
            std::string::npos)
      << text;
}

TEST(ObserveWhy, NeverOn) {
  Policy policy{.never_on = FailureRules{FailureRule::of_exit(7), FailureRule::of_exit(8)}};
  const std::string text =
      Story{step_named("a", policy)}.started(1).gave_up(1, exit_7, StopReason::permanent, 0).told();
  EXPECT_EQ(text,
            "a: failed\n"
            "  Attempt 1 failed at 2026-11-15T10:00:01.250Z: exit 7: ExitError: boom.\n"
            "    It is transient, by the rule: exit 7.\n"
            "    Given up (permanent): exit:7 stands in never_on.\n"
            "  It failed for good after 1 attempt.\n"
            "  For another outcome:\n"
            "    - take exit:7 out of never_on: never_on: [\"exit:8\"], under retry of step a\n");
}

TEST(ObserveWhy, NotInOnlyOn) {
  Policy policy{.max_attempts = 1,
                .only_on = FailureRules{FailureRule::of_exit(8), FailureRule::of_type("TimeoutError")}};
  const std::string told =
      "    Given up (not_listed): only_on lists exit:8 and TimeoutError, and none of it matches.\n";
  const std::string text = Story{step_named("a", policy)}.gave_up(1, exit_7, StopReason::not_listed).told();
  EXPECT_NE(text.find(told), std::string::npos) << text;
  EXPECT_NE(
      text.find("  For another outcome:\n"
                "    - add exit:7 to only_on: only_on: [\"exit:8\", TimeoutError, \"exit:7\"], under retry of step a\n"
                "    - and allow more attempts: max_attempts: 2 or more, under retry of step a\n"),
      std::string::npos)
      << text;
  const std::string exec =
      Story{step_named("a", policy), WorkSource::exec}.gave_up(1, exit_7, StopReason::not_listed).told();
  EXPECT_NE(exec.find("- add exit:7 to only_on: --only-on exit:8,TimeoutError,exit:7\n"), std::string::npos) << exec;
}

TEST(ObserveWhy, TheWaitWouldHaveGoneBeyondMaxElapsed) {
  Policy policy{.max_attempts = 9, .max_elapsed = 5s, .initial = 10s, .jitter = Jitter::none};
  const std::string text = Story{step_named("a", policy)}.gave_up(1, timeout, StopReason::deadline).told();
  EXPECT_NE(
      text.find("    Given up (deadline): after 1.5s a further wait of 10s would have gone beyond max_elapsed 5s.\n"
                "  It failed for good after 1 attempt.\n"
                "  For another outcome:\n"
                "    - allow more time: max_elapsed: more than 11.5s, under retry of step a\n"),
      std::string::npos)
      << text;
}

TEST(ObserveWhy, TheTimeWasOverWhenTheWaitWas) {
  Story story{step_named("a", {.max_elapsed = 5s})};
  story.started(1).retried(1, timeout, 1s, {1s, 0s, 1s}).gave_up(1, timeout, StopReason::deadline);
  EXPECT_NE(story.told().find("  Attempt 2 was not begun at 2026-11-15T10:00:03.250Z.\n"
                              "    Given up (deadline): max_elapsed 5s was over before the next attempt could begin.\n"
                              "  It failed for good after 1 attempt.\n"),
            std::string::npos)
      << story.told();
}

TEST(ObserveWhy, TheDeadlineOfTheRun) {
  Story story{step_named("a", {}), WorkSource::document, 2h};
  story.started(1);
  story.tell({.type = EventType::cancel_requested, .reason = StopReason::deadline, .text = "deadline"}, true);
  story.gave_up(1, {.type = "CanceledError", .failure_class = FailureClass::canceled}, StopReason::canceled);
  EXPECT_EQ(story.told(),
            "The deadline of the run, 2h, passed at 2026-11-15T10:00:01.250Z.\n"
            "a: canceled\n"
            "  Attempt 1 failed at 2026-11-15T10:00:02.250Z: CanceledError.\n"
            "    Stopped (canceled): the deadline of the run, 2h, had passed.\n"
            "  It was stopped with the run, and goes on when that is resumed.\n"
            "  For another outcome:\n"
            "    - allow more time: deadline: more than 2h, under runtime\n");
}

TEST(ObserveWhy, CancelledInAWait) {
  Story story{step_named("a", {})};
  story.started(1).retried(1, timeout, 1s, {1s, 0s, 1s});
  story.tell({.type = EventType::cancel_requested, .reason = StopReason::canceled, .text = "too\nlate"}, true);
  story.tell({.type = EventType::interrupted});
  const std::string text = story.told();
  EXPECT_TRUE(text.starts_with("The run was cancelled at 2026-11-15T10:00:03.250Z: too late.\na: canceled\n")) << text;
  EXPECT_TRUE(
      text.ends_with("  It was waiting for attempt 2 when the run was stopped, and goes on when that is resumed.\n"))
      << text;
}

TEST(ObserveWhy, TheCircuitBreaker) {
  core::StepPlan step = step_named("a", {.max_attempts = 9});
  step.breaker_limit = 3;
  const std::string text = Story{step}.gave_up(3, timeout, StopReason::circuit_open).told();
  EXPECT_NE(
      text.find("    Given up (circuit_open): the same failure came 3 times, which opened the circuit breaker of the "
                "step.\n"
                "  It failed for good after 3 attempts.\n"
                "  For another outcome:\n"
                "    - let the circuit breaker count further: circuit_breaker: {limit: 4} or more, in step a or under "
                "runtime\n"),
      std::string::npos)
      << text;
}

TEST(ObserveWhy, TheBudgetForWaits) {
  Policy policy{
      .max_attempts = 9, .retry_budget = 350ms, .backoff = Backoff::linear, .initial = 100ms, .jitter = Jitter::none};
  Story story{step_named("map", policy), WorkSource::foreign_document};
  story.started(1).retried(1, exit_7, 100ms, {100ms, 100ms, 100ms}).started(2);
  story.retried(2, exit_7, 200ms, {200ms, 200ms, 200ms}).started(3).gave_up(3, exit_7, StopReason::budget);
  const std::string text = story.told();
  EXPECT_NE(
      text.find("    Given up (budget): its waits had taken 300ms, and a further one of 300ms would have gone beyond "
                "retry_budget 350ms.\n"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find("- allow longer waits: retry_budget 600ms or more, in the policy of step map\n"),
      std::string::npos)
      << text;
}

TEST(ObserveWhy, RetryAfterWasLonger) {
  Story story{step_named("a", {})};
  story.started(1).retried(1, {.failure_class = FailureClass::transient, .http_status = 503}, 4s, {1s, 4s, 4s}, true);
  const std::string text = story.started(2).completed(2).told();
  EXPECT_NE(
      text.find("    It waited 4s before attempt 2: the other side asked for at least that long (Retry-After), and "
                "exponential backoff (nominal 1s) had drawn less.\n"),
      std::string::npos)
      << text;
}

TEST(ObserveWhy, KilledAndResumed) {
  Story story{step_named("a", {})};
  story.started(1).tell({.type = EventType::recovered}, true);
  const Failure lost{.type = "WorkerLost",
                     .message = "the engine ended while the attempt was running",
                     .failure_class = FailureClass::transient,
                     .kind = FailureKind::worker_lost};
  story.tell(
      {.type = EventType::failed, .attempt = 1, .will_retry = true, .lost = true, .failure = lost, .lost_attempts = 1});
  story.tell({.type = EventType::retrying, .attempt = 1, .next_attempt = 2, .delay = 1s, .range = {1s, 0s, 1s}});
  EXPECT_EQ(
      story.started(2).completed(2).told(),
      "The engine had died and was started again at 2026-11-15T10:00:01.250Z; attempts that were running count as "
      "lost.\n"
      "a: succeeded\n"
      "  Attempt 1 failed at 2026-11-15T10:00:02.250Z: WorkerLost: the engine ended while the attempt was running.\n"
      "    The engine died during this attempt: it is lost, and not one of those that count.\n"
      "    Tried again: up to 3 losses in a row are made again; max_attempts 3 leaves 3.\n"
      "    It waited 1s before attempt 2, drawn from 0s to 1s (exponential backoff, nominal 1s, jitter full).\n"
      "  Attempt 2 succeeded, 2s after the first one began.\n");
}

TEST(ObserveWhy, AFallback) {
  core::StepPlan step = step_named("a", {.max_attempts = 1});
  step.fallback = core::FallbackRule::gave_up;
  const auto fell_back = [&] {
    Story story{step};
    story.tell({.type = EventType::failed,
                .attempt = 1,
                .will_retry = true,
                .failure = exit_7,
                .reason = StopReason::attempts});
    story.tell({.type = EventType::fallback, .attempt = 2, .text = "fallback"}).started(2);
    return story;
  };
  const std::string beginning =
      "  Attempt 1 failed at 2026-11-15T10:00:00.250Z: exit 7: ExitError: boom.\n"
      "    It is transient, by the rule: exit 7.\n"
      "    No further attempt of this kind (attempts): that was attempt 1 of max_attempts 1.\n"
      "    Next is its fallback, as attempt 2.\n";
  EXPECT_EQ(fell_back().completed(2).told(),
            "a: succeeded\n" + beginning + "  Attempt 2, its fallback, succeeded, 2s after the first one began.\n");
  EXPECT_EQ(fell_back().gave_up(2, timeout, StopReason::attempts).told(),
            "a: failed\n" + beginning +
                "  Attempt 2, its fallback, failed at 2026-11-15T10:00:03.250Z: TimeoutError: no answer.\n"
                "    It is transient, timeout, by the rule: type TimeoutError.\n"
                "    Given up (attempts): its fallback is tried once.\n"
                "  It failed for good after 2 attempts.\n"
                "  For another outcome:\n"
                "    - mend its fallback, which failed too\n");
}

TEST(ObserveWhy, AFallbackThatWasNotMeantForIt) {
  core::StepPlan step = step_named("a", {.max_attempts = 1});
  step.fallback = core::FallbackRule::budget_exhausted;
  const std::string text = Story{step}.gave_up(1, exit_7, StopReason::attempts).told();
  EXPECT_NE(
      text.find(
          "    - have its fallback take over, which is for exhausted budgets only: when: gave_up, under fallback of "
          "step a\n"),
      std::string::npos)
      << text;
}

TEST(ObserveWhy, ADeadLetterAndWhatBecameOfIt) {
  Story story{step_named("a", {.max_attempts = 1})};
  story.gave_up(1, timeout, StopReason::attempts).tell({.type = EventType::dead_lettered, .attempt = 1});
  EXPECT_NE(story.told().find("  It failed for good after 1 attempt and is kept as a dead letter.\n"),
            std::string::npos)
      << story.told();
  story.tell({.type = EventType::dropped});
  EXPECT_NE(story.told().find("  It failed for good after 1 attempt, and its dead letter was dropped.\n"),
            std::string::npos)
      << story.told();
}

TEST(ObserveWhy, SomebodyAskedForMore) {
  Story story{step_named("a", {.max_attempts = 1})};
  story.gave_up(1, timeout, StopReason::attempts).tell({.type = EventType::reopened}, true);
  EXPECT_EQ(story.started(1).completed(1).told(),
            "What had failed was tried again, because somebody asked at 2026-11-15T10:00:01.250Z.\n"
            "a: succeeded\n"
            "  Attempt 1 failed at 2026-11-15T10:00:00.250Z: TimeoutError: no answer.\n"
            "    It is transient, timeout, by the rule: type TimeoutError.\n"
            "    Given up (attempts): that was attempt 1 of max_attempts 1.\n"
            "    Somebody asked at 2026-11-15T10:00:01.250Z to try it again, with all its attempts.\n"
            "  Attempt 1 succeeded, 2s after the first one began.\n");
}

TEST(ObserveWhy, GoingBackAsOftenAsItMay) {
  core::StepPlan step = step_named("check", {.max_attempts = 1});
  step.on_failure = OnFailure::revisit;
  step.max_visits = 2;
  Story story{step};
  story.gave_up(1, exit_7, StopReason::attempts).tell({.type = EventType::revisited});
  story.gave_up(1, exit_7, StopReason::attempts);
  story.tell({.type = EventType::ended, .reason = StopReason::max_visits, .status = RunStatus::failed}, true);
  EXPECT_EQ(story.told(),
            "The run went back to check at 2026-11-15T10:00:01.250Z, as on_failure says.\n"
            "The run ended at 2026-11-15T10:00:03.250Z because a step was visited as often as max_visits allows.\n"
            "check: failed\n"
            "  Attempt 1 failed at 2026-11-15T10:00:00.250Z: exit 7: ExitError: boom.\n"
            "    It is transient, by the rule: exit 7.\n"
            "    Given up (attempts): that was attempt 1 of max_attempts 1.\n"
            "    The run went back to check, to come here again.\n"
            "  Attempt 1 failed at 2026-11-15T10:00:02.250Z in the same way.\n"
            "    Given up (attempts): that was attempt 1 of max_attempts 1.\n"
            "  It failed for good after 1 attempt.\n"
            "  For another outcome:\n"
            "    - allow more attempts: max_attempts: 2 or more, under retry of step check\n"
            "    - let it come here more often: max_visits: 3 or more, in step check or under runtime\n");
}

TEST(ObserveWhy, APreconditionAndASignal) {
  Story required{step_named("a", {})};
  required.tell({.type = EventType::failed, .precondition = true, .failure = exit_7, .reason = StopReason::permanent});
  EXPECT_EQ(required.told(),
            "a: failed\n"
            "  Its precondition failed at 2026-11-15T10:00:00.250Z: exit 7: ExitError: boom.\n"
            "    Given up (permanent): a precondition that fails is never retried.\n"
            "  It failed for good before its first attempt.\n");
  core::StepPlan step = step_named("ok", {.max_attempts = 1});
  step.kind = core::StepKind::signal;
  step.wait = std::chrono::nanoseconds{200ms}.count();
  EXPECT_EQ(Story{step}.gave_up(0, timeout, StopReason::deadline).told(),
            "ok: failed\n"
            "  It failed at 2026-11-15T10:00:00.250Z: TimeoutError: no answer.\n"
            "    Given up (deadline): its timeout is 200ms.\n"
            "  It failed for good.\n"
            "  For another outcome:\n"
            "    - allow more time: timeout: more than 200ms, in step ok\n");
}

TEST(ObserveWhy, ALongHistoryIsShortened) {
  Story story{step_named("a", {.max_attempts = 100})};
  for (std::uint64_t attempt = 1; attempt < 100; ++attempt)
    story.started(attempt).retried(attempt, timeout, 1s, {1s, 0s, 1s});
  const std::string text = story.started(100).gave_up(100, timeout, StopReason::attempts).told();
  EXPECT_LT(std::ranges::count(text, '\n'), 32) << text;
  EXPECT_NE(text.find("  Attempts 6 to 98 failed as well (--format json has them all).\n  Attempt 99 failed"),
            std::string::npos)
      << text;
}

TEST(ObserveWhyText, ShowsAFewOfManyItems) {
  std::vector<Explanation> items;
  for (std::uint32_t item = 0; item < 200; ++item)
    items.push_back({.step = 0, .item = item, .state = item % 2 == 0 ? WorkState::failed : WorkState::succeeded});
  items.push_back({.step = 1, .state = WorkState::failed});
  const ItemsToShow chosen = items_to_show(items);
  EXPECT_EQ(chosen.shown, (std::vector<std::size_t>{0, 2, 4, 200, 1, 3, 5}));
  ASSERT_EQ(chosen.left_out.size(), 2U);
  EXPECT_EQ(chosen.left_out[0].first, 6U);
  EXPECT_EQ(chosen.left_out[0].count, 97U);
  EXPECT_TRUE(chosen.left_out[0].for_good);
  EXPECT_EQ(chosen.left_out[1].first, 7U);
  EXPECT_FALSE(chosen.left_out[1].for_good);
  std::vector<Explanation> steps;
  for (std::uint32_t step = 0; step < 30; ++step) steps.push_back({.step = step, .state = WorkState::failed});
  EXPECT_EQ(items_to_show(steps).shown.size(), items_shown_max);
  EXPECT_EQ(items_to_show(steps).left_out.size(), 30 - items_shown_max);
}

}  // namespace
}  // namespace reprise::observe
