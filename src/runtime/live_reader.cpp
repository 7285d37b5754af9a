#include "runtime/live_reader.hpp"

#include <utility>

#include "runtime/engine_access.hpp"

namespace reprise::runtime {

LiveReader::LiveReader(Engine& engine)
    : engine_{&engine}, key_{EngineAccess::store(engine).secret(), EngineAccess::store(engine).slot()} {}

store::Store& LiveReader::store() noexcept { return EngineAccess::store(*engine_); }
core::FactsDecoder LiveReader::facts_decoder() const { return EngineAccess::facts_decoder(*engine_); }
std::shared_ptr<const core::Plan> LiveReader::plan(std::uint32_t number) {
  return EngineAccess::plan(*engine_, number);
}

store::Result<core::Run*> LiveReader::load(const RunId& id) {
  const auto reply = EngineAccess::ask(*engine_, id, Question::state);
  if (!reply && reply.error().code == ErrorCode::not_found) return nullptr;
  if (!reply) return std::unexpected{reply.error()};
  const AskReply& said = **reply;
  if (core_ == nullptr) {
    core_ = std::make_unique<core::Core>(0, 0);
    core_->use(facts_decoder());
  }
  if (core_->plan(said.plan) == nullptr) core_->add_plan(said.plan, plan(said.plan));
  if (loaded_ != nullptr) core_->forget(*std::exchange(loaded_, nullptr));
  store::StoredRun row;
  row.run = said.number;
  row.state = said.state;
  core::Run* const run = revive(*core_, row);
  if (run == nullptr) return std::unexpected{unreadable_row(said.number)};
  run->events = said.events;
  run->events_first = said.events_first;
  return loaded_ = run;
}

std::expected<void, Error> LiveReader::each_event(const RunId& id, const std::function<bool(Event&&)>& visit) {
  return EngineAccess::each_event(*engine_, id, visit);
}

std::expected<FoundRuns, Error> LiveReader::some_below(const RunQuery& query, std::uint64_t below) {
  return EngineAccess::some_below(*engine_, query, below);
}

// A key that was given is in the store by the time its run was acknowledged.
std::expected<std::optional<RunId>, Error> LiveReader::find_key(std::string_view key) {
  const auto number = store().run_of_key(key);
  if (!number) return std::unexpected{number.error()};
  if (!*number) return std::nullopt;
  std::uint64_t below = **number + 1;
  const auto found = some_below({.limit = 1}, below);
  if (!found) return std::unexpected{found.error()};
  if (found->runs.empty() || number_in(found->runs.front().id) != **number) return std::nullopt;
  return found->runs.front().id;
}

}  // namespace reprise::runtime
