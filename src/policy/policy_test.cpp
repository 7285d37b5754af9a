// Policy values: presets, names, equality, which level applies, and the type tree.
#include <reprise/policy.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <set>

namespace reprise {
namespace {

using namespace std::chrono_literals;

TEST(PolicyPreset, are_those_of_the_law) {
  EXPECT_EQ(policy::standard.max_attempts, 3U);
  EXPECT_EQ(policy::standard.initial, Duration{1s});
  EXPECT_EQ(policy::standard.factor, 2);
  EXPECT_EQ(policy::standard.max, Duration{30s});
  EXPECT_EQ(policy::aggressive.max_attempts, 5U);
  EXPECT_EQ(policy::aggressive.initial, Duration{200ms});
  EXPECT_EQ(policy::aggressive.max, Duration{30s});
  EXPECT_EQ(policy::patient.max_attempts, 3U);
  EXPECT_EQ(policy::patient.initial, Duration{5s});
  EXPECT_EQ(policy::patient.factor, 3);
  EXPECT_EQ(policy::patient.max, Duration{90s});
  for (const Policy* each : {&policy::none, &policy::standard, &policy::aggressive, &policy::patient}) {
    EXPECT_EQ(each->backoff, Backoff::exponential);
    EXPECT_EQ(each->jitter, Jitter::full);
    EXPECT_TRUE(each->honor_retry_after);
    EXPECT_FALSE(each->max_elapsed || each->attempt_timeout || each->retry_budget || each->only_on || each->never_on);
  }
  Policy none = policy::none;
  none.max_attempts = 3;
  EXPECT_EQ(none, policy::standard) << "none differs in its attempts alone";
  EXPECT_EQ(policy::none.max_attempts, 1U);
}

TEST(PolicyPreset, are_found_by_name) {
  EXPECT_EQ(policy::named("none"), &policy::none);
  EXPECT_EQ(policy::named("standard"), &policy::standard);
  EXPECT_EQ(policy::named("aggressive"), &policy::aggressive);
  EXPECT_EQ(policy::named("patient"), &policy::patient);
  for (const std::string_view name : {"", "Standard", "tool", "agent", "nonee"})
    EXPECT_EQ(policy::named(name), nullptr) << name;
}

TEST(PolicyResolve, the_most_specific_level_wins_whole) {
  const Policy work_item;
  const Policy step;
  const Policy type;
  const Policy run;
  PolicyLevels levels{.work_item = &work_item, .step = &step, .actor_type = &type, .run = &run};
  const auto expect = [&](const Policy* policy, PolicyLevel level) {
    const ResolvedPolicy resolved = resolve(levels, "tool");
    EXPECT_EQ(resolved.policy, policy) << name_of(level);
    EXPECT_EQ(resolved.level, level) << name_of(level);
  };
  expect(&work_item, PolicyLevel::work_item);
  levels.work_item = nullptr;
  expect(&step, PolicyLevel::step);
  levels.step = nullptr;
  expect(&type, PolicyLevel::actor_type);
  levels.actor_type = nullptr;
  expect(&run, PolicyLevel::run);
  levels.run = nullptr;
  expect(&policy::tool, PolicyLevel::built_in);
}

TEST(PolicyResolve, none_at_a_level_is_final) {
  const PolicyLevels levels{
      .work_item = nullptr, .step = &policy::none, .actor_type = &policy::aggressive, .run = &policy::aggressive};
  EXPECT_EQ(resolve(levels, "tool").policy, &policy::none);
}

TEST(PolicyResolve, built_in_policies_by_actor_type) {
  for (const std::string_view type : {"tool", "llm"}) {
    const Policy& policy = *resolve({}, type).policy;
    EXPECT_EQ(policy.max_attempts, 3U);
    EXPECT_EQ(policy.backoff, Backoff::exponential);
    EXPECT_EQ(policy.initial, Duration{1s});
    EXPECT_EQ(policy.factor, 2);
    EXPECT_EQ(policy.max, Duration{30s});
    EXPECT_EQ(policy.jitter, Jitter::ratio);
    EXPECT_EQ(policy.jitter_ratio, 0.25);
  }
  EXPECT_EQ(resolve({}, "agent").policy->max_attempts, 1U);
  EXPECT_EQ(resolve({}, "my own").policy, &policy::standard);
  EXPECT_EQ(resolve({}, "").level, PolicyLevel::built_in);
}

TEST(PolicyNames, each_value_has_its_own) {
  std::set<std::string_view> reasons;
  for (int value = 0; value <= static_cast<int>(StopReason::max_visits); ++value)
    reasons.insert(name_of(static_cast<StopReason>(value)));
  EXPECT_EQ(reasons, (std::set<std::string_view>{"none", "canceled", "permanent", "not_listed", "no_verdict",
                                                 "circuit_open", "attempts", "deadline", "budget", "max_visits"}));
  EXPECT_EQ(name_of(StopReason::circuit_open), "circuit_open");
  EXPECT_EQ(name_of(StopReason::no_verdict), "no_verdict");
  EXPECT_EQ(name_of(Backoff::decorrelated), "decorrelated");
  EXPECT_EQ(name_of(Backoff::list), "list");
  EXPECT_EQ(name_of(Jitter::ratio), "ratio");
  EXPECT_EQ(name_of(Matching::exact), "exact");
  EXPECT_EQ(name_of(ErrorCategory::server_error), "server_error");
  EXPECT_EQ(name_of(PolicyLevel::built_in), "built-in");
  for (const char* name :
       {"transient", "deterministic", "budget_exhausted", "contract_failure", "test_failure", "canceled"}) {
    EXPECT_EQ(name_of(failure_class_named(name).value()), name);
  }
  for (const char* name :
       {"timeout", "throttled", "stalled", "worker_lost", "crashed", "not_found", "auth", "invalid_input"}) {
    EXPECT_EQ(name_of(failure_kind_named(name).value()), name);
  }
  EXPECT_EQ(failure_class_named("Transient"), std::nullopt);
  EXPECT_EQ(failure_kind_named("none"), std::nullopt) << "no kind is not a kind";
}

TEST(PolicyNames, kinds_belong_to_classes) {
  for (const FailureKind kind : {FailureKind::timeout, FailureKind::throttled, FailureKind::stalled,
                                 FailureKind::worker_lost, FailureKind::crashed}) {
    EXPECT_EQ(class_of(kind), FailureClass::transient) << name_of(kind);
  }
  for (const FailureKind kind : {FailureKind::not_found, FailureKind::auth, FailureKind::invalid_input}) {
    EXPECT_EQ(class_of(kind), FailureClass::deterministic) << name_of(kind);
  }
}

TEST(PolicyNames, signals_with_and_without_their_prefix) {
  EXPECT_EQ(signal_number("SIGKILL"), SIGKILL);
  EXPECT_EQ(signal_number("KILL"), SIGKILL);
  EXPECT_EQ(signal_number("kill"), std::nullopt);
  EXPECT_EQ(signal_number("SIG"), std::nullopt);
  EXPECT_EQ(signal_number(""), std::nullopt);
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(0), "");
  EXPECT_EQ(signal_name(999), "");
}

TEST(PolicyEquality, every_field_counts) {
  const Policy base;
  const auto changed = [&](auto change) {
    Policy other = base;
    change(other);
    EXPECT_NE(other, base);
  };
  changed([](Policy& p) { p.max_attempts = 4; });
  changed([](Policy& p) { p.max_elapsed = 1s; });
  changed([](Policy& p) { p.attempt_timeout = 1s; });
  changed([](Policy& p) { p.retry_budget = 1s; });
  changed([](Policy& p) { p.backoff = Backoff::linear; });
  changed([](Policy& p) { p.initial = 2s; });
  changed([](Policy& p) { p.increment = 2s; });
  changed([](Policy& p) { p.factor = 3; });
  changed([](Policy& p) { p.delays = {1s}; });
  changed([](Policy& p) { p.max.reset(); });
  changed([](Policy& p) { p.jitter = Jitter::none; });
  changed([](Policy& p) { p.jitter_ratio = 0.5; });
  changed([](Policy& p) { p.honor_retry_after = false; });
  changed([](Policy& p) { p.only_on.emplace(); });
  changed([](Policy& p) { p.never_on.emplace(); });
  changed([](Policy& p) { p.match = Matching::exact; });
  changed([](Policy& p) { p.stops_on_class = false; });
  changed([](Policy& p) { p.needs_verdict = true; });
  changed([](Policy& p) { p.parallelism = 2; });
}

TEST(PolicyTypeTree, knows_the_types_of_the_law) {
  const TypeTree& tree = TypeTree::builtin();
  const std::pair<const char*, const char*> is_a[] = {
      {"OSError", "Exception"},
      {"ConnectionError", "OSError"},
      {"ConnectionResetError", "ConnectionError"},
      {"ConnectionAbortedError", "OSError"},
      {"ConnectionRefusedError", "ConnectionError"},
      {"BrokenPipeError", "ConnectionError"},
      {"TimeoutError", "OSError"},
      {"PermissionError", "OSError"},
      {"FileNotFoundError", "OSError"},
      {"ValidationError", "ValueError"},
      {"UnicodeError", "ValueError"},
      {"TypeError", "Exception"},
      {"KeyError", "LookupError"},
      {"IndexError", "LookupError"},
      {"AttributeError", "Exception"},
      {"AssertionError", "Exception"},
      {"RuntimeError", "Exception"},
      {"ArithmeticError", "Exception"},
      {"NetworkError", "Exception"},
      {"NeverHeardOf", "Exception"},
      {"NeverHeardOf", "NeverHeardOf"},
      {"asyncio.exceptions.TimeoutError", "OSError"},
      {"TimeoutError", "builtins.TimeoutError"},
      {"Exception", "Exception"},
  };
  for (const auto& [type, ancestor] : is_a) EXPECT_TRUE(tree.is_a(type, ancestor)) << type << " is a " << ancestor;
  const std::pair<const char*, const char*> is_not[] = {
      {"OSError", "ConnectionError"},
      {"TimeoutError", "ConnectionError"},
      {"ValueError", "LookupError"},
      {"timeouterror", "OSError"},
      {"NetworkError", "OSError"},
      {"NeverHeardOf", "OSError"},
      {"Exception", "OSError"},
      {"", "Exception"},
      {"", ""},
      {"TimeoutError.", "TimeoutError"},
  };
  for (const auto& [type, ancestor] : is_not) EXPECT_FALSE(tree.is_a(type, ancestor)) << type << " is no " << ancestor;
}

TEST(PolicyTypeTree, users_add_types) {
  TypeTree tree;
  tree.add("QuotaError", "TimeoutError");
  tree.add("my.pkg.DailyQuotaError", "QuotaError");
  EXPECT_TRUE(tree.is_a("DailyQuotaError", "OSError"));
  EXPECT_TRUE(tree.is_a("other.DailyQuotaError", "QuotaError"));
  EXPECT_FALSE(TypeTree::builtin().is_a("QuotaError", "OSError"));
  tree.add("Lost", "NeverDefined");
  EXPECT_TRUE(tree.is_a("Lost", "NeverDefined"));
  EXPECT_TRUE(tree.is_a("Lost", "Exception")) << "an unknown parent is a child of Exception";
  tree.add("QuotaError", "ValueError");
  EXPECT_TRUE(tree.is_a("DailyQuotaError", "ValueError")) << "the latest addition wins";
  EXPECT_FALSE(tree.is_a("DailyQuotaError", "OSError"));
}

TEST(PolicyTypeTree, a_circle_ends) {
  TypeTree tree;
  tree.add("A", "B");
  tree.add("B", "C");
  tree.add("C", "A");
  tree.add("Self", "Self");
  EXPECT_TRUE(tree.is_a("A", "C"));
  EXPECT_FALSE(tree.is_a("A", "OSError"));
  EXPECT_FALSE(tree.is_a("Self", "Exception"));
}

TEST(PolicyLevels, actor_types_have_more_than_one_word) {
  for (const char* word : {"tool", "tool_call", "TOOL_CALL", "Tool"}) EXPECT_EQ(actor_type_of(word), "tool");
  for (const char* word : {"llm", "LLM_CALL"}) EXPECT_EQ(actor_type_of(word), "llm");
  for (const char* word : {"agent", "Agent_Call"}) EXPECT_EQ(actor_type_of(word), "agent");
  for (const char* word : {"", "human", "Tool_Calls", "my_call"}) EXPECT_EQ(actor_type_of(word), word);
  EXPECT_EQ(resolve({}, "AGENT_CALL").policy, &policy::agent);
}

}  // namespace
}  // namespace reprise
