// What a user of the library writes first: a call that fails twice and is retried. The clock is simulated, so nothing waits.
#include <cstdlib>
#include <expected>
#include <iostream>
#include <string>

#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

int main() {
  reprise::SimEnv env;
  const auto fetch = [](reprise::Attempt& attempt) -> std::expected<std::string, reprise::Failure> {
    if (attempt.number() < 3) return std::unexpected{reprise::Failure{.type = "TimeoutError", .message = "no answer"}};
    return "answered at attempt " + std::to_string(attempt.number());
  };
  const auto body = reprise::retry(reprise::policy::aggressive, fetch, {.env = &env});
  if (!body) {
    std::cerr << body.error().describe() << '\n';
    return EXIT_FAILURE;
  }
  std::cout << *body << '\n';
  return *body == "answered at attempt 3" && env.waits().size() == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
