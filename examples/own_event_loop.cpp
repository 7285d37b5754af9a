// RetryLoop in a program with its own event loop: reprise decides, Boost.Asio waits, and no thread sleeps.
#include <reprise/retry.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <iostream>
#include <string>

namespace {

using Clock = boost::asio::steady_timer::clock_type;

// One piece of work on the event loop. It must outlive its timer's last handler: here it lives longer than run().
class Download {
 public:
  Download(boost::asio::io_context& context, std::string name, int failures, const reprise::Policy& policy,
           std::uint64_t seed)
      : timer_{context}, name_{std::move(name)}, failures_left_{failures}, loop_{policy, Clock::now(), seed} {}

  void start() {
    say("attempt " + std::to_string(loop_.attempt()));
    // A real program starts an asynchronous request here, with loop_.deadline(Clock::now()) as its limit.
    if (failures_left_-- > 0) {
      on_failure({.type = "TimeoutError", .message = "no answer"});
    } else {
      say("done");
    }
  }

  const std::string& log() const { return log_; }

 private:
  void on_failure(const reprise::Failure& failure) {
    const reprise::Decision next = loop_.failed(failure, Clock::now());
    if (!next.retry) {
      say("gave up (" + std::string{reprise::name_of(next.reason)} + ")");
      return;
    }
    timer_.expires_after(next.delay);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) {
        loop_.canceled();
      } else if (loop_.may_start(Clock::now())) {
        start();
      }
    });
  }

  void say(const std::string& what) { log_ += name_ + ": " + what + '\n'; }

  boost::asio::steady_timer timer_;
  std::string name_;
  std::string log_;
  int failures_left_;
  reprise::RetryLoop loop_;
};

}  // namespace

int main() {
  // The policy must outlive the loops.
  const reprise::Policy policy{
      .backoff = reprise::Backoff::constant, .initial = std::chrono::milliseconds{1}, .jitter = reprise::Jitter::none};

  boost::asio::io_context context;
  Download report{context, "report", 2, policy, 1};
  Download archive{context, "archive", 9, policy, 2};
  report.start();
  archive.start();
  context.run();  // both wait at the same time, on one thread
  std::cout << report.log() << archive.log();
}
