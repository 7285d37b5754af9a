#include "store/memory_ledger.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "store/memory_store.hpp"

namespace reprise::store {

struct MemoryLedger::Place {
  std::shared_ptr<std::mutex> owners;  // of all shards: who owns what changes only while it is held
  std::unique_ptr<Store> store;
  std::uint64_t epoch = 0;  // rises with each owner, and when ownership lapses
  bool is_owned = false;
};

namespace {

using Place = MemoryLedger::Place;

// The way to a shard: its owner's, or that of one who only looks.
class Door final : public StoreView {
 public:
  explicit Door(std::shared_ptr<Place> place) : place_{std::move(place)} {}  // for looking
  Door(std::shared_ptr<Place> place, std::uint64_t epoch) : place_{std::move(place)}, epoch_{epoch} {}
  ~Door() override {
    const std::scoped_lock lock{*place_->owners};
    if (is_owner()) place_->is_owned = false;
  }

  void let_go() override {}
  Result<void> append(const Commit& commit) override {
    const std::scoped_lock lock{*place_->owners};
    return append_while_locked(commit);
  }
  Result<void> append_while_locked(const Commit& commit) {
    if (auto allowed = check_owner(); !allowed) return allowed;
    return inner().append(commit);
  }
  Result<void> reopen() override {
    const std::scoped_lock lock{*place_->owners};
    if (auto allowed = check_owner(); !allowed) return allowed;
    return inner().reopen();
  }
  Result<std::uint64_t> last_commit() override { return inner().last_commit(); }
  std::uint64_t secret() override { return inner().secret(); }
  std::uint32_t slot() override { return inner().slot(); }
  Result<std::uint64_t> last_run() override { return inner().last_run(); }
  Result<void> read_journal(const FrameReader& reader) override { return inner().read_journal(reader); }
  Result<std::optional<StoredRun>> read_run(std::uint64_t run) override { return inner().read_run(run); }
  Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override {
    return inner().read_history(run, reader);
  }
  Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) override {
    return inner().read_open(after_run, limit);
  }
  Result<std::vector<StoredRun>> read_due(Time before, DueCursor after, std::size_t limit) override {
    return inner().read_due(before, after, limit);
  }
  Result<std::optional<Time>> next_due(DueCursor after) override { return inner().next_due(after); }
  Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) override {
    return inner().find(filter, below_run, limit);
  }
  Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) override {
    return inner().expired(ended_before, keep, limit);
  }
  Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override { return inner().run_of_key(key); }
  Result<std::optional<std::string>> read_payload(std::string_view hash) override { return inner().read_payload(hash); }
  Result<std::vector<StoredPlan>> read_plans() override { return inner().read_plans(); }
  Result<std::uint64_t> count_open() override { return inner().count_open(); }

 private:
  Store& inner() { return *place_->store; }
  bool is_owner() const { return epoch_ != 0 && place_->is_owned && place_->epoch == epoch_; }
  Result<void> check_owner() {
    if (is_owner()) return {};
    if (epoch_ == 0)
      return std::unexpected{Error{ErrorCode::store_read_only, "The store was opened for looking only."}};
    return std::unexpected{
        Error{ErrorCode::fenced, "Shard " + std::to_string(inner().slot()) + " is not owned by this engine any more."}};
  }

  std::shared_ptr<Place> place_;
  std::uint64_t epoch_ = 0;  // 0: only looks
};

OwnedShard own(const std::shared_ptr<Place>& place) {
  place->is_owned = true;
  return {{place->store->slot(), {}}, std::make_unique<Door>(place, ++place->epoch)};
}

}  // namespace

MemoryLedger::MemoryLedger(std::uint64_t secret, const LedgerSettings& settings)
    : secret_{secret}, shards_max_{std::clamp<std::uint32_t>(settings.shards_max, 1, store::shards_max)} {}
MemoryLedger::~MemoryLedger() = default;

Result<OwnedShard> MemoryLedger::claim() {
  const std::scoped_lock lock{*owners_};
  const auto free = std::ranges::find(places_, false, [](const auto& place) { return place->is_owned; });
  if (free != places_.end()) return own(*free);
  if (places_.size() == shards_max_)
    return std::unexpected{
        Error{ErrorCode::full, std::to_string(shards_max_) + " owners work with this store already."}};
  const auto slot = static_cast<std::uint32_t>(places_.size());
  places_.push_back(std::make_shared<Place>(Place{.owners = owners_, .store = make_memory_store(secret_, slot)}));
  return own(places_.back());
}

Result<OwnedShard> MemoryLedger::open_shard(const Shard& shard) {
  const std::scoped_lock lock{*owners_};
  if (shard.slot >= places_.size())
    return std::unexpected{Error{ErrorCode::not_found, "There is no shard " + std::to_string(shard.slot) + "."}};
  if (places_[shard.slot]->is_owned)
    return std::unexpected{
        Error{ErrorCode::store_locked, "Shard " + std::to_string(shard.slot) + " has another owner."}};
  return own(places_[shard.slot]);
}

std::vector<ShardView> MemoryLedger::look() {
  std::vector<ShardView> views;
  if (places_.empty()) views.push_back({{}, std::unexpected{Error{ErrorCode::not_found, "There is no store yet."}}});
  for (const auto& place : places_) views.push_back({{place->store->slot(), {}}, std::make_unique<Door>(place)});
  return views;
}

// Nobody's ownership changes between them.
std::vector<Result<void>> MemoryLedger::append(std::span<const ShardCommit> commits) {
  const std::scoped_lock lock{*owners_};
  std::vector<Result<void>> results;
  for (const auto& [shard, commit] : commits)
    results.push_back(dynamic_cast<Door&>(*shard).append_while_locked(*commit));
  return results;
}

Result<KeysLock> MemoryLedger::try_lock_keys() {
  if (!keys_lock_.expired()) return nullptr;
  KeysLock lock = std::make_shared<int>();
  keys_lock_ = lock;
  return lock;
}

void MemoryLedger::lapse(std::uint32_t slot) {
  const std::scoped_lock lock{*owners_};
  if (slot >= places_.size() || !places_[slot]->is_owned) return;
  places_[slot]->is_owned = false;
  ++places_[slot]->epoch;
}

}  // namespace reprise::store
