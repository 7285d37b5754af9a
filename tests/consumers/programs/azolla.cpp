// A policy from another system's text, as a user of Reprise::text reads it: YAML in, a policy out, and a mistake with its place.
#include <cstdlib>
#include <iostream>

#include <reprise/dialect.hpp>

int main() {
  const auto read = reprise::read_policy(
      R"({"stop": {"max_attempts": 7}, "wait": {"strategy": "fixed", "delay": 2.5}})", reprise::Dialect::azolla);
  if (!read) {
    std::cerr << reprise::render(read.error());
    return EXIT_FAILURE;
  }
  std::cout << reprise::explain(read->policy);
  const bool as_written = read->policy.max_attempts == 7 && read->policy.initial == std::chrono::milliseconds{2500};

  const auto mistaken = reprise::read_policy("stop: {max_attempts: 0}\n", reprise::Dialect::azolla, "policy.yaml");
  return as_written && !mistaken && mistaken.error().front().line == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
