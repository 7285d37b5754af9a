#include "exec/http/http_client.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/block_signals.hpp"
#include "exec/http/curl_library.hpp"
#include "exec/http/http_target.hpp"
#include "exec/http/http_transfer.hpp"
#include "exec/time_limit.hpp"

namespace reprise::exec {
namespace {

using TimePoint = Env::TimePoint;

constexpr auto longest_poll = std::chrono::minutes{1};  // libcurl wakes earlier for its own timers, and whenever we ask
constexpr long idle_connections_max = 256;              // kept open for the next request

struct MultiDeleter {
  void operator()(CURLM* multi) const noexcept { curl().multi_cleanup(multi); }
};

CURLM* new_multi() {
  CURLM* multi = curl().multi_init();
  if (multi == nullptr) throw std::bad_alloc{};
  curl().multi_setopt(multi, CURLMOPT_MAXCONNECTS, idle_connections_max);
  return multi;
}

}  // namespace

class HttpClient::State {
 public:
  State() : thread_{[this] { run(); }} {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    stopping_.store(true);
    curl().multi_wakeup(multi_.get());
    thread_.join();
    for (const auto& [ticket, transfer] : transfers_) curl().multi_remove_handle(multi_.get(), transfer->handle());
  }

  Ticket start(HttpRequest request, Done done) {
    if (!done) done = [](HttpEnd&&) {};  // nobody wants to know
    const Ticket ticket = last_ticket_.fetch_add(1, std::memory_order_relaxed) + 1;
    give({.ticket = ticket, .request = std::move(request), .done = std::move(done)});
    return ticket;
  }

  void cancel(Ticket ticket) { give({.ticket = ticket}); }

 private:
  struct Order {
    Ticket ticket = 0;
    HttpRequest request = {};
    Done done = {};  // empty: cancel it
  };

  void give(Order&& order) {
    {
      const std::scoped_lock lock{mutex_};
      orders_.push_back(std::move(order));
    }
    curl().multi_wakeup(multi_.get());
  }

  void run() {
    base::block_signals();  // OpenSSL writes to a closed connection without MSG_NOSIGNAL
    while (!stopping_.load()) {
      follow_orders();
      int running = 0;
      const TimePoint before = system_env().now();
      CURLMcode code = curl().multi_perform(multi_.get(), &running);
      conclude_ended();
      end_overdue(before);
      if (code == CURLM_OK) code = curl().multi_poll(multi_.get(), nullptr, 0, poll_ms(), nullptr);
      if (code != CURLM_OK) give_up_all();  // out of memory or descriptors: nobody would ever be told otherwise
    }
  }

  // Callbacks run without the lock, since they may give orders themselves.
  void follow_orders() {
    std::vector<Order> orders;
    {
      const std::scoped_lock lock{mutex_};
      orders.swap(orders_);
    }
    for (Order& order : orders) {
      if (order.done) {
        begin(std::move(order));
      } else {
        abandon(order.ticket);
      }
    }
  }

  void begin(Order&& order) {
    auto target = check_request(order.request);
    if (!target.has_value()) {
      tell(order.done, {.problem = HttpProblem::bad_request, .message = std::move(target.error())});
      return;
    }
    auto transfer = std::make_unique<HttpTransfer>(order.ticket, std::move(order.request), std::move(*target),
                                                   std::move(order.done));
    HttpTransfer& begun = *transfer;
    transfers_.emplace(order.ticket, std::move(transfer));
    CURLcode code = begun.prepared();
    if (code == CURLE_OK && curl().multi_add_handle(multi_.get(), begun.handle()) != CURLM_OK) code = CURLE_FAILED_INIT;
    if (code != CURLE_OK) return end(begun, begun.conclude(code));
    const TimePoint now = system_env().now();
    const Duration timeout = begun.timeout();
    if (timeout > Duration{0} && timeout < TimePoint::max() - now) begun.ends = now + timeout;
    begun.last_byte = now;
    arm(begun);
  }

  static TimePoint end_of_silence(const HttpTransfer& transfer) {
    const Duration longest = transfer.stall_timeout();
    const bool is_watched = longest > Duration{0} && longest < TimePoint::max() - transfer.last_byte;
    return is_watched ? transfer.last_byte + longest : TimePoint::max();
  }

  // For what comes first: the end of its time, or of the silence it may keep.
  void arm(HttpTransfer& transfer) {
    transfer.due = std::min(transfer.ends, end_of_silence(transfer));
    if (transfer.due < TimePoint::max()) timers_.emplace(transfer.due, transfer.ticket());
  }

  int poll_ms() const {
    Duration wait = longest_poll;
    if (!timers_.empty()) wait = std::clamp<Duration>(timers_.begin()->first - system_env().now(), Duration{0}, wait);
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
  }

  // Those whose time was over before the last look at what has come, and nothing had (exec/time_limit.hpp).
  void end_overdue(TimePoint looked) {
    while (!timers_.empty() && timers_.begin()->first <= looked) {
      HttpTransfer& transfer = *transfers_.at(timers_.begin()->second);
      if (transfer.ends <= looked) transfer.ends = fair_due(transfer.ends, transfer.timeout(), looked);
      const TimePoint silent_until = end_of_silence(transfer);
      const TimePoint stalls =
          silent_until <= looked ? fair_due(silent_until, transfer.stall_timeout(), looked) : silent_until;
      if (transfer.ends <= looked) {
        end(transfer, transfer.conclude(CURLE_OPERATION_TIMEDOUT));
      } else if (stalls <= looked) {
        end(transfer, transfer.conclude_stalled());
      } else {
        if (stalls != silent_until) transfer.last_byte = stalls - transfer.stall_timeout();
        timers_.erase(timers_.begin());
        arm(transfer);
      }
    }
  }

  void abandon(Ticket ticket) {
    const auto found = transfers_.find(ticket);
    if (found == transfers_.end()) return;  // it has ended, and Done has been called
    end(*found->second, found->second->conclude_canceled());
  }

  void conclude_ended() {
    int waiting = 0;
    while (const CURLMsg* message = curl().multi_info_read(multi_.get(), &waiting)) {
      if (message->msg != CURLMSG_DONE) continue;
      HttpTransfer& transfer = HttpTransfer::of(message->easy_handle);
      end(transfer, transfer.conclude(message->data.result));  // the message is gone after this
    }
  }

  void give_up_all() {
    while (!transfers_.empty()) {
      HttpTransfer& transfer = *transfers_.begin()->second;
      end(transfer, transfer.conclude(CURLE_UNRECOVERABLE_POLL));
    }
  }

  void end(HttpTransfer& transfer, HttpEnd&& how) {
    curl().multi_remove_handle(multi_.get(), transfer.handle());
    timers_.erase({transfer.due, transfer.ticket()});
    const auto node = transfers_.extract(transfer.ticket());
    tell(node.mapped()->done(), std::move(how));
  }

  void tell(const Done& done, HttpEnd&& how) {
    if (!stopping_.load()) done(std::move(how));
  }

  const std::unique_ptr<CURLM, MultiDeleter> multi_{new_multi()};
  std::atomic<Ticket> last_ticket_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Order> orders_;  // guarded by mutex_; what was not yet looked at
  std::unordered_map<Ticket, std::unique_ptr<HttpTransfer>> transfers_;  // the thread's own until it is joined
  std::set<std::pair<TimePoint, Ticket>> timers_;                        // the thread's own; of those that have a limit
  std::thread thread_;
};

HttpClient::HttpClient() : state_{curl_problem().empty() ? std::make_unique<State>() : nullptr} {}
HttpClient::~HttpClient() = default;

HttpClient::Ticket HttpClient::start(HttpRequest request, Done done) {
  if (state_ != nullptr) return state_->start(std::move(request), std::move(done));
  if (done) done({.problem = HttpProblem::bad_request, .message = curl_problem() + ": " + curl_remedy});
  return 0;
}

void HttpClient::cancel(Ticket ticket) {
  if (state_ != nullptr) state_->cancel(ticket);
}

}  // namespace reprise::exec
