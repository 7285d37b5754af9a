// The door to durability: a journal of commits, and one row (its image) for every run that has left the journal.
//
// A commit is written in one transaction and is durable when append() returns. Its frame holds the new events of the runs that go
// on; a run that ends, that waits long, or whose events are to leave the journal is written as an image: its state and its events
// since the image before. So recovery reads the journal, which is short, and finds everything else by its number or due time.
// docs/formats/store.md describes the SQLite form; decision 5 says why.
//
// Thread safety: append() from one thread at a time; the reading functions from any thread, also during an append. Readers see what is
// committed and nothing else.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/error.hpp>
#include <reprise/event.hpp>

#include "event/record.hpp"

namespace reprise::store {

using event::Time;

struct Slice {  // a part of Commit::bytes
  std::size_t offset = 0;
  std::size_t size = 0;
};

struct Image {
  std::uint64_t run = 0;
  RunStatus status = RunStatus::running;
  std::uint32_t plan = 0;
  Time created = 0;
  Time ended = 0;                    // 0 = open
  Time due = 0;                      // parked: the run is not in memory and must be loaded by then; 0 = not parked
  std::uint64_t first_sequence = 0;  // of the first event in `events`
  Slice state;
  Slice events;  // since the image before; may be empty. No two chunks of a run may begin with the same sequence
  Slice key;     // its idempotency key, or empty
};

struct NewKey {  // a key that has a run already gets the new one
  Slice key;
  std::uint64_t run = 0;
};

struct NewPayload {  // `body` is stored once per hash; each (hash, run) pair once
  Slice hash;        // 32 bytes
  Slice body;
  std::uint64_t run = 0;
};

struct NewPlan {
  std::uint32_t number = 0;
  Slice name;
  Slice body;
};

struct Commit {
  std::uint64_t id = 0;  // 1, 2, 3 … without gaps
  Slice frame;           // may be empty
  std::vector<Image> images;
  std::vector<NewKey> keys;
  std::vector<NewPayload> payloads;
  std::vector<NewPlan> plans;
  std::uint64_t cut = 0;  // frames of commits up to and including this one are no longer needed; 0 = keep all
  std::vector<std::uint64_t>
      removals;       // runs to forget, after all else: row, history, key (its image's), payloads nobody else uses
  std::string bytes;  // what the slices look at

  Slice put(std::string_view text) {
    bytes.append(text);
    return {bytes.size() - text.size(), text.size()};
  }
  std::string_view at(Slice slice) const { return std::string_view{bytes}.substr(slice.offset, slice.size); }
  void clear();  // keeps the memory
};

// What a reader gets to see of a run's row.
struct StoredRun {
  std::uint64_t run = 0;
  RunStatus status = RunStatus::running;
  std::uint32_t plan = 0;
  Time created = 0;
  Time ended = 0;
  Time due = 0;
  std::uint64_t commit = 0;  // the one that wrote this image: events of later commits come on top
  std::string key;
  std::string state;  // empty when only a summary was asked for
};

struct StoredPlan {
  std::uint32_t number = 0;
  std::string name;
  std::string body;
};

struct RunFilter {
  std::optional<RunStatus> status = {};
  bool open_only = false;                  // running or paused
  std::optional<std::uint32_t> plan = {};  // number
  Time created_from = INT64_MIN;           // inclusive
  Time created_before = INT64_MAX;         // exclusive
};

struct DueCursor {  // the last one that was read; rows come in order of (due, run)
  Time due = 0;
  std::uint64_t run = 0;

  auto operator<=>(const DueCursor&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  // All or nothing. After an error nobody knows whether it happened: reopen() and compare last_commit() with its id.
  virtual Result<void> append(const Commit& commit) = 0;

  // After trouble: lets go of everything and opens again. Fails while the cause lasts. Not during an append, and not from a callback.
  // Reads that are in progress end first; those that come meanwhile, also from a callback, are refused with store_unavailable.
  virtual Result<void> reopen() = 0;

  virtual Result<std::uint64_t> last_commit() = 0;  // 0 = none yet
  virtual std::uint64_t secret() = 0;               // drawn when the store was made; ids are derived from it
  virtual bool owner_before_died() const { return false; }  // as far as it is known: it did not close the store
  virtual std::uint32_t slot() { return 0; }        // which shard of its store this is (ledger.hpp); ids carry it
  // Highest number of a run that has or had a row; 0 = none. The journal may know higher ones. Removing runs does not lower it:
  // ids are derived from numbers, so none may be given twice.
  virtual Result<std::uint64_t> last_run() = 0;

  // The journal, oldest first: frames of commits after the cut, without empty ones. The callback returns false to stop.
  using FrameReader = std::function<bool(std::uint64_t commit, std::string_view frame)>;
  virtual Result<void> read_journal(const FrameReader& reader) = 0;

  virtual Result<std::optional<StoredRun>> read_run(std::uint64_t run) = 0;

  // Chunks of events in order, each with the sequence of its first event; those still in the journal are not among them. The callback
  // returns false to stop, and may take its time: it is called with nothing held open. So what is committed meanwhile is read too, and of
  // a run that is removed meanwhile the rest is missing.
  using ChunkReader = std::function<bool(std::uint64_t first_sequence, std::string_view events)>;
  virtual Result<void> read_history(std::uint64_t run, const ChunkReader& reader) = 0;

  // Open runs that are not parked, with their state, by number.
  virtual Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) = 0;
  // Parked runs with their state, due at `before` or earlier and after the cursor.
  virtual Result<std::vector<StoredRun>> read_due(Time before, DueCursor after, std::size_t limit) = 0;
  virtual Result<std::optional<Time>> next_due(DueCursor after) = 0;

  // Summaries, newest (highest number) first, below the cursor (0 = from the newest).
  virtual Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) = 0;
  // Ended runs that retention may remove, in the order of their last commit (and by number within one): from the oldest on as
  // long as they ended before `ended_before`, or `keep` newer ended ones exist. One that ended later than its successor, because
  // the clock was set back, so makes its successors wait.
  virtual Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) = 0;

  virtual Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) = 0;
  virtual Result<std::optional<std::string>> read_payload(std::string_view hash) = 0;
  virtual Result<std::vector<StoredPlan>> read_plans() = 0;
  // How many runs have a row that is open, parked or not.
  virtual Result<std::uint64_t> count_open() = 0;
};

// A commit of one of several shards that have the same writer.
struct ShardCommit {
  Store* shard;
  const Commit* commit;
};
// One after the other, each as append() does it, with an answer for each.
std::vector<Result<void>> append_each(std::span<const ShardCommit> commits);

// `url` is memory: or sqlite:PATH (a path alone is sqlite). Takes ownership of the store until it is destroyed: a second owner
// is refused with store_locked.
Result<std::unique_ptr<Store>> open_store(std::string_view url);

// A store for looking only: it takes no ownership, writes nothing, and works while another process owns the store. append() and reopen()
// refuse. Until let_go() every call sees the store as it was when it was opened, and the owner's log can only grow: so let go before
// anything that takes as long as a person or a pipe likes. From then on each call sees what is there when it is made.
class StoreView : public Store {
 public:
  virtual void let_go() = 0;
};

// `not_found` when there is none; memory: cannot be looked at from outside.
Result<std::unique_ptr<StoreView>> open_store_read_only(std::string_view url);

}  // namespace reprise::store
