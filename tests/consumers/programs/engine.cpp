// What a user of Reprise::engine writes first: a task that fails once and is retried, and a flow of two steps. Nothing is left on disk.
#include <cstdlib>
#include <expected>
#include <iostream>
#include <string>

#include <reprise/engine.hpp>

int main() {
  reprise::Engine engine{{.store = "memory:"}};
  const auto greet = [](reprise::Work& work) -> std::expected<std::string, reprise::Failure> {
    if (!work.is_retry()) return std::unexpected{reprise::Failure{.type = "TimeoutError", .message = "no answer"}};
    return "hello " + std::string{work.input()};
  };
  const auto handled =
      engine.handle("greet", greet, {.retry = reprise::Policy{.initial = std::chrono::milliseconds{1}}});
  const auto known = engine.flow(
      {.name = "twice",
       .steps = {{.name = "first", .handler = "greet"}, {.name = "second", .handler = "greet", .needs = {"first"}}}});
  if (!handled || !known) return EXIT_FAILURE;

  const auto task = engine.submit({.handler = "greet", .input = "you", .key = "greeting"});
  const auto again = engine.submit({.handler = "greet", .input = "you", .key = "greeting"});
  const auto flow = engine.submit({.flow = "twice", .input = "all"});
  if (!task || !again || !flow || *task != *again) return EXIT_FAILURE;
  const auto one = engine.wait(*task);
  const auto two = engine.wait(*flow);
  if (!one || !two) return EXIT_FAILURE;
  std::cout << one->output << ", " << two->output << '\n';
  return one->output == "hello you" && one->attempts == 2 && two->output == "hello all" ? EXIT_SUCCESS : EXIT_FAILURE;
}
