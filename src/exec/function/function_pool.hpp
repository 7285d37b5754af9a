// Runs C++ handlers on threads: the Executor of an engine that works in its own process.
//
//   FunctionPool pool{{.threads = 8, .wall_clock = wall, .load = from_store}, sink};
//   const std::uint32_t charge = pool.add_handler("charge", charge_card);
//   pool.start(jobs);                                         // each is answered through the sink, exactly once
//   FunctionPool::Stopped rest = pool.stop(10s);
//
// A call whose time is over, or that is cancelled, is asked to stop. If it returns within the grace, its success counts and its failure
// is reported as what it was stopped for. If it does not return, it is answered for all the same, its thread is given up, and another one
// takes its place; what it returns later is dropped.
//
// Thread safety: start(), cancel() and capacity() from one thread at a time, the loop's; add_handler() from any thread; stop() from any
// thread but a handler's. The sink is called from any thread, also from start() and cancel() and, for progress, while a lock is held:
// it must not call the pool and must not throw. Sink, Env and loader are not touched any more once the pool is destroyed.
// Bounds: `threads` working and `max_abandoned` lost threads. The queue is as long as what start() was given: ask capacity() first.
// Not supported: handlers that end their thread (pthread_exit), and stop callbacks that block: they delay all timeouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <reprise/engine.hpp>
#include <reprise/env.hpp>

#include "exec/executor.hpp"
#include "exec/payloads.hpp"

namespace reprise::exec {

using WallClock = std::function<Time()>;

struct FunctionPoolSettings {
  unsigned threads = 4;                             // at least 1; started when there is work for them
  Duration grace = std::chrono::milliseconds{500};  // for a call that was asked to stop
  unsigned max_abandoned = 64;  // beyond it a lost thread is not replaced until one of the lost returns
  Duration spin =
      std::chrono::microseconds{20};  // how long one idle thread looks for work before it sleeps; 0 = not at all
  Env* env = nullptr;                 // nullptr = system_env()
  WallClock wall_clock = {};          // for Job::deadline; without it deadlines are ignored
  PayloadLoader load = {};            // for payloads of which a job has the hash only
};

class FunctionPool final : public Executor {
 public:
  FunctionPool(FunctionPoolSettings settings, Sink& sink);
  ~FunctionPool() override;  // stop() without patience; what was not answered then never will be

  // Its number. A name that is known keeps its number and gets the new handler, from the next start() on.
  std::uint32_t add_handler(std::string name, Handler handler);

  void start(std::vector<Job>& jobs) override;
  void cancel(const AttemptId& id) override;

  void take_back(const AttemptId& id) override;
  void take_back_all() override;
  void settled(const AttemptId& id) override;
  std::size_t ahead(std::uint32_t handler, std::uint32_t places) override;

  // So many that the last of them begins within about two milliseconds, as far as the last calls of this handler tell.
  std::size_t capacity(std::uint32_t handler) override;

  struct Stopped {
    bool by_themselves = true;         // nothing had to be asked to stop
    std::vector<AttemptId> not_begun;  // their handlers were never called
    std::vector<AttemptId>
        interrupted;  // asked to stop, and then failed or did not return: how they would have ended is not known
  };

  // Begins nothing any more. Running calls get `patience` to end, then they are asked to stop and get the grace. What is in the answer
  // is not told to the sink; everything else has been when this returns. Jobs that are given to start() afterwards are answered as interrupted.
  Stopped stop(Duration patience);

 private:
  class State;
  std::shared_ptr<State> state_;  // lost threads hold it too
};

}  // namespace reprise::exec
