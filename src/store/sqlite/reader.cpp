#include "store/sqlite/reader.hpp"

#include <algorithm>
#include <utility>

#include "store/sqlite/run_list.hpp"
#include "store/sqlite/writer.hpp"

namespace reprise::store::sqlite {
namespace {

constexpr std::size_t readers_kept = 4;
constexpr const char* cache_kib = "16384";
constexpr std::size_t chunks_page_bytes = std::size_t{1}
                                          << 20U;  // of history at once; a chunk that is larger comes alone

#define REPRISE_SUMMARY "SELECT run, status, plan, created, ended, due, commit_id, key"
#define REPRISE_FILTER                                                                                \
  "run < ?1 AND (?2 IS NULL OR status = ?2) AND (?3 = 0 OR ended = 0) AND (?4 IS NULL OR plan = ?4) " \
  "AND created >= ?5 AND created < ?6 ORDER BY run DESC LIMIT ?7"

StoredRun summary_of(const Rows& row) {
  return {.run = row.number(0),
          .status = static_cast<RunStatus>(row.integer(1)),
          .plan = static_cast<std::uint32_t>(row.integer(2)),
          .created = row.integer(3),
          .ended = row.integer(4),
          .due = row.integer(5),
          .commit = row.number(6),
          .key = std::string{row.bytes(7)},
          .state = {}};
}

StoredRun run_of(const Rows& row) {
  StoredRun run = summary_of(row);
  run.state = row.bytes(8);
  return run;
}

std::int64_t limit_of(std::size_t limit) { return static_cast<std::int64_t>(std::min<std::size_t>(limit, INT64_MAX)); }
std::int64_t number_of(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX));
}

}  // namespace

class Reader::Snapshot {
 public:
  explicit Snapshot(Reader& reader)
      : reader_{reader}, is_own_{!reader.holds_}, begun_{!is_own_ || reader.begin_.run()} {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() {
    if (is_own_ && begun_) (void)reader_.end_.run();
  }
  bool failed() const noexcept { return !begun_; }

 private:
  Reader& reader_;
  bool is_own_;
  bool begun_;
};

Result<std::unique_ptr<Reader>> Reader::open(const std::string& path, const std::string& vfs) {
  auto connection = Connection::open(path, Access::read, vfs);
  if (!connection) return std::unexpected{connection.error()};
  sqlite3_db_config(connection->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const std::string settings = std::string{"PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = ON;"} +
                               "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -" +
                               cache_kib;
  if (auto set = connection->execute(settings, "open"); !set) return std::unexpected{set.error()};
  return std::make_unique<Reader>(*std::move(connection));
}

Reader::Reader(Connection&& own) : own_{std::move(own)}, connection_{*own_} { prepare(); }
Reader::Reader(Connection& borrowed) : connection_{borrowed} { prepare(); }

void Reader::prepare() {
  const std::pair<Statement*, const char*> statements[] = {
      {&begin_, "BEGIN"},
      {&end_, "COMMIT"},
      {&meta_, "SELECT value FROM meta WHERE key = ?"},
      {&last_commit_,
       "SELECT max(value, (SELECT coalesce(max(commit_id), 0) FROM frames)) FROM meta WHERE key = 'last_commit'"},
      {&journal_,
       "SELECT commit_id, body FROM frames WHERE commit_id > (SELECT value FROM meta WHERE key = 'cut') "
       "ORDER BY commit_id"},
      {&run_, REPRISE_SUMMARY ", state FROM runs WHERE run = ?"},
      {&due_run_, REPRISE_SUMMARY ", state FROM runs WHERE run = ?1"},
      {&due_time_, "SELECT 0, 0, 0, 0, 0, due FROM runs WHERE run = ?1"},
      {&inline_events_, "SELECT first_sequence, events FROM runs WHERE run = ? AND first_sequence >= ?"},
      {&history_,
       "SELECT first_sequence, events FROM history WHERE run = ? AND first_sequence >= ? ORDER BY first_sequence"},
      {&open_, REPRISE_SUMMARY
       ", state FROM runs INDEXED BY runs_open WHERE ended = 0 AND due = 0 AND run > ? ORDER BY run LIMIT ?"},
      {&find_any_, REPRISE_SUMMARY " FROM runs NOT INDEXED WHERE " REPRISE_FILTER},
      {&find_by_status_, REPRISE_SUMMARY
       " FROM runs INDEXED BY runs_by_status WHERE status <> 0 AND status <> 2 AND status = ?2 AND " REPRISE_FILTER},
      {&find_unparked_,
       REPRISE_SUMMARY " FROM runs INDEXED BY runs_open WHERE ended = 0 AND due = 0 AND " REPRISE_FILTER},
      {&first_due_slot_, "SELECT min(slot) FROM due_lists WHERE slot >= ?"},
      {&due_lists_, "SELECT runs FROM due_lists WHERE slot BETWEEN ? AND ?"},
      {&ended_lists_, "SELECT commit_id, runs FROM ended_lists ORDER BY slot"},
      {&ended_run_, "SELECT ended, commit_id FROM runs WHERE run = ?"},
      {&key_, "SELECT run FROM keys WHERE key = ?"},
      {&payload_, "SELECT body FROM payloads WHERE hash = ?"},
      {&plans_, "SELECT number, name, body FROM plans ORDER BY number"},
  };
  for (const auto& [statement, sql] : statements) statement->prepare_when_used(connection_.get(), sql);
}

Result<void> Reader::hold() {
  if (!begin_.run()) return failure();
  holds_ = true;
  // SQLite begins to see a commit with the first row that is read, not with BEGIN.
  if (const auto seen = last_commit(); !seen) return std::unexpected{seen.error()};
  return {};
}

void Reader::let_go() {
  if (holds_) (void)end_.run();
  holds_ = false;
}

Result<std::uint64_t> Reader::meta(std::string_view name, std::optional<std::uint64_t> if_absent) {
  Rows row = meta_(Text{name});
  if (row.next()) return row.number(0);
  if (row.failed() || !if_absent) return failure();
  return *if_absent;
}

Result<std::uint64_t> Reader::last_commit() {
  Rows row = last_commit_();
  if (!row.next()) return failure();
  return row.number(0);
}

Result<void> Reader::read_journal(const Store::FrameReader& reader) {
  Rows rows = journal_();
  while (rows.next()) {
    if (!reader(rows.number(0), rows.bytes(1))) return {};
  }
  if (rows.failed()) return failure();
  return {};
}

Result<std::optional<StoredRun>> Reader::read_run(std::uint64_t run) {
  Rows row = run_(number_of(run));
  if (row.next()) return run_of(row);
  if (row.failed()) return failure();
  return std::nullopt;
}

Result<std::vector<Reader::Chunk>> Reader::read_chunks(std::uint64_t run, std::uint64_t from) {
  const Snapshot snapshot{*this};
  if (snapshot.failed()) return failure();
  std::vector<Chunk> chunks;
  std::size_t bytes = 0;
  for (Statement* select : {&inline_events_, &history_}) {
    Rows rows = (*select)(number_of(run), number_of(from));
    while (bytes < chunks_page_bytes && rows.next()) {
      if (rows.bytes(1).empty()) continue;
      chunks.push_back({rows.number(0), std::string{rows.bytes(1)}});
      bytes += chunks.back().events.size();
    }
    if (rows.failed()) return failure();
  }
  return chunks;
}

// A page is copied and let go before the callback sees it: it may be waiting for a person who reads page by page, too.
Result<void> Reader::read_history(std::uint64_t run, const Store::ChunkReader& reader) {
  for (std::uint64_t from = 0;;) {
    const auto chunks = read_chunks(run, from);
    if (!chunks) return std::unexpected{chunks.error()};
    if (chunks->empty()) return {};
    for (const Chunk& chunk : *chunks) {
      if (!reader(chunk.first_sequence, chunk.events)) return {};
    }
    from = chunks->back().first_sequence + 1;
  }
}

Result<std::vector<StoredRun>> Reader::read_open(std::uint64_t after_run, std::size_t limit) {
  std::vector<StoredRun> runs;
  Rows rows = open_(number_of(after_run), limit_of(limit));
  while (rows.next()) runs.push_back(run_of(rows));
  if (rows.failed()) return failure();
  return runs;
}

// The lists of the next span that has any: they are all entries between `after` and the end of the span.
bool Reader::fill(DueWindow& window, DueCursor after) {
  const DueCursor end_of_span{after.due | due_span_mask, UINT64_MAX};
  Time slot = after.due & ~due_span_mask;
  if (after == end_of_span) slot += due_span_mask + 1;
  {
    Rows first = first_due_slot_(slot);
    if (!first.next()) return false;
    if (first.is_null(0)) {
      window.begin_fill(after, due_never);
      window.end_fill();
      return true;
    }
    slot = first.integer(0);
  }
  const Time span_last = slot | due_span_mask;
  window.begin_fill(after, {span_last, UINT64_MAX});
  Rows lists = due_lists_(slot, span_last);
  while (lists.next()) {
    list_.clear();
    read_run_list(lists.bytes(0), list_);
    window.offer(list_);
  }
  window.end_fill();
  return !lists.failed();
}

// Shows `take` the row of each parked run after the cursor, in order, until it returns false or one is due later than `before`.
template <class Take>
bool Reader::walk_due(DueWindow& window, Statement& select_run, Time before, DueCursor after, const Take& take) {
  bool going = true;
  while (going && after < due_never) {
    if (!window.covers(after) && !fill(window, after)) return false;
    const DueCursor to = window.to();
    bool marked = false;
    for (DueCursor& entry : window.after(after)) {
      going = entry.due <= before;
      if (!going) break;
      Rows row = select_run(entry.run);
      if (row.next() && row.integer(5) == entry.due) {
        going = take(row);
        if (!going) break;
      } else {
        if (row.failed()) return false;
        entry.run = 0;
        marked = true;
      }
    }
    if (marked) window.drop_marked();
    after = to;
    if (after.due > before) break;
  }
  return true;
}

Result<std::vector<StoredRun>> Reader::read_due(DueWindow& window, Time before, DueCursor after, std::size_t limit) {
  std::vector<StoredRun> runs;
  if (limit == 0) return runs;
  const std::scoped_lock lock{window.mutex()};
  window.catch_up();
  const Snapshot snapshot{*this};
  const bool walked = !snapshot.failed() && walk_due(window, due_run_, before, after, [&](const Rows& row) {
    runs.push_back(run_of(row));
    return runs.size() < limit;
  });
  if (!walked) {
    auto error = failure();
    window.forget();
    return error;
  }
  return runs;
}

Result<std::optional<Time>> Reader::next_due(DueWindow& window, DueCursor after) {
  std::optional<Time> due;
  const std::scoped_lock lock{window.mutex()};
  window.catch_up();
  const Snapshot snapshot{*this};
  const bool walked = !snapshot.failed() && walk_due(window, due_time_, INT64_MAX, after, [&](const Rows& row) {
    due = row.integer(5);
    return false;
  });
  if (!walked) {
    auto error = failure();
    window.forget();
    return error;
  }
  return due;
}

Result<std::vector<StoredRun>> Reader::find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) {
  const Snapshot snapshot{*this};
  if (snapshot.failed()) return failure();
  Statement* statement = &find_any_;
  if (filter.status && *filter.status != RunStatus::running && *filter.status != RunStatus::succeeded) {
    statement = &find_by_status_;
  } else if (filter.open_only || filter.status == RunStatus::running) {
    const auto parked = meta("parked_runs");
    if (!parked) return std::unexpected{parked.error()};
    if (*parked == 0) statement = &find_unparked_;
  }
  std::vector<StoredRun> runs;
  const auto bound = [](const auto& value) {
    return value ? std::optional<std::int64_t>{static_cast<std::int64_t>(*value)} : std::nullopt;
  };
  Rows rows = (*statement)(below_run == 0 ? INT64_MAX : number_of(below_run), bound(filter.status),
                           static_cast<int>(filter.open_only), bound(filter.plan), filter.created_from,
                           filter.created_before, limit_of(limit));
  while (rows.next()) runs.push_back(summary_of(rows));
  if (rows.failed()) return failure();
  return runs;
}

Result<std::vector<std::uint64_t>> Reader::expired(Time ended_before, std::uint64_t keep, std::size_t limit) {
  std::vector<std::uint64_t> runs;
  const Snapshot snapshot{*this};
  if (snapshot.failed()) return failure();
  const auto ended = meta("ended_runs");
  if (!ended) return std::unexpected{ended.error()};
  const std::uint64_t surplus = *ended > keep ? *ended - keep : 0;
  Rows lists = ended_lists_();
  while (runs.size() < limit && lists.next()) {
    list_.clear();
    read_run_list(lists.bytes(1), list_);
    for (const DueCursor entry : list_) {
      Rows run = ended_run_(entry.run);
      if (run.next() && run.integer(0) > 0 && run.integer(1) == lists.integer(0)) {
        if (run.integer(0) >= ended_before && runs.size() >= surplus) return runs;
        runs.push_back(entry.run);
        if (runs.size() == limit) return runs;
      }
      if (run.failed()) return failure();
    }
  }
  if (lists.failed()) return failure();
  return runs;
}

Result<std::optional<std::uint64_t>> Reader::run_of_key(std::string_view key) {
  Rows row = key_(Text{key});
  if (row.next()) return row.number(0);
  if (row.failed()) return failure();
  return std::nullopt;
}

Result<std::optional<std::string>> Reader::read_payload(std::string_view hash) {
  Rows row = payload_(Blob{hash});
  if (row.next()) return std::string{row.bytes(0)};
  if (row.failed()) return failure();
  return std::nullopt;
}

Result<std::vector<StoredPlan>> Reader::read_plans() {
  std::vector<StoredPlan> plans;
  Rows rows = plans_();
  while (rows.next()) {
    plans.push_back(
        {static_cast<std::uint32_t>(rows.integer(0)), std::string{rows.bytes(1)}, std::string{rows.bytes(2)}});
  }
  if (rows.failed()) return failure();
  return plans;
}

Result<ReaderPool::Lease> ReaderPool::take() {
  {
    const std::scoped_lock lock{mutex_};
    if (!waiting_.empty()) {
      Lease lease{*this, std::move(waiting_.back())};
      waiting_.pop_back();
      return lease;
    }
  }
  auto reader = Reader::open(path_, vfs_);
  if (file_id_at(path_) != file_) return std::unexpected{gone(path_)};
  if (!reader) return std::unexpected{reader.error()};
  return Lease{*this, std::move(*reader)};
}

void ReaderPool::give_back(std::unique_ptr<Reader> reader) {
  const std::scoped_lock lock{mutex_};
  if (waiting_.size() < readers_kept) waiting_.push_back(std::move(reader));
}

void ReaderPool::close() {
  const std::scoped_lock lock{mutex_};
  waiting_.clear();
}

}  // namespace reprise::store::sqlite
