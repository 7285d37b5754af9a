// A call that fails in three different ways and recovers, told as it happens: retry() with an observer.
#include <cstdio>
#include <expected>
#include <string>

#include <reprise/retry.hpp>

namespace {

// A service on a bad day.
std::expected<std::string, reprise::Failure> fetch_report(const reprise::Attempt& attempt) {
  using namespace std::chrono_literals;
  switch (attempt.number()) {
    case 1:
      return std::unexpected(reprise::Failure{.type = "ConnectionResetError", .message = "connection reset by peer"});
    case 2:
      return std::unexpected(
          reprise::Failure{.message = "service unavailable", .http_status = 503, .retry_after = 700ms});
    case 3:
      return std::unexpected(reprise::Failure{.type = "TimeoutError", .message = "no answer within 2s"});
    default:
      return "42 orders, all shipped";
  }
}

long milliseconds(reprise::Duration duration) {
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

void tell(const reprise::RetryEvent& event) {
  using What = reprise::RetryEvent::What;
  const auto attempt = static_cast<unsigned long>(event.attempt);
  switch (event.what) {
    case What::started:
      std::printf("  attempt %lu started\n", attempt);
      break;
    case What::failed:
      std::printf("  attempt %lu failed: %s\n", attempt, event.failure->message.c_str());
      break;
    case What::retrying:
      std::printf("  ↻ retrying in %ld ms%s\n", milliseconds(event.delay),
                  event.failure->retry_after ? " (the server asked for 700 ms)" : "");
      break;
    case What::completed:
      std::printf("✔ fetch_report completed after %lu attempts\n  ↻ recovered after %lu retries\n", attempt,
                  attempt - 1);
      break;
    case What::interrupted:
      std::printf("✖ fetch_report was interrupted\n");
      break;
  }
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::printf("fetch_report, policy aggressive: at most 5 attempts, waits up to 200ms 400ms 800ms 1.6s\n");
  const auto report = reprise::retry(reprise::policy::aggressive, fetch_report, {.observer = tell});
  if (!report) {
    std::printf("%s\n", report.error().describe().c_str());
    return 1;
  }
  std::printf("\nThe report: %s\n", report->c_str());
  return 0;
}
