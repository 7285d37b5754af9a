// How those who ask the loop get their answers: one waits for it, another is called.
//
// Thread safety: as inputs.hpp says of a Reply.
#pragma once

#include <condition_variable>
#include <expected>
#include <functional>
#include <mutex>
#include <semaphore>
#include <utility>

#include <reprise/env.hpp>
#include <reprise/error.hpp>

namespace reprise::runtime {

inline Error engine_has_stopped() { return {ErrorCode::stopped, "the engine has stopped"}; }

// A reply that a thread waits for.
template <class Base>
class Awaited final : public Base {
 public:
  Awaited() = default;
  explicit Awaited(bool has_limit) : has_limit_{has_limit} {}

  void done(std::expected<void, Error> answer) override {
    answer_ = std::move(answer);
    if (!has_limit_) return answered_.release();
    const std::lock_guard lock{mutex_};
    is_answered_ = true;
    in_time_.notify_all();
  }
  std::expected<void, Error> wait() {
    answered_.acquire();
    return std::move(answer_);
  }
  // Only if it was made with a limit. False: the time is over, and the answer goes nowhere.
  bool wait_until(Env::TimePoint until) {
    std::unique_lock lock{mutex_};
    return in_time_.wait_until(lock, until, [this] { return is_answered_; });
  }
  std::expected<void, Error> take() { return std::move(answer_); }

 private:
  // A semaphore spins a little before it sleeps, which most answers are quick enough for. With a limit of time those of libstdc++ 12 sleep and
  // look, up to 64 ms too long; so that is waited for in another way.
  const bool has_limit_ = false;
  std::binary_semaphore answered_{0};
  std::mutex mutex_;
  std::condition_variable in_time_;
  bool is_answered_ = false;
  std::expected<void, Error> answer_;
};

// A reply that calls somebody, once: when it is answered, or when it never will be, because the engine has stopped.
template <class Base>
class Called final : public Base {
 public:
  using Then = std::function<void(Called&, std::expected<void, Error>)>;
  explicit Called(Then then) : then_{std::move(then)} {}
  ~Called() override { Called::done(std::unexpected{engine_has_stopped()}); }

  void done(std::expected<void, Error> answer) override {
    if (const Then then = std::exchange(then_, nullptr)) then(*this, std::move(answer));
  }

 private:
  Then then_;
};

}  // namespace reprise::runtime
