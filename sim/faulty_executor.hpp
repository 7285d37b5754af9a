// An executor whose handlers are a script: they succeed, fail, hang, answer late, answer twice, and do not care when they are cancelled.
//
// It keeps its own part of the contract of exec/executor.hpp: an attempt is cut at its time, and every job is answered. What goes
// beyond it (a second answer, an answer after the time was over) is what a remote worker or a slow thread does to an engine.
// It tells the model of every attempt it is asked to begin, and of every answer it gives. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.hpp"
#include "exec/place_keeper.hpp"
#include "runtime/inputs.hpp"
#include "sim/model.hpp"
#include "sim/world.hpp"

namespace reprise::sim {

// What one attempt is going to do.
struct Act {
  Time takes = 0;
  std::optional<Failure> failure = {};
  std::string output = {};
  bool hangs = false;              // does not answer by itself; only its time or a cancel ends it
  std::optional<Time> again = {};  // answers a second time, this long after the first
  std::optional<Time> obeys =
      {};  // a cancelled attempt fails as canceled after this time; otherwise it ends as if nothing were
  std::uint32_t progress = 0;             // reports on the way
  bool precondition = false;              // the failure came before the work
  std::optional<std::size_t> child = {};  // hands it over to a run of this document instead of answering ...
  bool returns = false;                   // ... and wants to see what that brings
};
using Script = std::function<Act(const exec::Job& job)>;

// How many runs are around the one whose input this is.
std::size_t depth_of(const event::Payload& input);

// What is found out before a step of a document begins.
struct Finding {
  Time takes = 0;
  bool skip = false;
  std::optional<Failure> failure = {};
  std::vector<std::string> elements = {};  // of a list
  bool obeys = true;                       // withdrawn, it is not answered any more
};
using PrepareScript = std::function<Finding(const exec::Preparation& preparation)>;

class FaultyExecutor final : public exec::Executor {
 public:
  FaultyExecutor(World& world, Model& model) : world_{world}, model_{model} {}

  Script script;
  PrepareScript prepare_script;
  std::function<Time()> wall_clock;              // the machine's
  std::function<void(runtime::Input&&)> answer;  // goes to the machine's inbox
  std::function<runtime::NewRun(std::size_t document, std::string input)> new_child;
  std::size_t threads = 4;
  std::size_t waits_for_a_place = 0;  // jobs that it takes ahead for each place
  std::vector<std::uint32_t> limits;  // of each handler; 0 = none

  void start(std::vector<exec::Job>& jobs) override;
  void cancel(const event::AttemptId& id) override;
  std::size_t capacity(std::uint32_t handler) override;
  std::size_t ahead(std::uint32_t, std::uint32_t places) override { return waits_for_a_place * places; }
  void take_back(const event::AttemptId& id) override;
  void take_back_all() override;
  void settled(const event::AttemptId& id) override { begin_waiting(places_.leave(id)); }
  void prepare(exec::Preparation&& preparation) override;

  void check_limits() const;  // when all effects of a commit are out
  bool is_idle() const noexcept { return jobs_.empty() && questions_.empty() && places_.waiting() == 0; }
  void power_off();                      // whatever runs is gone, and will never be heard of
  std::vector<event::AttemptId> stop();  // whatever runs is interrupted, and named

 private:
  struct Running {
    exec::Job job;
    Act act;
    Time limit_at = INT64_MAX;
    bool cancelled = false;
    bool answered = false;
  };
  using Jobs = std::map<std::uint64_t, Running>;  // by a number of their own: attempts come back after they were over

  void begin(exec::Job&& job);
  void give_back(const event::AttemptId& id);
  void begin_waiting(std::vector<exec::Job> jobs);
  static bool has_place(const exec::Job& job);  // it counts against the handler's concurrency
  void leave_place(const exec::Job& job);
  void finish(std::uint64_t number);
  void finish_at(std::uint64_t number, Time when);
  void cut(std::uint64_t number);
  void say(const event::AttemptId& id, const Act& act);
  void hand_over(const Running& running);
  void say_failed(const event::AttemptId& id, Failure failure, bool precondition);
  void say_prepared(const event::AttemptId& id, const Finding& finding);

  World& world_;
  Model& model_;
  struct Question {
    event::AttemptId id;
    Finding finding;
  };
  Jobs jobs_;
  std::map<std::uint64_t, Question> questions_;
  std::uint64_t next_ = 1;
  std::vector<std::uint32_t> running_;  // attempts of each handler that nobody has cancelled
  exec::PlaceKeeper places_;            // the product's own; check_limits() counts for itself
  bool begins_no_more_ = false;         // what waits for a place
};

}  // namespace reprise::sim
