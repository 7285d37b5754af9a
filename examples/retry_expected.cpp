// Errors by value: std::expected in, std::expected out, an error type of your own, and a look at the result.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <iostream>

namespace shop {

enum class Error { database_busy, out_of_stock };

// How reprise learns what your errors mean. It is found by its argument's namespace.
reprise::Failure to_failure(const Error& error) {
  if (error == Error::out_of_stock) return {.type = "OutOfStock", .message = "nothing left", .permanent = true};
  return {.type = "DatabaseBusy", .kind = reprise::FailureKind::throttled, .retry_after = std::chrono::seconds{2}};
}

std::expected<int, Error> reserve(int item, int& calls) {
  ++calls;
  if (item == 13) return std::unexpected{Error::out_of_stock};
  if (calls < 3) return std::unexpected{Error::database_busy};
  return 1000 + item;
}

}  // namespace shop

int main() {
  reprise::SimEnv env;  // a simulated clock, so that this example takes no time; leave it out in your program

  int calls = 0;
  const std::expected<int, reprise::RetryError> reservation =
      reprise::retry(reprise::policy::standard, [&] { return shop::reserve(7, calls); }, {.env = &env});
  std::cout << "reservation " << *reservation << " after " << calls << " calls\n";
  for (const reprise::Duration wait : env.waits()) {
    std::cout << "waited " << wait / std::chrono::seconds{1} << "s, as the database asked\n";
  }

  const auto sold_out =
      reprise::retry(reprise::policy::standard, [&] { return shop::reserve(13, calls); }, {.env = &env});
  std::cout << sold_out.error().describe() << '\n';

  // A result may be a failure too: here a job that is not done yet.
  int polls = 0;
  const auto poll = [&] { return ++polls < 3 ? "running" : "done"; };
  const auto is_pending = [](const std::string_view state) { return state == "running"; };
  const auto state = reprise::retry(reprise::policy::standard, poll, {.env = &env}, is_pending);
  std::cout << *state << " after " << polls << " polls\n";
}
