// Retry a call that throws: the shortest way in.
#include <reprise/retry.hpp>

#include <iostream>
#include <stdexcept>
#include <system_error>

namespace {

// Stands for your client: the first two calls find the service restarting.
std::string fetch_greeting(int& calls) {
  if (++calls < 3) throw std::system_error{std::make_error_code(std::errc::connection_refused)};
  return "hello";
}

}  // namespace

int main() {
  // Five attempts at most. Real programs take policy::standard as it is; an example should not keep you waiting.
  reprise::Policy policy = reprise::policy::aggressive;
  policy.initial = std::chrono::microseconds{10};

  int calls = 0;
  const auto greeting = reprise::retry(policy, [&](reprise::Attempt& attempt) {
    std::cout << "attempt " << attempt.number();
    if (attempt.is_retry()) std::cout << ", after " << attempt.last_failure()->type;
    std::cout << '\n';
    return fetch_greeting(calls);
  });
  std::cout << *greeting << '\n';

  // What cannot get better is not tried again.
  const auto refused = reprise::retry(policy, [] { throw std::invalid_argument{"no such customer"}; });
  std::cout << name_of(refused.error().reason) << " after " << refused.error().attempts
            << " attempt: " << refused.error().last.type << ": " << refused.error().last.message << '\n';

  // For code that prefers exceptions.
  try {
    reprise::value_or_throw(refused);
  } catch (const reprise::RetryFailed& failed) {
    std::cout << "thrown: " << failed.error().last.message << '\n';
  }
}
