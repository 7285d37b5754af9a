// One shard of a store as it is at this moment, for those who only want to look: nothing is written, nothing is decided, nobody is locked
// out. Nothing is held open either: plans and journal are copied when it is opened, the rest is read when it is asked for, page by page,
// and whoever takes long over the answer hinders nobody. One run is seen as it was at one moment, as long as no other is asked for.
// snapshot.hpp puts all shards of a store together.
//
// Works while another process owns the store, and on one whose owner was killed: attempts that were running then still look running.
// Thread safety: one thread at a time.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/shard_reader.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

class ShardSnapshot final : public ShardReader {
 public:
  // `not_found`: there is no such shard.
  static std::expected<ShardSnapshot, Error> open(std::unique_ptr<store::StoreView> view);
  static std::expected<ShardSnapshot, Error> open(const std::string& path);
  ShardSnapshot(ShardSnapshot&&) noexcept;
  ShardSnapshot& operator=(ShardSnapshot&&) noexcept;
  ~ShardSnapshot() override;

  ShardKey key() const noexcept override;
  std::expected<std::optional<RunId>, Error> find_key(std::string_view key) override;

 protected:
  store::Store& store() noexcept override;
  core::FactsDecoder facts_decoder() const override;
  std::shared_ptr<const core::Plan> plan(std::uint32_t number) override;
  store::Result<core::Run*> load(const RunId& id) override;
  std::expected<FoundRuns, Error> some_below(const RunQuery& query, std::uint64_t below) override;

 private:
  struct State;
  explicit ShardSnapshot(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::runtime
