// Looking at the runs of an engine of this process: its loop says how a run stands, and its store has what is too large or too old for that.
//
// What it says is never behind what was acknowledged, and it works for stores in memory too. To ask for a whole run costs the loop as much as
// an image of it.
// Thread safety: one thread at a time; the engine must outlive it, and must not be moved.
#pragma once

#include "runtime/shard_reader.hpp"

namespace reprise::runtime {

class LiveReader final : public ShardReader {
 public:
  explicit LiveReader(Engine& engine);

  ShardKey key() const noexcept override { return key_; }
  std::expected<std::optional<RunId>, Error> find_key(std::string_view key) override;
  std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit) override;

 protected:
  store::Store& store() noexcept override;
  core::FactsDecoder facts_decoder() const override;
  std::shared_ptr<const core::Plan> plan(std::uint32_t number) override;
  store::Result<core::Run*> load(const RunId& id) override;
  std::expected<FoundRuns, Error> some_below(const RunQuery& query, std::uint64_t below) override;

 private:
  Engine* engine_;
  ShardKey key_;
  std::unique_ptr<core::Core> core_;  // for the run that was loaded last, which is not live here
  core::Run* loaded_ = nullptr;
};

}  // namespace reprise::runtime
