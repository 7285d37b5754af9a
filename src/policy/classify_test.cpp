// The classifier: each rule of the law, and the order among them from the most certain evidence to the least.
#include <reprise/classify.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace reprise {
namespace {

using Class = FailureClass;
using Kind = FailureKind;

struct Expected {
  Class failure_class;
  Kind kind = Kind::none;
};

void expect(const Evidence& evidence, Expected expected, const std::string& what) {
  const Classification found = classify(evidence);
  EXPECT_EQ(name_of(found.failure_class), name_of(expected.failure_class)) << what;
  EXPECT_EQ(name_of(found.kind), name_of(expected.kind)) << what;
  EXPECT_EQ(found.retryable, is_retryable(expected.failure_class)) << what;
  EXPECT_TRUE(found.failed) << what;
}

TEST(PolicyClassify, exit_codes) {
  const std::pair<int, Expected> codes[] = {
      {75, {Class::transient}},
      {64, {Class::deterministic, Kind::invalid_input}},
      {65, {Class::deterministic, Kind::invalid_input}},
      {78, {Class::deterministic}},
      {126, {Class::deterministic, Kind::not_found}},
      {127, {Class::deterministic, Kind::not_found}},
      {128 + SIGSEGV, {Class::transient, Kind::crashed}},
      {128 + SIGABRT, {Class::transient, Kind::crashed}},
      {128 + SIGKILL, {Class::transient}},
      {1, {Class::transient}},
      {66, {Class::transient}},
      {128, {Class::transient}},
      {193, {Class::transient}},
      {255, {Class::transient}},
  };
  for (const auto& [code, expected] : codes) expect({.exit_code = code}, expected, "exit " + std::to_string(code));
}

TEST(PolicyClassify, signals_and_spawn_errors) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL})
    expect({.signal = signal}, {Class::transient, Kind::crashed}, "a crash");
  for (const int signal : {SIGKILL, SIGTERM, SIGHUP, SIGPIPE})
    expect({.signal = signal}, {Class::transient}, "another signal");
  for (const char* error : {"ENOENT", "EACCES", "ENOEXEC"})
    expect({.spawn_error = error}, {Class::deterministic, Kind::not_found}, error);
  for (const char* error : {"EAGAIN", "ENOMEM", "E2BIG"}) expect({.spawn_error = error}, {Class::transient}, error);
}

TEST(PolicyClassify, http_statuses) {
  const std::pair<int, Expected> statuses[] = {
      {301, {Class::deterministic}},
      {304, {Class::deterministic}},
      {400, {Class::deterministic, Kind::invalid_input}},
      {401, {Class::deterministic, Kind::auth}},
      {403, {Class::deterministic, Kind::auth}},
      {404, {Class::deterministic, Kind::not_found}},
      {408, {Class::transient, Kind::timeout}},
      {409, {Class::deterministic, Kind::invalid_input}},
      {422, {Class::deterministic, Kind::invalid_input}},
      {425, {Class::transient}},
      {429, {Class::transient, Kind::throttled}},
      {499, {Class::deterministic, Kind::invalid_input}},
      {500, {Class::transient}},
      {501, {Class::transient}},
      {503, {Class::transient, Kind::throttled}},
      {504, {Class::transient}},
      {599, {Class::transient}},
  };
  for (const auto& [status, expected] : statuses)
    expect({.http_status = status}, expected, "HTTP " + std::to_string(status));
}

TEST(PolicyClassify, typed_errors) {
  const std::pair<const char*, Expected> types[] = {
      {"TimeoutError", {Class::transient, Kind::timeout}},
      {"asyncio.TimeoutError", {Class::transient, Kind::timeout}},
      {"ConnectionError", {Class::transient}},
      {"BrokenPipeError", {Class::transient}},
      {"PermissionError", {Class::deterministic, Kind::auth}},
      {"FileNotFoundError", {Class::deterministic, Kind::not_found}},
      {"ValueError", {Class::deterministic, Kind::invalid_input}},
      {"ValidationError", {Class::deterministic, Kind::invalid_input}},
      {"TypeError", {Class::deterministic, Kind::invalid_input}},
      {"KeyError", {Class::deterministic, Kind::invalid_input}},
      {"IndexError", {Class::deterministic, Kind::invalid_input}},
      {"RuntimeError", {Class::transient}},
      {"Unheard", {Class::transient}},
  };
  for (const auto& [type, expected] : types) expect({.type = type}, expected, type);
}

TEST(PolicyClassify, text) {
  const std::pair<const char*, Expected> messages[] = {
      {"Rate limit reached", {Class::transient, Kind::throttled}},
      {"too many requests", {Class::transient, Kind::throttled}},
      {"got 429", {Class::transient, Kind::throttled}},
      {"exceeds the context window", {Class::budget_exhausted}},
      {"token limit", {Class::budget_exhausted}},
      {"Prompt is too long", {Class::budget_exhausted}},
      {"Invalid API key", {Class::deterministic, Kind::auth}},
      {"authentication failed", {Class::deterministic, Kind::auth}},
      {"unauthorized", {Class::deterministic, Kind::auth}},
      {"403 Forbidden", {Class::deterministic, Kind::auth}},
      {"permission denied", {Class::deterministic, Kind::auth}},
      {"Access denied", {Class::deterministic, Kind::auth}},
      {"bash: foo: command not found", {Class::deterministic, Kind::not_found}},
      {"executable not found in PATH", {Class::deterministic, Kind::not_found}},
      {"foo: not found in $PATH", {Class::deterministic, Kind::not_found}},
      {"schema validation error", {Class::contract_failure}},
      {"contract validation error", {Class::contract_failure}},
      {"1 test failed", {Class::test_failure}},
      {"3 tests failed", {Class::test_failure}},
      {"--- FAIL: TestX", {Class::test_failure}},
      {"go test ./...: exit status 1", {Class::test_failure}},
      {"pytest: 2 failed", {Class::test_failure}},
      {"npm test errors", {Class::test_failure}},
      {"go test ./... ok", {Class::transient}},
      {"request timed out", {Class::transient, Kind::timeout}},
      {"Timeout", {Class::transient, Kind::timeout}},
      {"connection reset", {Class::transient}},
      {"network is down", {Class::transient}},
      {"service unavailable", {Class::transient}},
      {"something odd", {Class::transient}},
      {"timeouts_total 4290", {Class::transient}},
  };
  for (const auto& [message, expected] : messages) expect({.message = message}, expected, message);
}

TEST(PolicyClassify, text_is_read_in_the_order_of_the_law) {
  expect({.message = "timeout; tests failed; schema validation; forbidden; token limit; rate limit"},
         {Class::transient, Kind::throttled}, "rate limit");
  expect({.message = "timeout; tests failed; schema validation; forbidden; token limit"}, {Class::budget_exhausted},
         "token limit");
  expect({.message = "timeout; tests failed; schema validation; forbidden"}, {Class::deterministic, Kind::auth},
         "forbidden");
  expect({.message = "timeout; tests failed; schema validation"}, {Class::contract_failure}, "schema");
  expect({.message = "timeout; tests failed"}, {Class::test_failure}, "tests");
}

TEST(PolicyClassify, a_huge_message_is_read_at_both_ends) {
  const std::string noise(500'000, 'x');
  expect({.message = "forbidden " + noise}, {Class::deterministic, Kind::auth}, "the beginning");
  const std::string at_end = noise + " forbidden";
  expect({.message = at_end}, {Class::deterministic, Kind::auth}, "the end");
}

TEST(PolicyClassify, evidence_goes_from_the_most_certain_to_the_least) {
  Evidence all{.type = "KeyError",
               .message = "tests failed",
               .exit_code = 75,
               .signal = SIGSEGV,
               .http_status = 404,
               .spawn_error = "ENOENT",
               .timed_out = true,
               .stalled = true,
               .canceled = true,
               .worker_lost = true,
               .dns_error = true,
               .schema_failed = true,
               .test_step = true,
               .failure_class = Class::budget_exhausted,
               .kind = Kind::auth,
               .permanent = true};
  expect(all, {Class::budget_exhausted, Kind::auth}, "the handler's own word");
  all.failure_class.reset();
  expect(all, {Class::deterministic, Kind::auth}, "the handler's permanent");
  all.permanent.reset();
  expect(all, {Class::canceled}, "cancellation");
  all.canceled = false;
  expect(all, {Class::deterministic, Kind::auth}, "the handler's kind");
  all.kind = Kind::none;
  expect(all, {Class::transient, Kind::timeout}, "our timeout");
  all.timed_out = false;
  expect(all, {Class::transient, Kind::stalled}, "our watchdog");
  all.stalled = false;
  expect(all, {Class::transient, Kind::worker_lost}, "a lost worker");
  all.worker_lost = false;
  expect(all, {Class::transient}, "DNS");
  all.dns_error = false;
  expect(all, {Class::deterministic, Kind::not_found}, "the spawn error");
  all.spawn_error = {};
  expect(all, {Class::transient, Kind::crashed}, "the signal");
  all.signal.reset();
  expect(all, {Class::transient}, "exit 75");
  all.exit_code = 1;
  expect(all, {Class::deterministic, Kind::not_found}, "HTTP 404: exit 1 says nothing");
  all.http_status.reset();
  expect(all, {Class::contract_failure}, "the schema");
  all.schema_failed = false;
  expect(all, {Class::deterministic, Kind::invalid_input}, "the type");
  all.type = {};
  expect(all, {Class::test_failure}, "the text");
  all.message = {};
  expect(all, {Class::test_failure}, "an unexplained code of a test step");
  all.test_step = false;
  expect(all, {Class::transient}, "nothing else known");
}

TEST(PolicyClassify, permanent_takes_back_a_retryable_class) {
  const Classification found = classify({.failure_class = Class::transient, .permanent = true});
  EXPECT_EQ(found.failure_class, Class::transient);
  EXPECT_FALSE(found.retryable);
  EXPECT_TRUE(classify({.message = "x", .permanent = false}).retryable)
      << "permanent: false says nothing about the class";
}

TEST(PolicyClassify, success_is_no_failure) {
  EXPECT_FALSE(classify({.exit_code = 0}).failed);
  EXPECT_FALSE(classify({.http_status = 204}).failed);
  EXPECT_FALSE(classify({.exit_code = 0, .http_status = 200}).failed);
  EXPECT_TRUE(classify({.message = "x", .exit_code = 0}).failed);
  EXPECT_TRUE(classify({.exit_code = 1, .http_status = 200}).failed);
  EXPECT_TRUE(classify({}).failed);
  EXPECT_EQ(classify({.http_status = 200, .schema_failed = true}).failure_class, Class::contract_failure);
}

TEST(PolicyClassify, rules_of_the_user_come_before_the_built_in_ones) {
  const std::vector<ClassifyRule> rules{{FailureRule::of_exit(3), Class::deterministic},
                                        {FailureRule::of_exit(1, 9), Class::test_failure},
                                        {FailureRule::of(Kind::throttled), Class::budget_exhausted},
                                        {FailureRule::of_type("TimeoutError"), Class::transient}};
  EXPECT_EQ(classify({.exit_code = 3}, rules).failure_class, Class::deterministic) << "the first match wins";
  EXPECT_EQ(classify({.exit_code = 3}, rules).user_rule, 0);
  EXPECT_EQ(classify({.exit_code = 4}, rules).failure_class, Class::test_failure);
  EXPECT_EQ(classify({.http_status = 503}, rules).failure_class, Class::budget_exhausted)
      << "rules may speak of what the built-in ones found";
  EXPECT_EQ(classify({.http_status = 503}, rules).kind, Kind::none) << "throttled is a kind of transient";
  EXPECT_EQ(classify({.type = "TimeoutError"}, rules).kind, Kind::timeout) << "the kind stays where it fits";
  EXPECT_EQ(classify({.exit_code = 20}, rules).user_rule, -1);
  EXPECT_EQ(classify({.exit_code = 3, .canceled = true}, rules).failure_class, Class::canceled)
      << "never before cancellation";
  EXPECT_EQ(classify({.exit_code = 3, .failure_class = Class::transient}, rules).failure_class, Class::transient)
      << "nor the handler's own word";
}

TEST(PolicyClassify, rules_are_named_in_words) {
  const auto named = [](const Evidence& evidence) { return describe_rule(classify(evidence), evidence); };
  EXPECT_EQ(named({.http_status = 503}), "http 503");
  EXPECT_EQ(named({.exit_code = 75}), "exit 75");
  EXPECT_EQ(named({.signal = SIGKILL}), "signal SIGKILL");
  EXPECT_EQ(named({.signal = 60}), "signal 60");
  EXPECT_EQ(named({.message = "rate limit"}), "text \"rate limit\"");
  EXPECT_EQ(named({.timed_out = true}), "timed out");
  EXPECT_EQ(named({.spawn_error = "ENOENT"}), "spawn error ENOENT");
  EXPECT_EQ(named({.exit_code = 137}), "exit 137 (SIGKILL)");
  const std::vector<ClassifyRule> rules{{FailureRule::of_exit(1), Class::transient},
                                        {FailureRule::of_exit(3), Class::deterministic}};
  const Evidence exit_3{.exit_code = 3};
  EXPECT_EQ(describe_rule(classify(exit_3, rules), exit_3, rules), "rule 2: exit:3");
  EXPECT_EQ(named({.type = "TimeoutError"}), "type TimeoutError");
}

}  // namespace
TEST(PolicyClassify, success_stays_success_whatever_the_rules_say) {
  const ClassifyRule rules[] = {{FailureRule::of(FailureClass::transient), FailureClass::deterministic},
                                {FailureRule::of_exit(0, 5), FailureClass::deterministic}};
  EXPECT_FALSE(classify({.exit_code = 0}, rules).failed);
}

TEST(PolicyClassify, types_of_the_users_own_count_with_their_family) {
  TypeTree tree;
  tree.add("BadInput", "ValueError");
  EXPECT_EQ(classify({.type = "BadInput", .types = &tree}).failure_class, FailureClass::deterministic);
  Policy policy;
  policy.types = &tree;
  Random random{1};
  EXPECT_EQ(decide(policy, {}, {.type = "BadInput"}, random).reason, StopReason::permanent);
}

TEST(PolicyClassify, a_circle_in_the_users_types_ends) {
  TypeTree tree;
  tree.add("A", "B");
  tree.add("B", "A");
  EXPECT_EQ(classify({.type = "A", .types = &tree}).failure_class, FailureClass::transient);
}

}  // namespace reprise
