// The shortest useful program: a call that returns std::expected, retried, and what is left when it fails for good.
#include <expected>
#include <iostream>
#include <string>

#include <reprise/retry.hpp>

namespace {

// Stands for your HTTP client: this page does not exist, and asking again will not make it.
std::expected<std::string, reprise::Failure> fetch(const std::string& url) {
  return std::unexpected(reprise::Failure{.message = "no such page: " + url, .http_status = 404});
}

}  // namespace

int main() {
  const std::string url = "http://localhost/missing";
  const std::expected<std::string, reprise::RetryError> body =
      reprise::retry(reprise::policy::aggressive, [&] { return fetch(url); });
  if (!body) std::cerr << body.error().describe() << '\n';

  const reprise::RetryError& error = body.error();
  std::cout << name_of(error.reason) << " after " << error.attempts << " attempt: " << error.last.message << '\n';
}
