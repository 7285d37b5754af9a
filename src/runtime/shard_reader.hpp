// Looking at the runs of one shard, whoever knows them best: what ShardSnapshot and LiveReader have in common, which is nearly all.
//
// They differ in where a run's state comes from, and who knows better than the rows. Everything that is said about a run is worked out here from
// that state and from the store.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/core.hpp"
#include "event/history.hpp"
#include "runtime/run_reader.hpp"
#include "runtime/stored_runs.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

// The events of one run from their chunks, with names, to a visitor that returns false when it has enough.
class EventTeller {
 public:
  EventTeller(const RunId& run, const core::Plan& plan, const std::function<bool(Event&&)>& visit);

  bool tell(std::uint64_t first_sequence, std::string_view chunk);  // false: no more
  bool is_whole() const noexcept { return whole_; }                 // no event is missing or cannot be read
  bool has_enough() const noexcept { return !going_; }
  std::uint64_t sequence() const noexcept { return sequence_; }  // of the last one
  event::EventHistory take_history() { return std::move(history_); }

 private:
  event::EventHistory history_;
  const std::function<bool(Event&&)>& visit_;
  std::uint64_t sequence_ = 0;
  bool going_ = true;
  bool whole_ = true;
};

class ShardReader : public RunReader {
 public:
  std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {}) override;
  std::expected<std::optional<RunView>, Error> run(const RunId& id) override;
  std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit) override;
  std::expected<void, Error> each_item(const RunId& id, const std::function<bool(const ItemView&)>& visit) override;
  std::expected<std::string, Error> item_input(const RunId& id, std::string_view step, std::uint32_t item) override;
  std::expected<std::vector<std::string>, Error> item_inputs(const RunId& id, std::string_view step,
                                                             std::size_t limit) override;
  std::expected<Replayed, Error> replay(const RunId& id) override;
  std::expected<std::vector<DeadLetter>, Error> dead_letters(std::size_t limit) override;
  std::expected<std::vector<DeadLetter>, Error> dead_letters_of(const RunId& id, std::size_t limit) override;
  std::expected<std::string, Error> payload(const RunId& id, std::string_view hash) override;

  virtual ShardKey key() const noexcept = 0;
  // The same as find(), below that number (0 = from the newest); full unless it is the last.
  std::expected<FoundRuns, Error> find_below(const RunQuery& query, std::uint64_t below);
  // RunQuery::details, for one that was found without.
  std::expected<void, Error> add_details(RunInfo& info);

 protected:
  virtual store::Store& store() noexcept = 0;
  virtual core::FactsDecoder facts_decoder() const = 0;
  virtual std::shared_ptr<const core::Plan> plan(std::uint32_t number) = 0;  // nullptr: not known
  // Its state, with the events that are in no history yet; stays until another one is loaded. nullptr: there is no such run.
  virtual store::Result<core::Run*> load(const RunId& id) = 0;
  // Some runs below that number; what the query asks of their details is looked up by the caller.
  virtual std::expected<FoundRuns, Error> some_below(const RunQuery& query, std::uint64_t below) = 0;

 private:
  store::Result<std::string> bytes_of(const event::Payload& payload);
  store::Result<RunView> view_of(const core::Run& run);
  store::Result<void> each_chunk(const core::Run& run, const store::Store::ChunkReader& visit);
  std::expected<std::vector<std::uint32_t>, Error> plans_with_letters();
};

}  // namespace reprise::runtime
