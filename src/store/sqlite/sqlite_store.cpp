#include "store/sqlite/sqlite_store.hpp"

#include <atomic>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <reprise/env.hpp>

#include "base/private_file.hpp"
#include "store/real_path.hpp"
#include "store/sqlite/due_window.hpp"
#include "store/sqlite/file_system.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/writer.hpp"

namespace reprise::store {
namespace {

using sqlite::Access;
using sqlite::DueWindow;
using sqlite::FileId;
using sqlite::OwnerLock;
using sqlite::Reader;
using sqlite::ReaderPool;
using sqlite::Writer;
using sqlite::WriterSettings;

class SqliteStore final : public Store {
 public:
  SqliteStore(WriterSettings settings, OwnerLock lock, Writer writer, std::uint64_t secret)
      : settings_{std::move(settings)},
        lock_{std::move(lock)},
        secret_{secret},
        slot_{writer.slot()},
        known_commit_{writer.counters().last_commit},
        writer_{std::move(writer)},
        readers_{settings_.path, settings_.vfs, lock_.file()} {
    log_ = sqlite::file_id_at(log_path_);
    first_reader_.reader.emplace(writer_->connection());
  }
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;
  ~SqliteStore() override {
    if (writer_ && !is_in_its_place()) writer_->leave_files_alone();
  }

  Result<void> append(const Commit& commit) override;
  Result<void> reopen() override;

  Result<std::uint64_t> last_commit() override {
    return with_reader([](Reader& from) { return from.last_commit(); });
  }
  std::uint64_t secret() override { return secret_; }
  bool owner_before_died() const override { return lock_.was_left_behind(); }
  std::uint32_t slot() override { return slot_; }
  Result<std::uint64_t> last_run() override { return meta("last_run"); }
  Result<std::uint64_t> count_open() override { return meta("open_runs"); }

  Result<void> read_journal(const FrameReader& reader) override {
    return with_reader([&](Reader& from) { return from.read_journal(reader); });
  }
  Result<std::optional<StoredRun>> read_run(std::uint64_t run) override {
    return with_reader([&](Reader& from) { return from.read_run(run); });
  }
  Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override {
    return with_reader([&](Reader& from) { return from.read_history(run, reader); });
  }
  Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) override {
    return with_reader([&](Reader& from) { return from.read_open(after_run, limit); });
  }
  Result<std::vector<StoredRun>> read_due(Time before, DueCursor after, std::size_t limit) override {
    return with_reader([&](Reader& from) { return from.read_due(window_, before, after, limit); });
  }
  Result<std::optional<Time>> next_due(DueCursor after) override {
    return with_reader([&](Reader& from) { return from.next_due(window_, after); });
  }
  Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) override {
    return with_reader([&](Reader& from) { return from.find(filter, below_run, limit); });
  }
  Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) override {
    return with_reader([&](Reader& from) { return from.expired(ended_before, keep, limit); });
  }
  Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override {
    return with_reader([&](Reader& from) { return from.run_of_key(key); });
  }
  Result<std::optional<std::string>> read_payload(std::string_view hash) override {
    return with_reader([&](Reader& from) { return from.read_payload(hash); });
  }
  Result<std::vector<StoredPlan>> read_plans() override {
    return with_reader([](Reader& from) { return from.read_plans(); });
  }

 private:
  enum class State : unsigned char { open, closed, gone };  // closed: reopen() has failed

  Error unusable() const {
    if (state_ == State::gone) return sqlite::gone(settings_.path);
    return {ErrorCode::store_unavailable, "Cannot use " + settings_.path + ": it failed before. Open it again."};
  }
  // The path still leads to the file and the log that are written. Asked after each commit: less than a microsecond beside its sync.
  bool is_in_its_place() const { return lock_.is_at_its_path() && (!log_ || sqlite::file_id_at(log_path_) == log_); }
  // For good: what the lock is on is not what a reader, or the next owner, would find.
  std::unexpected<Error> give_up() {
    state_ = State::gone;
    failed_ = true;
    if (writer_) writer_->leave_files_alone();
    return std::unexpected{unusable()};
  }

  // Reads that are in progress. reopen() closes the door first and then waits for them: of the two, one always sees the other.
  struct Reading {
    std::atomic<std::uint32_t>& count;

    explicit Reading(std::atomic<std::uint32_t>& reading) : count{reading} { ++count; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    ~Reading() {
      if (--count == 0) count.notify_all();
    }
  };
  void await_readers() {
    for (std::uint32_t left = reading_; left > 0; left = reading_) reading_.wait(left);
  }

  template <class Read>
  std::invoke_result_t<Read, Reader&> with_reader(const Read& read) {
    const Reading reading{reading_};
    if (state_ != State::open) return std::unexpected{unusable()};
    if (!first_reader_.taken.test_and_set(std::memory_order_acquire)) {
      const FirstReader::GiveBack give_back{first_reader_};
      return read(*first_reader_.reader);
    }
    auto reader = readers_.take();
    if (!reader) return std::unexpected{reader.error()};
    return read(*reader->operator->());
  }
  Result<std::uint64_t> meta(std::string_view name) {
    return with_reader([&](Reader& from) { return from.meta(name); });
  }

  // Over the writer's connection until something is written: what is read when a store is opened needs no second one then.
  struct FirstReader {
    std::atomic_flag taken;
    std::optional<Reader> reader;

    struct GiveBack {
      FirstReader& from;
      ~GiveBack() {
        from.taken.clear(std::memory_order_release);
        from.taken.notify_one();
      }
    };
    void end() {  // for good
      while (taken.test_and_set(std::memory_order_acquire)) taken.wait(true, std::memory_order_relaxed);
      reader.reset();
    }
  };
  void begin_to_write() {
    if (first_reader_.reader) first_reader_.end();
  }

  WriterSettings settings_;
  OwnerLock lock_;
  std::uint64_t secret_;
  std::uint32_t slot_;
  std::uint64_t known_commit_;  // the last one whose append() succeeded
  bool failed_ = false;         // an append did, and nobody knows how far it came
  std::atomic<State> state_ = State::open;
  std::atomic<std::uint32_t> reading_ = 0;
  std::string log_path_ = settings_.path + "-wal";
  std::optional<FileId> log_;  // std::nullopt: on no disk
  std::optional<Writer> writer_;
  FirstReader first_reader_;
  ReaderPool readers_;  // after the writer, so that they close first: only its connection may checkpoint
  DueWindow window_;
};

Result<void> SqliteStore::append(const Commit& commit) {
  if (failed_ || !writer_) return std::unexpected{unusable()};
  begin_to_write();
  auto appended = writer_->append(commit, window_);
  if (appended) {
    if (!is_in_its_place()) return give_up();
    known_commit_ = commit.id;
  } else if (appended.error().code != ErrorCode::invalid) {
    failed_ = true;
  }
  return appended;
}

// Keeps the owner's lock, so that nobody can come between.
Result<void> SqliteStore::reopen() {
  if (state_ == State::gone || !is_in_its_place()) return give_up();
  state_ = State::closed;
  await_readers();
  begin_to_write();
  log_.reset();  // it goes and comes with the writer
  readers_.close();
  writer_.reset();
  window_.forget();
  auto writer = Writer::open(settings_, Access::write);
  if (!writer) return std::unexpected{writer.error()};
  if (writer->secret() != secret_ || writer->counters().last_commit < known_commit_) {
    return std::unexpected{Error{ErrorCode::store_damaged,
                                 "Cannot open " + settings_.path +
                                     " again: it is not the same any more, commits are missing. Stop, and start with "
                                     "the file you want to go on with."}};
  }
  known_commit_ = writer->counters().last_commit;
  writer_ = std::move(*writer);
  log_ = sqlite::file_id_at(log_path_);
  if (!lock_.is_at_its_path()) return give_up();
  failed_ = false;
  state_ = State::open;
  return {};
}

// SQLite would make the file with the rights that the umask leaves; -wal and -shm take theirs from it.
Result<void> make_file(const std::string& path) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  if (auto made = base::make_private_folder(folder); !made)
    return std::unexpected{sqlite::error_from_errno(made.error().value(), folder, "make the folder")};
  if (auto checked = sqlite::check_file_system(path); !checked) return checked;
  if (auto made = base::make_private_file(path); !made)
    return std::unexpected{sqlite::error_from_errno(made.error().value(), path, "open")};
  return {};
}

// A new store has none yet; 0 stands for that.
Result<std::uint64_t> secret_of(Writer& writer, const SqliteSettings& settings) {
  if (writer.secret() != 0) return writer.secret();
  std::uint64_t drawn = settings.secret ? *settings.secret : system_env().random_seed();
  if (drawn == 0) drawn = 1;
  if (auto set = writer.set_identity(drawn, settings.slot); !set) return std::unexpected{set.error()};
  return drawn;
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(std::string_view path, const SqliteSettings& settings) {
  const std::string full_path = real_path(path);
  const WriterSettings writer_settings{
      .path = full_path,
      .vfs = settings.vfs,
      .checkpoint_pages = settings.checkpoint_pages,
      .steps = settings.schema_steps.empty() ? sqlite::schema_steps() : settings.schema_steps};
  if (auto made = make_file(full_path); !made) return std::unexpected{made.error()};
  auto lock = OwnerLock::take(full_path);
  if (!lock) return std::unexpected{lock.error()};
  auto writer = Writer::open(writer_settings, Access::write_or_create);
  if (!writer) return std::unexpected{writer.error()};
  const auto secret = secret_of(*writer, settings);
  if (!secret) return std::unexpected{secret.error()};
  return std::make_unique<SqliteStore>(writer_settings, std::move(*lock), std::move(*writer), *secret);
}

}  // namespace reprise::store
