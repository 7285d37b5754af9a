// How to test code that retries: no waiting, no chance, and every failure by script.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <cstdlib>
#include <iostream>

namespace {

using namespace std::chrono_literals;

// The code under test. It takes its Env from outside; in production that is reprise::system_env().
template <class Fetch>
std::expected<std::string, reprise::RetryError> load_config(Fetch& fetch, reprise::Env& env,
                                                            std::stop_token stop = {}) {
  reprise::Policy policy = reprise::policy::standard;
  policy.jitter = reprise::Jitter::none;
  policy.max_elapsed = 10s;
  return reprise::retry(policy, fetch, {.stop = std::move(stop), .env = &env});
}

void expect(bool holds, std::string_view what) {
  std::cout << (holds ? "ok: " : "FAILED: ") << what << '\n';
  if (!holds) std::exit(1);
}

void survives_two_timeouts() {
  reprise::SimEnv env;
  reprise::Flaky<std::string> fetch{"mode = fast"};
  fetch.fails(2, {.type = "TimeoutError"});
  const auto config = load_config(fetch, env);
  expect(config == "mode = fast", "two timeouts are survived");
  expect(fetch.calls() == 3, "with three calls");
  expect(env.waits() == std::vector<reprise::Duration>{1s, 2s}, "and waits of 1s and 2s");
}

void respects_its_deadline() {
  reprise::SimEnv env;
  reprise::Flaky<std::string> fetch{"never"};
  fetch.takes(env, 6s).fails_always({.http_status = 503});
  const auto config = load_config(fetch, env);
  expect(config.error().reason == reprise::StopReason::deadline, "slow failures end at the deadline");
  expect(env.elapsed() < 20s, "and not much later");
}

void stops_when_told() {
  reprise::SimEnv env;
  std::stop_source source;
  env.at(env.start() + 500ms, [&] { source.request_stop(); });  // in the middle of the first wait
  reprise::Flaky<std::string> fetch{"never"};
  fetch.fails_always({.type = "TimeoutError"});
  const auto config = load_config(fetch, env, source.get_token());
  expect(config.error().reason == reprise::StopReason::canceled, "a stop request ends the wait");
  expect(env.elapsed() == 500ms, "at once");
}

}  // namespace

int main() {
  survives_two_timeouts();
  respects_its_deadline();
  stops_when_told();
}
