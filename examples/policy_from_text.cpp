// A policy from a configuration file, written for another system: read it, see what it means, use it.
#include <iostream>
#include <string>

#include <reprise/dialect.hpp>
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

int main() {
  const std::string text = R"({
    "stop":  {"max_attempts": 4},
    "wait":  {"strategy": "exponential", "initial_delay": 2, "multiplier": 3},
    "retry": {"include_errors": ["TimeoutError"]}
  })";
  const auto read = reprise::read_policy(text, reprise::Dialect::azolla, "azolla.json");
  if (!read) {
    std::cerr << reprise::render(read.error());
    return 3;
  }
  std::cout << reprise::explain(read->policy);

  reprise::SimEnv env;  // a simulated clock: waits take no time
  reprise::Flaky<std::string> service{"hello"};
  service.fails(2, {.type = "TimeoutError", .message = "no answer"});
  const auto answer = reprise::retry(read->policy, service, {.env = &env});
  std::cout << "the service said " << answer.value() << " at call " << service.calls() << "\n";

  const auto mistaken = reprise::read_policy("stop: {max_atempts: 4}\n", reprise::Dialect::azolla, "azolla.yaml");
  std::cout << reprise::render(mistaken.error());
  return 0;
}
