// Who may begin where places are few: counts the attempts of each handler, step and run that has a limit, and keeps jobs that wait for a
// place (Job::limits).
//
// A job that does not wait takes its places whatever they are: the core has counted. Places of an attempt that succeeded are free at once.
// Those of any other are kept until the loop has recorded what follows from its end (Executor::settled()): the next of a list must not
// begin before it is known that a failure does not end the list.
// Thread safety: none. Bounds: what start() was given.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "exec/executor.hpp"

namespace reprise::exec {

class PlaceKeeper {
 public:
  // True: it begins now. False: it waits, and was taken.
  bool enter(Job& job);
  // Its places are free. Those that begin now, in order.
  std::vector<Job> leave(const AttemptId& id);
  // The attempt goes on outside: its handler's place is free, and it keeps the others. Those that begin now.
  std::vector<Job> hand_over(const AttemptId& id);
  // A job that waits leaves; false: it does not wait here.
  bool take_back(const AttemptId& id);
  std::vector<AttemptId> take_back_all();

  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  enum class Kind : std::uint8_t { handler, step, run };
  using Gate = std::tuple<Kind, std::uint64_t, std::uint32_t>;  // what has the limit
  struct Limit {
    Gate gate;
    std::uint32_t max;
  };
  struct Standing {
    std::uint32_t taken = 0;
    std::deque<AttemptId> line;  // those that wait; some may have left
  };
  struct Hash {
    std::size_t operator()(const AttemptId& id) const noexcept {
      return std::hash<std::uint64_t>{}(id.run * 31 + id.token) ^ (std::size_t{id.item} << 20U) ^ id.step;
    }
  };
  using Limits = std::vector<Limit>;

  static Limits limits_of(const Job& job);
  static bool is_of_handler(const Limit& limit) { return std::get<Kind>(limit.gate) == Kind::handler; }
  const Limit* first_full(const Limits& limits) const;
  void take(const AttemptId& id, Limits limits);
  std::vector<Job> free(const Limits& limits);
  void pass_on(const Gate& gate, std::vector<Job>& begun);

  std::map<Gate, Standing> gates_;
  std::unordered_map<AttemptId, Limits, Hash> holders_;
  std::unordered_map<AttemptId, Job, Hash> waiting_;
};

}  // namespace reprise::exec
