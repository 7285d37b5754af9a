// The computer the engine runs on: it drives the production loop as runtime/driver.cpp does, in virtual time, and it can lose its power.
//
// A write begins, happens, and is answered at three different moments; inputs and crashes come in between. After a crash only what
// the store holds is left: a new Loop recovers from it. What the machine of a real engine does besides (handlers and flows are given to
// it again after each start) a Program says. Of several owners each has a machine of its own.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

#include "runtime/loop.hpp"
#include "runtime/plan_book.hpp"
#include "sim/faulty_executor.hpp"
#include "sim/faulty_store.hpp"
#include "sim/model.hpp"
#include "sim/world.hpp"

namespace reprise::sim {

// What the program that uses the engine brings along, each time it starts.
struct Program {
  struct NamedHandler {
    std::string name;
    HandlerOptions options;
  };
  std::vector<NamedHandler> handlers;
  std::vector<Flow> flows;
  std::vector<core::Plan> documents;  // what a reader of documents would make of them
};

class Machine final : private runtime::Observer {
 public:
  Machine(World& world, Model& model, FaultyStore& store, FaultyExecutor& executor, const Program& program,
          const runtime::LoopSettings& settings);

  std::uint32_t lazy = 0;  // chance in a thousand that an input does not wake the loop while a commit is on its way
  bool watched = false;    // an observer looks on
  Time handlers_come = 0;  // after a start they are given to the engine within this time

  std::function<void()> gone = {};  // it has stopped, or given its shard up

  void boot();   // tries until the store can be read
  void crash();  // at once, whatever is going on
  void stop();   // as Engine::stop(0) does: attempts are interrupted and everything is recorded; then the power is off
  void set_clock_back(Time by);  // from the next start on
  // It sleeps, and somebody else gets its shard. The function wakes it: what it wanted to write must be refused, and that is its end.
  std::function<void()> lose_shard();

  bool is_up() const noexcept { return loop_ != nullptr && !stopping_; }
  bool is_off() const noexcept { return loop_ == nullptr; }
  bool is_quiet() const;              // everything is recorded, and nothing is running
  void push(runtime::Input&& input);  // lost when the machine is off

  Time wall() const noexcept { return world_.now() + skew_; }
  runtime::Loop* loop() noexcept { return loop_.get(); }
  runtime::PlanBook* book() noexcept { return book_.get(); }
  const core::Plan* document(std::string_view name) const;  // nullptr = there is none of this name
  std::uint64_t crashes() const noexcept { return crashes_; }

 private:
  bool is_watching() noexcept override { return watched; }
  bool knows(const RunId& run) override;
  void published(const RunId& run, const core::Plan& plan, std::uint64_t chunk_first, std::uint64_t new_first,
                 std::string_view chunk) override;

  void power_off();
  void written(store::Result<void> result);
  void give_handlers();
  void open_queue(std::size_t handler);
  void step();
  void write();
  bool read();
  void begin_slow_read(runtime::Reading kind, const runtime::ReadRequest& request);
  // It happens after this time, and is answered after another.
  void begin_slow_write(const runtime::Loop::Writing& writing, Time happens, Time answered);
  void wake_at(Time when);
  void plan_next_step(bool more);
  void look();

  World& world_;
  Model& model_;
  FaultyStore& store_;
  FaultyExecutor& executor_;
  const Program& program_;
  runtime::LoopSettings settings_;

  std::unique_ptr<runtime::Loop> loop_;
  std::unique_ptr<runtime::PlanBook> book_;
  std::vector<runtime::Input> inbox_;
  std::optional<runtime::Loop::Writing> writing_;  // on its way
  std::optional<store::Result<void>> written_;
  std::set<std::uint64_t> published_;  // runs that the observer has heard of
  bool stopping_ = false;
  bool gives_up_ = false;   // the store is another's, or is behind
  std::uint64_t step_ = 0;  // a wake-up for an older one is out of date
  std::optional<Time> wake_;
  Time skew_ = 0;
  Time next_skew_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint32_t restless_ = 0;  // steps in a row that were asked for and did nothing
  std::uint32_t at_once_ = 0;   // steps in a row without any time between them
  Time last_step_ = 0;
};

core::PatternCompiler pattern_compiler();

}  // namespace reprise::sim
