// Those who use the engine: they submit, ask, wait and interfere at random times, and remember exactly what they were told.
//
// What they were told is compared with the model at once (an answer may only speak of what is durable), and with everything they were
// told before: a result never changes. A request whose answer never came, or was trouble with the store, may have happened or not.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

#include "runtime/inputs.hpp"
#include "sim/machine.hpp"
#include "sim/model.hpp"
#include "sim/world.hpp"

namespace reprise::sim {

// A run that somebody was told of.
struct Known {
  RunId id = {};
  std::uint64_t number = 0;
  bool removal_asked = false;
  struct Tally {
    std::uint32_t ok = 0;
    std::uint32_t unknown = 0;  // asked, and not answered, or with trouble
  };
  std::array<Tally, 7> operations{};         // by runtime::Operation
  std::map<Time, RunOutcome> outcomes = {};  // by the time of the end
};

struct PartOfRun {  // without a step: all of it
  std::string step = {};
  std::optional<std::uint32_t> item = {};
};

class Callers {
 public:
  Callers(World& world, Machine& machine, Model& model) : world_{world}, machine_{machine}, model_{model} {}

  std::uint64_t max_open = UINT64_MAX;
  bool retention = false;

  using SubmitDone = std::function<void(const std::expected<void, Error>&, const std::vector<RunId>&)>;
  void submit(std::vector<Task> tasks, SubmitDone then = {});
  using Answered = std::function<void(const std::expected<void, Error>&)>;
  void operate(runtime::Operation operation, const RunId& run, std::string text = {}, std::string payload = {},
               Answered then = {}, PartOfRun part = {});
  void ask(const RunId& run, runtime::Question question);
  void find_all();
  void find_some();
  void ask_for_nonsense(const Program& program);

  const std::map<std::uint64_t, Known>& known() const noexcept { return known_; }
  const Known* any();  // of those that somebody was told of; nullptr = there is none yet
  std::uint64_t asked() const noexcept { return asked_; }
  std::uint64_t answered() const noexcept { return answered_; }
  // At the end of a history, when everything is recorded.
  void check_tallies() const;

 private:
  std::optional<runtime::NewRun> new_run(Task& task);
  void told_submitted(const std::vector<runtime::NewRun>& runs, const std::vector<Task>& tasks, Time sent);
  void told_operated(runtime::Operation operation, std::uint64_t run, bool is_part,
                     const std::expected<void, Error>& answer);
  void told(runtime::Question question, std::uint64_t run, const runtime::AskReply& reply,
            const std::expected<void, Error>& answer);
  void told_found(const runtime::FindReply& reply, const std::vector<std::uint64_t>& expected);
  void check_exists(std::uint64_t run, const Error& error) const;

  World& world_;
  Machine& machine_;
  Model& model_;
  std::map<std::uint64_t, Known> known_;
  std::vector<std::uint64_t> order_;
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
};

}  // namespace reprise::sim
