#include "store/memory_store.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "store/commit_check.hpp"

namespace reprise::store {
namespace {

struct Row {
  StoredRun run;
  std::uint64_t first_sequence = 0;  // of the events that came with the first image
  std::string events;
  std::map<std::uint64_t, std::string> later_events;  // by their first sequence
};

struct Payload {
  std::string body;
  std::set<std::uint64_t> runs;
};

bool comes_after(const StoredRun& run, DueCursor cursor) { return DueCursor{run.due, run.run} > cursor; }

bool matches(const RunFilter& filter, const StoredRun& run) {
  return (!filter.status || run.status == *filter.status) && (!filter.open_only || is_open(run.status)) &&
         (!filter.plan || run.plan == *filter.plan) && run.created >= filter.created_from &&
         run.created < filter.created_before;
}

class MemoryStore final : public Store {
 public:
  MemoryStore(std::uint64_t secret, std::uint32_t slot) : secret_{secret}, slot_{slot} {}

  Result<void> append(const Commit& commit) override;
  Result<void> reopen() override { return {}; }

  Result<std::uint64_t> last_commit() override {
    const std::scoped_lock lock{mutex_};
    return last_commit_;
  }
  std::uint64_t secret() override { return secret_; }
  std::uint32_t slot() override { return slot_; }
  Result<std::uint64_t> last_run() override {
    const std::scoped_lock lock{mutex_};
    return last_run_;
  }

  Result<void> read_journal(const FrameReader& reader) override;
  Result<std::optional<StoredRun>> read_run(std::uint64_t run) override;
  Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override;
  Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) override;
  Result<std::vector<StoredRun>> read_due(Time before, DueCursor after, std::size_t limit) override;
  Result<std::optional<Time>> next_due(DueCursor after) override;
  Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) override;
  Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) override;
  Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override;
  Result<std::optional<std::string>> read_payload(std::string_view hash) override;
  Result<std::vector<StoredPlan>> read_plans() override;
  Result<std::uint64_t> count_open() override;

 private:
  std::vector<StoredRun> parked_after(DueCursor after) const;
  bool repeats_events(const Commit& commit) const;
  void write(const Commit& commit, const Image& image);
  void remove(std::uint64_t run);

  std::mutex mutex_;
  std::uint64_t secret_;
  std::uint32_t slot_;
  std::uint64_t last_commit_ = 0;
  std::uint64_t last_run_ = 0;
  std::uint64_t cut_ = 0;
  std::map<std::uint64_t, std::string> frames_;
  std::map<std::uint64_t, Row> rows_;
  std::map<std::string, std::uint64_t, std::less<>> keys_;
  std::map<std::string, Payload, std::less<>> payloads_;
  std::map<std::uint32_t, StoredPlan> plans_;
};

// Two chunks of one run that begin with the same event: one would hide the other.
bool MemoryStore::repeats_events(const Commit& commit) const {
  std::set<std::uint64_t> rows;
  std::set<std::pair<std::uint64_t, std::uint64_t>> chunks;
  for (const Image& image : commit.images) {
    const auto row = rows_.find(image.run);
    const bool first_image = rows.insert(image.run).second && row == rows_.end();
    if (first_image || image.events.size == 0) continue;
    if (row != rows_.end() && row->second.later_events.contains(image.first_sequence)) return true;
    if (!chunks.emplace(image.run, image.first_sequence).second) return true;
  }
  return false;
}

void MemoryStore::write(const Commit& commit, const Image& image) {
  const auto [at, is_new] = rows_.try_emplace(image.run);
  Row& row = at->second;
  row.run = {.run = image.run,
             .status = image.status,
             .plan = image.plan,
             .created = image.created,
             .ended = image.ended,
             .due = image.due,
             .commit = commit.id,
             .key = std::string{commit.at(image.key)},
             .state = std::string{commit.at(image.state)}};
  last_run_ = std::max(last_run_, image.run);
  if (is_new) {
    row.first_sequence = image.first_sequence;
    row.events = commit.at(image.events);
  } else if (image.events.size > 0) {
    row.later_events.emplace(image.first_sequence, commit.at(image.events));
  }
}

void MemoryStore::remove(std::uint64_t run) {
  if (const auto row = rows_.find(run); row != rows_.end()) {
    const auto key = keys_.find(row->second.run.key);
    if (key != keys_.end() && key->second == run) keys_.erase(key);
    rows_.erase(row);
  }
  for (auto& [hash, payload] : payloads_) payload.runs.erase(run);
  std::erase_if(payloads_, [](const auto& entry) { return entry.second.runs.empty(); });
}

Result<void> MemoryStore::append(const Commit& commit) {
  const std::scoped_lock lock{mutex_};
  if (auto checked = check(commit, last_commit_); !checked) return checked;
  if (repeats_events(commit)) {
    return std::unexpected{Error{ErrorCode::invalid, "Commit " + std::to_string(commit.id) + " is wrong: " +
                                                         "an image brings events that the run's history has already."}};
  }
  for (const NewPlan& plan : commit.plans) {
    plans_[plan.number] = {plan.number, std::string{commit.at(plan.name)}, std::string{commit.at(plan.body)}};
  }
  for (const NewPayload& payload : commit.payloads) {
    const auto [at, is_new] = payloads_.try_emplace(std::string{commit.at(payload.hash)});
    if (is_new) at->second.body = commit.at(payload.body);
    at->second.runs.insert(payload.run);
  }
  for (const NewKey& key : commit.keys) keys_[std::string{commit.at(key.key)}] = key.run;
  for (const Image& image : commit.images) write(commit, image);
  for (const std::uint64_t run : commit.removals) remove(run);
  if (commit.frame.size > 0) frames_.emplace(commit.id, commit.at(commit.frame));
  cut_ = std::max(cut_, commit.cut);
  frames_.erase(frames_.begin(), frames_.upper_bound(cut_));
  last_commit_ = commit.id;
  return {};
}

// The callbacks get copies, so that they may ask the store for more.
Result<void> MemoryStore::read_journal(const FrameReader& reader) {
  std::unique_lock lock{mutex_};
  const auto frames = frames_;
  lock.unlock();
  for (const auto& [commit, frame] : frames) {
    if (!reader(commit, frame)) break;
  }
  return {};
}

Result<std::optional<StoredRun>> MemoryStore::read_run(std::uint64_t run) {
  const std::scoped_lock lock{mutex_};
  const auto row = rows_.find(run);
  if (row == rows_.end()) return std::nullopt;
  return row->second.run;
}

Result<void> MemoryStore::read_history(std::uint64_t run, const ChunkReader& reader) {
  std::unique_lock lock{mutex_};
  const auto found = rows_.find(run);
  if (found == rows_.end()) return {};
  const Row row = found->second;
  lock.unlock();
  if (!row.events.empty() && !reader(row.first_sequence, row.events)) return {};
  for (const auto& [first_sequence, events] : row.later_events) {
    if (!reader(first_sequence, events)) break;
  }
  return {};
}

Result<std::vector<StoredRun>> MemoryStore::read_open(std::uint64_t after_run, std::size_t limit) {
  const std::scoped_lock lock{mutex_};
  std::vector<StoredRun> found;
  for (auto row = rows_.upper_bound(after_run); row != rows_.end() && found.size() < limit; ++row) {
    if (is_open(row->second.run.status) && row->second.run.due == 0) found.push_back(row->second.run);
  }
  return found;
}

std::vector<StoredRun> MemoryStore::parked_after(DueCursor after) const {
  std::vector<StoredRun> parked;
  for (const auto& [number, row] : rows_) {
    if (row.run.due > 0 && comes_after(row.run, after)) parked.push_back(row.run);
  }
  std::ranges::sort(parked, {}, [](const StoredRun& run) { return DueCursor{run.due, run.run}; });
  return parked;
}

Result<std::vector<StoredRun>> MemoryStore::read_due(Time before, DueCursor after, std::size_t limit) {
  const std::scoped_lock lock{mutex_};
  std::vector<StoredRun> found = parked_after(after);
  std::erase_if(found, [before](const StoredRun& run) { return run.due > before; });
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<std::optional<Time>> MemoryStore::next_due(DueCursor after) {
  const std::scoped_lock lock{mutex_};
  const std::vector<StoredRun> parked = parked_after(after);
  if (parked.empty()) return std::nullopt;
  return parked.front().due;
}

Result<std::vector<StoredRun>> MemoryStore::find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) {
  const std::scoped_lock lock{mutex_};
  std::vector<StoredRun> found;
  auto row = below_run == 0 ? rows_.end() : rows_.lower_bound(below_run);
  while (row != rows_.begin() && found.size() < limit) {
    --row;
    if (!matches(filter, row->second.run)) continue;
    found.push_back(row->second.run);
    found.back().state.clear();
  }
  return found;
}

Result<std::vector<std::uint64_t>> MemoryStore::expired(Time ended_before, std::uint64_t keep, std::size_t limit) {
  const std::scoped_lock lock{mutex_};
  std::vector<const StoredRun*> ended;
  for (const auto& [number, row] : rows_) {
    if (row.run.ended > 0) ended.push_back(&row.run);
  }
  std::ranges::sort(ended, {}, [](const StoredRun* run) { return std::pair{run->commit, run->run}; });
  std::vector<std::uint64_t> found;
  for (std::size_t index = 0; index < ended.size() && found.size() < limit; ++index) {
    const std::size_t newer = ended.size() - index - 1;
    if (ended[index]->ended >= ended_before && newer < keep) break;
    found.push_back(ended[index]->run);
  }
  return found;
}

Result<std::optional<std::uint64_t>> MemoryStore::run_of_key(std::string_view key) {
  const std::scoped_lock lock{mutex_};
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  return found->second;
}

Result<std::optional<std::string>> MemoryStore::read_payload(std::string_view hash) {
  const std::scoped_lock lock{mutex_};
  const auto found = payloads_.find(hash);
  if (found == payloads_.end()) return std::nullopt;
  return found->second.body;
}

Result<std::vector<StoredPlan>> MemoryStore::read_plans() {
  const std::scoped_lock lock{mutex_};
  std::vector<StoredPlan> plans;
  for (const auto& [number, plan] : plans_) plans.push_back(plan);
  return plans;
}

Result<std::uint64_t> MemoryStore::count_open() {
  const std::scoped_lock lock{mutex_};
  return static_cast<std::uint64_t>(
      std::ranges::count_if(rows_, [](const auto& entry) { return is_open(entry.second.run.status); }));
}

}  // namespace

std::unique_ptr<Store> make_memory_store(std::uint64_t secret, std::uint32_t slot) {
  return std::make_unique<MemoryStore>(secret, slot);
}

}  // namespace reprise::store
