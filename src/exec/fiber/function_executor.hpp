// Runs durable functions: each run on one thread, as fibers, in memory as long as there is room; else it is unwound and, when it is told something
// again, replayed from the log.
//
// decide() waits a moment for their answers, so that these are recorded with what they were told; those that need longer come through
// the sink. Without threads of its own (0) they run inside of decide(), and all answers are there when it returns.
// Thread safety: as Executor says; add() from any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include <reprise/function.hpp>

#include "exec/executor.hpp"
#include "exec/fiber/closures.hpp"
#include "exec/fiber/function_run.hpp"
#include "exec/payloads.hpp"

namespace reprise::exec {

class FunctionExecutor final : public Executor {
 public:
  FunctionExecutor(Sink& sink, PayloadLoader load, FunctionSettings settings);
  ~FunctionExecutor() override;

  std::uint32_t add(FunctionCode code);  // its number
  const std::shared_ptr<Closures>& closures() const noexcept { return closures_; }

  void start(std::vector<Job>& jobs) override { jobs.clear(); }  // functions get none
  void cancel(const AttemptId&) override {}
  std::size_t capacity(std::uint32_t) override { return capacity_; }
  bool decides(std::uint32_t) override { return true; }
  void decide(std::vector<News>& news, std::vector<Decided>& decided) override;
  void forget(const AttemptId& id) override;
  void shut_down() override;  // unwinds all of them

 private:
  static constexpr std::size_t capacity_ = 4096;  // functions that begin in one turn

  // The answers to one decide(): complete, or given up.
  struct Round {
    std::mutex mutex;
    std::condition_variable answered;
    std::vector<Decided> decided;
    std::size_t open = 0;
    bool is_closed = false;
  };

  // One thread and the runs that stay on it.
  class Worker {
   public:
    Worker(FunctionExecutor& executor, bool has_thread);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker();
    void do_later(std::function<void()> task);  // or at once, without a thread
    void take(News&& news, const std::shared_ptr<Round>& round);
    void go_on(std::uint64_t run, std::uint32_t token);
    void forget(std::uint64_t run);
    void stop();

   private:
    struct Resident {
      std::unique_ptr<FunctionRun> run;
      std::list<std::uint64_t>::iterator used;
      std::uint32_t token = 0;
    };

    void work();
    Decided decide(News&& news);
    void settle(std::uint64_t run, Decided& decided);
    void make_room();

    FunctionExecutor& executor_;
    const bool has_thread_;
    StackPool stacks_;
    std::unordered_map<std::uint64_t, Resident> residents_;
    std::list<std::uint64_t> used_;  // the least recently first
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::function<void()>> tasks_;
    bool stops_ = false;
    std::thread thread_;
  };

  Worker& worker_of(std::uint64_t run) { return *workers_[run % workers_.size()]; }
  std::shared_ptr<const FunctionCode> code(std::uint32_t handler);

  Sink& sink_;
  Payloads payloads_;
  const std::size_t memory_of_a_worker_;
  std::shared_ptr<Closures> closures_ = std::make_shared<Closures>();  // one that does not return outlives all of this
  std::mutex mutex_;
  std::vector<std::shared_ptr<const FunctionCode>> codes_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace reprise::exec
