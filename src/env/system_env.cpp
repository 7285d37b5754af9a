// The real world: this room alone reads clocks, sleeps and asks for randomness.
#include <reprise/env.hpp>

#include <reprise/random.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t draw_from_device() {
  std::uint64_t drawn = 0;
  if (::getentropy(&drawn, sizeof drawn) != 0) throw std::system_error{errno, std::generic_category(), "no randomness"};
  return drawn;
}

// A child process would go on drawing what its parent draws; this tells its generators to start anew.
std::atomic<std::uint32_t> forks_seen{0};

// Asking the device costs a microsecond, so each thread asks once. Two generators make 128 bits of state: enough for a UUID from
// two draws.
struct Generator {
  std::uint32_t forks = forks_seen.load(std::memory_order_relaxed);
  Random left{draw_from_device()};
  Random right{draw_from_device()};
};

class SystemEnv final : public Env {
 public:
  SystemEnv() noexcept {
    pthread_atfork(nullptr, nullptr, [] { forks_seen.fetch_add(1, std::memory_order_relaxed); });
  }

  TimePoint now() override { return Clock::now(); }

  bool wait_until(TimePoint due, const std::stop_token& stop) override {
    if (!stop.stop_possible()) {
      std::this_thread::sleep_until(due);
      return true;
    }
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock{mutex};
    while (!stop.stop_requested() && Clock::now() < due) {
      wake.wait_until(lock, stop, due, [] { return false; });
    }
    return !stop.stop_requested();
  }

  std::uint64_t random_seed() override {
    thread_local Generator generator;
    const std::uint32_t forks = forks_seen.load(std::memory_order_relaxed);
    if (generator.forks != forks) generator = Generator{};
    return generator.left.next() ^ std::rotl(generator.right.next(), 32);
  }

  void warn(std::string_view message) noexcept override {
    std::fprintf(stderr, "reprise: warning: %.*s\n", static_cast<int>(message.size()), message.data());
  }
};

}  // namespace

Env& system_env() noexcept {
  // Never destroyed: threads may still be waiting while the program ends. And not on the heap: a first call allocates nothing.
  alignas(SystemEnv) static std::byte place[sizeof(SystemEnv)];
  static SystemEnv* const env = new (place) SystemEnv;
  return *env;
}

}  // namespace reprise
