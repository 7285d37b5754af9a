// Faults on the way to the inner store and back.
#include "sim/faulty_store.hpp"

namespace reprise::sim {
namespace {

// The last one may be a commit that nobody was told of; without the one before it the store is behind in any case.
constexpr std::uint64_t forgotten = 2;

std::unexpected<Error> trouble(const char* what) { return std::unexpected{Error{ErrorCode::store_unavailable, what}}; }

}  // namespace

store::Result<void> FaultyStore::append(const store::Commit& commit) {
  if (is_full) return std::unexpected{Error{ErrorCode::store_full, "simulated: no space left"}};
  if (world_.chance(faults.fails)) return trouble("simulated: the write failed");
  if (is_behind_) throw Violation{"the engine wrote to a store that has forgotten commits", 0};
  ++writes_;
  if (auto written = inner_->append(commit); !written) {
    // A store that is healthy refuses only what no engine may ask for; the engine would try it for ever.
    throw Violation{"the engine wrote what the store refuses: " + written.error().message, 0};
  }
  model_.durable(commit);
  if (world_.chance(faults.unanswered)) return trouble("simulated: no answer came");
  return {};
}

store::Result<void> FaultyStore::reopen() {
  if (is_full) return std::unexpected{Error{ErrorCode::store_full, "simulated: no space left"}};
  if (world_.chance(faults.reopen_fails)) return trouble("simulated: cannot be opened");
  is_behind_ = is_behind_ || (world_.chance(faults.forgets) && *inner_->last_commit() >= forgotten);
  return inner_->reopen();
}

store::Result<std::uint64_t> FaultyStore::last_commit() {
  if (read_fails()) return trouble("simulated: cannot be read");
  return *inner_->last_commit() - (is_behind_ ? forgotten : 0);
}
store::Result<std::uint64_t> FaultyStore::last_run() {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->last_run();
}
store::Result<void> FaultyStore::read_journal(const FrameReader& reader) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_journal(reader);
}
store::Result<std::optional<store::StoredRun>> FaultyStore::read_run(std::uint64_t run) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_run(run);
}
store::Result<void> FaultyStore::read_history(std::uint64_t run, const ChunkReader& reader) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_history(run, reader);
}
store::Result<std::vector<store::StoredRun>> FaultyStore::read_open(std::uint64_t after_run, std::size_t limit) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_open(after_run, limit);
}
store::Result<std::vector<store::StoredRun>> FaultyStore::read_due(Time before, store::DueCursor after,
                                                                   std::size_t limit) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_due(before, after, limit);
}
store::Result<std::optional<Time>> FaultyStore::next_due(store::DueCursor after) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->next_due(after);
}
store::Result<std::vector<store::StoredRun>> FaultyStore::find(const store::RunFilter& filter, std::uint64_t below_run,
                                                               std::size_t limit) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->find(filter, below_run, limit);
}
store::Result<std::vector<std::uint64_t>> FaultyStore::expired(Time ended_before, std::uint64_t keep,
                                                               std::size_t limit) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->expired(ended_before, keep, limit);
}
store::Result<std::optional<std::uint64_t>> FaultyStore::run_of_key(std::string_view key) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->run_of_key(key);
}
store::Result<std::optional<std::string>> FaultyStore::read_payload(std::string_view hash) {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_payload(hash);
}
store::Result<std::vector<store::StoredPlan>> FaultyStore::read_plans() {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->read_plans();
}
store::Result<std::uint64_t> FaultyStore::count_open() {
  if (read_fails()) return trouble("simulated: cannot be read");
  return inner_->count_open();
}

}  // namespace reprise::sim
