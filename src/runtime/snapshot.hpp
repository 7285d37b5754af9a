// A store as it is at this moment, for those who only want to look: nothing is written, nothing is decided, nobody is locked out.
//
//   auto snapshot = Snapshot::open("sqlite:.reprise/reprise.db");
//   for (const RunInfo& run : *snapshot->find({.status = RunStatus::failed})) …
//
// Works while another process owns the store, and on one whose owner was killed: attempts that were running then still look running.
// Thread safety: one thread at a time.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/engine.hpp>
#include <reprise/error.hpp>
#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

struct RunView {
  RunInfo info;
  RunOutcome outcome;                      // as far as it is known; large outputs are loaded
  std::string input;                       // what it was submitted with
  std::shared_ptr<const core::Plan> plan;  // its steps and their resolved policies
};

class Snapshot {
 public:
  // `not_found` when there is no such store.
  static std::expected<Snapshot, Error> open(std::string_view url);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {});
  std::expected<std::optional<RunView>, Error> run(const RunId& id);
  // Complete histories only: in order, with names and everything that can be worked out (event/history.hpp).
  std::expected<std::vector<Event>, Error> events(const RunId& id);
  std::expected<std::string, Error> payload(
      std::string_view hash);  // hexadecimal, as Event::output has it for large ones

  // A full id, a unique prefix of one (at least 4 characters), @last or @last-failed. The error is a sentence; code `not_found` or,
  // when several runs match, `invalid`.
  std::expected<RunId, Error> resolve(std::string_view text);

 private:
  struct State;
  explicit Snapshot(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::runtime
