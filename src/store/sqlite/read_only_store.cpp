#include "store/sqlite/read_only_store.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "store/real_path.hpp"
#include "store/sqlite/due_window.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/schema.hpp"

namespace reprise::store {
namespace {

using sqlite::Access;
using sqlite::Connection;
using sqlite::DueWindow;
using sqlite::Reader;

class ReadOnlyStore final : public StoreView {
 public:
  ReadOnlyStore(std::string path, std::unique_ptr<Reader> reader, std::uint64_t secret, std::uint32_t slot)
      : path_{std::move(path)}, reader_{std::move(reader)}, secret_{secret}, slot_{slot} {}

  void let_go() override { reader_->let_go(); }

  Result<void> append(const Commit&) override { return std::unexpected{read_only()}; }
  Result<void> reopen() override { return std::unexpected{read_only()}; }

  Result<std::uint64_t> last_commit() override { return reader_->last_commit(); }
  std::uint64_t secret() override { return secret_; }
  std::uint32_t slot() override { return slot_; }
  Result<std::uint64_t> last_run() override { return reader_->meta("last_run"); }
  Result<std::uint64_t> count_open() override { return reader_->meta("open_runs"); }
  Result<void> read_journal(const FrameReader& reader) override { return reader_->read_journal(reader); }
  Result<std::optional<StoredRun>> read_run(std::uint64_t run) override { return reader_->read_run(run); }
  Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override {
    return reader_->read_history(run, reader);
  }
  Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) override {
    return reader_->read_open(after_run, limit);
  }
  Result<std::vector<StoredRun>> read_due(Time before, DueCursor after, std::size_t limit) override {
    return reader_->read_due(window_, before, after, limit);
  }
  Result<std::optional<Time>> next_due(DueCursor after) override { return reader_->next_due(window_, after); }
  Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit) override {
    return reader_->find(filter, below_run, limit);
  }
  Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) override {
    return reader_->expired(ended_before, keep, limit);
  }
  Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override { return reader_->run_of_key(key); }
  Result<std::optional<std::string>> read_payload(std::string_view hash) override {
    return reader_->read_payload(hash);
  }
  Result<std::vector<StoredPlan>> read_plans() override { return reader_->read_plans(); }

 private:
  Error read_only() const {
    return {ErrorCode::store_read_only, "Cannot write to " + path_ + ": it was opened for looking only."};
  }

  std::string path_;
  std::unique_ptr<Reader> reader_;
  std::uint64_t secret_;
  std::uint32_t slot_;
  DueWindow window_;
};

std::unexpected<Error> refused(ErrorCode code, const std::string& path, std::string_view why) {
  return std::unexpected{Error{code, "Cannot look at " + path + ": " + std::string{why}}};
}

bool is_index_missing(const Connection& connection) {
  const int code = sqlite3_extended_errcode(connection.get()) & 0xff;
  return code == SQLITE_CANTOPEN || code == SQLITE_READONLY;
}

// An owner that was killed while it began leaves a WAL without an index, which only who may write can make. This writes nothing else.
void make_index(const std::string& path) {
  auto connection = Connection::open(path, Access::write, "");
  if (!connection) return;
  sqlite3_db_config(connection->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  std::ignore = sqlite::schema_version(*connection, static_cast<std::int64_t>(sqlite::schema_steps().size()));
}

// Readers share an index of the WAL with the owner, in PATH-shm. Where the folder does not let them make that file, SQLite can only
// say that it cannot open something.
std::unexpected<Error> explained(const Connection& connection, Error error) {
  if (!is_index_missing(connection)) return std::unexpected{std::move(error)};
  return refused(
      ErrorCode::store_read_only, connection.path(),
      "looking needs the file " + connection.path() +
          "-shm beside it, and it cannot be made or written there. Look as the user who owns the store, or copy it "
          "(with `sqlite3 PATH \".backup COPY\"`) to a folder that can be written.");
}

Result<void> check_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return refused(ErrorCode::not_found, path,
                   "there is no such file. Nothing has been run with this store yet, or --store names another one.");
  }
  if (error) return std::unexpected{sqlite::error_from_errno(error.value(), path, "look at")};
  if (status.type() == std::filesystem::file_type::directory)
    return refused(ErrorCode::invalid, path, "it is a folder. Name the file of the store.");
  if (status.type() != std::filesystem::file_type::regular)  // opening a pipe would wait for somebody who writes to it
    return refused(ErrorCode::store_unavailable, path, "it is not a file. Name the file of the store.");
  return {};
}

// Before a statement is prepared: the tables of a newer version may be others.
Result<void> check_version(const std::string& path) {
  auto connection = Connection::open(path, Access::read, "");
  if (!connection) return std::unexpected{connection.error()};
  sqlite3_db_config(connection->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const auto known = static_cast<std::int64_t>(sqlite::schema_steps().size());
  auto version = sqlite::schema_version(*connection, known);
  if (!version && is_index_missing(*connection)) {
    make_index(path);
    version = sqlite::schema_version(*connection, known);
  }
  if (!version) return explained(*connection, version.error());
  if (*version == 0) return refused(ErrorCode::not_found, path, "nothing has been stored in it yet.");
  return {};  // the tables of all versions so far are the same
}

}  // namespace

Result<std::unique_ptr<StoreView>> open_sqlite_store_read_only(std::string_view path) {
  const std::string full_path = real_path(path);
  if (auto checked = check_file(full_path); !checked) return std::unexpected{checked.error()};
  if (auto checked = check_version(full_path); !checked) return std::unexpected{checked.error()};
  auto reader = Reader::open(full_path, "");
  if (!reader) return std::unexpected{reader.error()};
  if (auto held = (*reader)->hold(); !held) return std::unexpected{held.error()};
  const auto secret = (*reader)->meta("secret");
  if (!secret) return std::unexpected{secret.error()};
  const auto slot = (*reader)->meta("slot", 0);
  if (!slot) return std::unexpected{slot.error()};
  return std::make_unique<ReadOnlyStore>(full_path, std::move(*reader), *secret, static_cast<std::uint32_t>(*slot));
}

}  // namespace reprise::store
