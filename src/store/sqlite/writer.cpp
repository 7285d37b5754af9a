#include "store/sqlite/writer.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "store/commit_check.hpp"

namespace reprise::store::sqlite {
namespace {

// Measured on 2 cores with 500 images and with 1,024-step frames in a commit; docs/formats/store.md has the figures.
constexpr const char* page_bytes = "4096";
constexpr const char* cache_kib = "65536";
constexpr const char* wal_bytes_kept = "67108864";  // a WAL that grew behind a slow reader is cut back to this

constexpr std::uint64_t frames_cut_at_once = 64;  // so that no commit pays for a long journal alone
constexpr std::size_t entries_cleared_at_once = 64;

// Debian's SQLite overwrites what is deleted with zeros unless told not to: that would double the writing.
std::string settings_sql() {
  return std::string{"PRAGMA page_size = "} + page_bytes +
         ";"
         "PRAGMA journal_mode = WAL;"
         "PRAGMA synchronous = FULL;"
         "PRAGMA secure_delete = OFF;"
         "PRAGMA temp_store = MEMORY;"
         "PRAGMA trusted_schema = OFF;"
         "PRAGMA cell_size_check = ON;"
         "PRAGMA cache_size = -" +
         cache_kib + "; PRAGMA journal_size_limit = " + wal_bytes_kept;
}

bool is_log_empty(sqlite3* database) {
  sqlite3_file* log = nullptr;
  sqlite3_int64 bytes = 0;
  return sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log != nullptr &&
         log->pMethods != nullptr && log->pMethods->xFileSize(log, &bytes) == SQLITE_OK && bytes == 0;
}

// So that a file that only can be read, or a disk that still is full, is noticed when the store is opened. An empty log needs no sync for
// this: whatever a power cut leaves of it is nothing, or this. One that was in use does, because it may be begun anew here.
Result<void> try_to_write(Connection& connection) {
  const std::string write = "UPDATE meta SET value = value + 1 WHERE key = 'openings'";
  if (!is_log_empty(connection.get())) return connection.execute(write, "write to");
  auto written = connection.execute("PRAGMA synchronous = OFF; " + write, "write to");
  auto restored = connection.execute("PRAGMA synchronous = FULL", "set up");
  return written ? restored : written;
}

}  // namespace

Result<Writer> Writer::open(const WriterSettings& settings, Access access) {
  auto connection = Connection::open(settings.path, access, settings.vfs);
  if (!connection) return std::unexpected{connection.error()};
  Writer writer;
  writer.connection_ = std::move(*connection);
  Connection& opened = writer.connection_;
  if (sqlite3_db_readonly(opened.get(), "main") != 0) {
    return std::unexpected{error_from_errno(EROFS, settings.path, "open")};
  }
  // Before anything is written: a file that is not ours, or of a newer version, must stay as it is, also when it is closed.
  sqlite3_db_config(opened.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const auto version = schema_version(opened, static_cast<std::int64_t>(settings.steps.size()));
  if (!version) return std::unexpected{version.error()};
  if (auto set = opened.execute(settings_sql(), "set up"); !set) return std::unexpected{set.error()};
  sqlite3_db_config(opened.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  if (auto migrated = migrate(opened, *version, settings.steps); !migrated) return std::unexpected{migrated.error()};
  // A log that has used up the disk makes room so, if the file has it; what hinders it is told by the write that follows.
  sqlite3_wal_checkpoint_v2(opened.get(), "main", SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (auto written = try_to_write(opened); !written) return std::unexpected{written.error()};
  writer.ground_ = std::make_unique<WalPreallocation>(opened.get(), settings.checkpoint_pages);
  if (auto loaded = writer.load(); !loaded) return std::unexpected{loaded.error()};
  writer.prepare();
  return writer;
}

void Writer::leave_files_alone() { sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

Result<void> Writer::load() {
  const std::pair<std::string_view, std::uint64_t*> fields[] = {{"last_commit", &saved_.last_commit},
                                                                {"last_run", &saved_.last_run},
                                                                {"cut", &saved_.cut},
                                                                {"open_runs", &saved_.open_runs},
                                                                {"parked_runs", &saved_.parked_runs},
                                                                {"ended_runs", &saved_.ended_runs},
                                                                {"secret", &secret_},
                                                                {"slot", &slot_}};
  Statement select;
  select.prepare_when_used(connection_.get(), "SELECT key, value FROM meta");
  Rows rows = select();
  while (rows.next()) {
    const auto field = std::ranges::find(fields, rows.bytes(0), &std::pair<std::string_view, std::uint64_t*>::first);
    if (field != std::end(fields)) *field->second = rows.number(1);
  }
  if (rows.failed()) return std::unexpected{connection_.error("open")};
  const auto first = connection_.integer("SELECT min(commit_id) FROM frames", "open");
  if (!first) return std::unexpected{first.error()};
  first_frame_ = static_cast<std::uint64_t>(*first);
  const auto last = connection_.integer("SELECT max(commit_id) FROM frames", "open");
  if (!last) return std::unexpected{last.error()};
  saved_.last_commit = std::max(saved_.last_commit, static_cast<std::uint64_t>(*last));
  return {};
}

void Writer::prepare() {
  const std::pair<Statement*, const char*> statements[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&set_meta_, "UPDATE meta SET value = ?2 WHERE key = ?1"},
      {&insert_frame_, "INSERT INTO frames VALUES (?, ?)"},
      {&delete_frames_, "DELETE FROM frames WHERE commit_id <= ?"},
      {&insert_run_, "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&run_before_, "SELECT ended, due, commit_id, key FROM runs WHERE run = ?"},
      {&update_run_,
       "UPDATE runs SET status = ?2, plan = ?3, created = ?4, ended = ?5, due = ?6, commit_id = ?7, key = ?8, "
       "state = ?9 WHERE run = ?1"},
      {&insert_history_, "INSERT INTO history VALUES (?, ?, ?)"},
      {&delete_run_, "DELETE FROM runs WHERE run = ?"},
      {&delete_history_, "DELETE FROM history WHERE run = ?"},
      {&insert_key_, "INSERT OR REPLACE INTO keys VALUES (?, ?)"},
      {&delete_key_, "DELETE FROM keys WHERE key = ? AND run = ?"},
      {&insert_payload_, "INSERT OR IGNORE INTO payloads VALUES (?, ?)"},
      {&insert_payload_ref_, "INSERT OR IGNORE INTO payload_refs VALUES (?, ?)"},
      {&delete_payloads_,
       "DELETE FROM payloads WHERE hash IN (SELECT hash FROM payload_refs WHERE run = ?1) AND NOT EXISTS "
       "(SELECT 1 FROM payload_refs AS other WHERE other.hash = payloads.hash AND other.run <> ?1)"},
      {&delete_payload_refs_, "DELETE FROM payload_refs WHERE run = ?"},
      {&insert_plan_, "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)"},
      {&last_due_slot_, "SELECT max(slot) FROM due_lists WHERE slot BETWEEN ? AND ?"},
      {&insert_due_list_, "INSERT INTO due_lists VALUES (?, ?)"},
      {&first_due_list_, "SELECT slot, 0, runs FROM due_lists ORDER BY slot LIMIT 1"},
      {&delete_due_list_, "DELETE FROM due_lists WHERE slot = ?"},
      {&insert_ended_list_, "INSERT INTO ended_lists VALUES (NULL, ?, ?)"},
      {&first_ended_list_, "SELECT slot, commit_id, runs FROM ended_lists ORDER BY slot LIMIT 1"},
      {&delete_ended_list_, "DELETE FROM ended_lists WHERE slot = ?"},
  };
  for (const auto& [statement, sql] : statements) statement->prepare_when_used(connection_.get(), sql);
}

// The secret last: a store that has one is complete. Slot 0 is not written, so that such a file is what it always was.
Result<void> Writer::set_identity(std::uint64_t secret, std::uint32_t slot) {
  if (slot != 0) {
    auto set =
        connection_.execute("INSERT OR REPLACE INTO meta VALUES ('slot', " + std::to_string(slot) + ")", "set up");
    if (!set) return set;
  }
  if (!set_meta_.run(Text{"secret"}, secret)) return std::unexpected{connection_.error("set up")};
  secret_ = secret;
  slot_ = slot;
  return {};
}

// A run that goes from one due time to another must be seen at one of them by every reader: so none reads in between.
bool Writer::finish(DueWindow& window) {
  if (parked_.empty()) return commit_.run();
  const std::scoped_lock lock{window.mutex()};
  if (!commit_.run()) return false;
  window.add(parked_);
  return true;
}

Result<void> Writer::append(const Commit& commit, DueWindow& window) {
  if (auto checked = check(commit, saved_.last_commit); !checked) return checked;
  ground_->prepare();
  if (!begin_.run()) return std::unexpected{connection_.error("write to")};
  if (write(commit) && finish(window)) {
    saved_ = current_;
    first_frame_ = next_first_frame_;
    return {};
  }
  Error error = connection_.error("write to");
  if ((sqlite3_extended_errcode(connection_.get()) & 0xff) == SQLITE_CONSTRAINT) {
    error = {ErrorCode::invalid, "Commit " + std::to_string(commit.id) +
                                     " is wrong: an image brings events that the run's history has already."};
  }
  if (sqlite3_get_autocommit(connection_.get()) == 0)
    (void)rollback_.run();  // SQLite has done it itself after some errors
  due_front_ = {};
  ended_front_ = {};
  return std::unexpected{std::move(error)};
}

bool Writer::write(const Commit& commit) {
  current_ = saved_;
  next_first_frame_ = first_frame_;
  current_.last_commit = commit.id;
  parked_.clear();
  ended_.clear();
  moved_on_ = 0;
  if (!write_parts(commit)) return false;
  for (const Image& image : commit.images) {
    if (!write_image(commit, image)) return false;
  }
  for (const std::uint64_t run : commit.removals) {
    if (!remove_run(run)) return false;
  }
  return write_due_lists() && write_ended_list(commit.id) && cut_journal(commit.cut) &&
         (moved_on_ == 0 || clear_due_lists(2 * moved_on_ + entries_cleared_at_once)) &&
         (commit.removals.empty() || clear_ended_lists(2 * commit.removals.size() + entries_cleared_at_once)) &&
         write_counters(commit.frame.size > 0);
}

bool Writer::write_parts(const Commit& commit) {
  if (commit.frame.size > 0) {
    if (!insert_frame_.run(commit.id, Blob{commit.at(commit.frame)})) return false;
    if (next_first_frame_ == 0) next_first_frame_ = commit.id;
  }
  for (const NewPlan& plan : commit.plans) {
    if (!insert_plan_.run(plan.number, Blob{commit.at(plan.name)}, Blob{commit.at(plan.body)})) return false;
  }
  for (const NewPayload& payload : commit.payloads) {
    if (!insert_payload_.run(Blob{commit.at(payload.hash)}, Blob{commit.at(payload.body)})) return false;
    if (!insert_payload_ref_.run(payload.run, Blob{commit.at(payload.hash)})) return false;
  }
  return std::ranges::all_of(commit.keys,
                             [&](const NewKey& key) { return insert_key_.run(Text{commit.at(key.key)}, key.run); });
}

bool Writer::write_image(const Commit& commit, const Image& image) {
  if (!insert_run_.run(image.run, static_cast<int>(image.status), image.plan, image.created, image.ended, image.due,
                       commit.id, Text{commit.at(image.key)}, Blob{commit.at(image.state)}, image.first_sequence,
                       Blob{commit.at(image.events)})) {
    return false;
  }
  if (sqlite3_changes64(connection_.get()) == 0 && !update_run(commit, image)) return false;
  current_.last_run = std::max(current_.last_run, image.run);
  if (image.ended == 0) ++current_.open_runs;
  if (image.ended > 0) {
    ++current_.ended_runs;
    ended_.push_back({0, image.run});
  }
  if (image.due > 0) {
    ++current_.parked_runs;
    parked_.push_back({image.due, image.run});
  }
  return true;
}

// The row is there already: its events stay where they are, and the new ones become a chunk of the history.
bool Writer::update_run(const Commit& commit, const Image& image) {
  {
    Rows before = run_before_(image.run);
    if (!before.next()) return false;
    --(before.integer(0) > 0 ? current_.ended_runs : current_.open_runs);
    if (before.integer(1) > 0) {
      --current_.parked_runs;
      ++moved_on_;
    }
  }
  if (!update_run_.run(image.run, static_cast<int>(image.status), image.plan, image.created, image.ended, image.due,
                       commit.id, Text{commit.at(image.key)}, Blob{commit.at(image.state)})) {
    return false;
  }
  return image.events.size == 0 || insert_history_.run(image.run, image.first_sequence, Blob{commit.at(image.events)});
}

bool Writer::write_due_lists() {
  std::ranges::sort(parked_);
  for (auto from = parked_.begin(); from != parked_.end();) {
    const Time span_start = from->due & ~due_span_mask;
    const Time span_last = from->due | due_span_mask;
    const auto span_end = std::find_if(from, parked_.end(), [&](DueCursor entry) { return entry.due > span_last; });
    Time slot = span_start;
    {
      Rows last = last_due_slot_(span_start, span_last);
      if (!last.next()) return false;
      if (!last.is_null(0)) slot = last.integer(0) + 1;
    }
    for (; from != span_end; ++slot) {
      const auto count = std::min<std::ptrdiff_t>(span_end - from, run_list_entries_max);
      list_bytes_.clear();
      append_run_list({from, from + count}, list_bytes_);
      if (!insert_due_list_.run(slot, Blob{list_bytes_})) return false;
      from += count;
    }
  }
  return true;
}

bool Writer::write_ended_list(std::uint64_t commit) {
  std::ranges::sort(ended_);
  ended_.erase(std::unique(ended_.begin(), ended_.end()), ended_.end());
  for (auto from = ended_.begin(); from != ended_.end();) {
    const auto count = std::min<std::ptrdiff_t>(ended_.end() - from, run_list_entries_max);
    list_bytes_.clear();
    append_run_list({from, from + count}, list_bytes_);
    if (!insert_ended_list_.run(commit, Blob{list_bytes_})) return false;
    from += count;
  }
  return true;
}

bool Writer::remove_run(std::uint64_t run) {
  {
    Rows row = run_before_(run);
    if (row.next()) {
      --(row.integer(0) > 0 ? current_.ended_runs : current_.open_runs);
      if (row.integer(1) > 0) {
        --current_.parked_runs;
        ++moved_on_;
      }
      key_ = row.bytes(3);
    } else {
      key_.clear();
    }
    if (row.failed()) return false;
  }
  return delete_run_.run(run) && delete_history_.run(run) && (key_.empty() || delete_key_.run(Text{key_}, run)) &&
         delete_payloads_.run(run) && delete_payload_refs_.run(run);
}

// Commits without a frame leave no row, so a range of numbers is at least as wide as the frames in it.
bool Writer::cut_journal(std::uint64_t cut) {
  current_.cut = std::max(current_.cut, cut);
  if (next_first_frame_ == 0 || next_first_frame_ > current_.cut) return true;
  const std::uint64_t last = std::min(current_.cut, next_first_frame_ + frames_cut_at_once - 1);
  next_first_frame_ = last + 1;
  return delete_frames_.run(last);
}

// A commit with a frame is found by it. Writing its number to another page too would make a small commit a third slower, so that is
// only done when there is no frame or the page is written anyway.
bool Writer::write_counters(bool has_frame) {
  Counters beside = current_;
  beside.last_commit = saved_.last_commit;
  if (has_frame && beside == saved_) return true;
  const auto write_one = [&](std::string_view name, std::uint64_t Counters::*counter) {
    return current_.*counter == saved_.*counter || set_meta_.run(Text{name}, current_.*counter);
  };
  return write_one("last_commit", &Counters::last_commit) && write_one("last_run", &Counters::last_run) &&
         write_one("cut", &Counters::cut) && write_one("open_runs", &Counters::open_runs) &&
         write_one("parked_runs", &Counters::parked_runs) && write_one("ended_runs", &Counters::ended_runs);
}

// Deletes lists from the front as long as none of their entries holds, and looks at no more than `entries` of them.
template <class Holds>
bool Writer::clear_lists(Statement& first, Statement& erase, Front& front, std::size_t entries, const Holds& holds) {
  while (entries > 0) {
    std::int64_t commit = 0;
    {
      Rows row = first();
      if (!row.next()) return !row.failed();
      if (row.integer(0) != front.slot) front = {row.integer(0), 0};
      commit = row.integer(1);
      list_.clear();
      read_run_list(row.bytes(2), list_);
    }
    for (; front.entry < list_.size() && entries > 0; ++front.entry, --entries) {
      Rows run = run_before_(list_[front.entry].run);
      if (run.next() && holds(list_[front.entry], run, commit)) return true;
      if (run.failed()) return false;
    }
    if (front.entry < list_.size()) return true;
    if (!erase.run(front.slot)) return false;
    front = {};  // a later list may get the same slot
  }
  return true;
}

bool Writer::clear_due_lists(std::size_t entries) {
  return clear_lists(first_due_list_, delete_due_list_, due_front_, entries,
                     [](DueCursor entry, const Rows& run, std::int64_t) { return run.integer(1) == entry.due; });
}

bool Writer::clear_ended_lists(std::size_t entries) {
  return clear_lists(
      first_ended_list_, delete_ended_list_, ended_front_, entries,
      [](DueCursor, const Rows& run, std::int64_t commit) { return run.integer(0) > 0 && run.integer(2) == commit; });
}

}  // namespace reprise::store::sqlite
