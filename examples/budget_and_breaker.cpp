// An outage, seen by a program that shares one retry budget and one circuit breaker between all calls to a service.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <iostream>
#include <map>

namespace {

// Down between minute 1 and minute 3.
struct Service {
  reprise::SimEnv& env;
  int calls = 0;

  std::expected<int, reprise::Failure> operator()() {
    ++calls;
    const bool down = env.elapsed() >= std::chrono::minutes{1} && env.elapsed() < std::chrono::minutes{3};
    if (down) return std::unexpected{reprise::Failure{.http_status = 503}};
    return 200;
  }
};

// One request a second for five minutes; what became of them, minute by minute, and how many calls the service saw.
void run(std::string_view title, const reprise::RetryOptions& options, reprise::SimEnv& env) {
  std::cout << title << '\n';
  reprise::Policy policy = reprise::policy::aggressive;
  policy.initial = std::chrono::milliseconds{10};  // so that one request is over before the next one comes
  Service service{env};
  for (int minute = 0; minute < 5; ++minute) {
    std::map<std::string, int> outcomes;
    const int calls_before = service.calls;
    for (int second = 0; second < 60; ++second) {
      env.set(env.start() + std::chrono::minutes{minute} + std::chrono::seconds{second});
      const auto answer = reprise::retry(policy, service, options);
      ++outcomes[answer ? "ok" : std::string{name_of(answer.error().reason)}];
    }
    std::cout << "  minute " << minute << ": " << service.calls - calls_before << " calls";
    for (const auto& [outcome, count] : outcomes) std::cout << ", " << outcome << ' ' << count;
    std::cout << '\n';
  }
}

}  // namespace

int main() {
  {
    reprise::SimEnv env;
    run("retries alone", {.env = &env, .seed = 1}, env);
  }
  {
    reprise::SimEnv env;
    reprise::RetryBudget budget{{.tokens_max = 100}};
    run("with a budget", {.budget = &budget, .env = &env, .seed = 1}, env);
  }
  {
    reprise::SimEnv env;
    reprise::CircuitBreaker breaker{{.consecutive_failures = 5, .open_for = std::chrono::seconds{10}}, &env};
    run("with a breaker", {.breaker = &breaker, .env = &env, .seed = 1}, env);
    std::cout << "  at the end: " << name_of(breaker.state()) << '\n';
  }
}
