#include "store/sqlite/schema.hpp"

#include <string>

namespace reprise::store::sqlite {
namespace {

// `state` stands before `events`, so that loading a run does not touch the pages its events overflow to.
// Runs that ended well are in no index, and parked ones neither: due_lists and ended_lists hold them (run_list.hpp says why).
constexpr const char* version_1 = R"(
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('version', 0), ('secret', 0), ('openings', 0), ('last_commit', 0), ('last_run', 0),
                        ('cut', 0), ('open_runs', 0), ('parked_runs', 0), ('ended_runs', 0);
CREATE TABLE frames (commit_id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE runs (
  run INTEGER PRIMARY KEY, status INTEGER NOT NULL, plan INTEGER NOT NULL, created INTEGER NOT NULL,
  ended INTEGER NOT NULL, due INTEGER NOT NULL, commit_id INTEGER NOT NULL, key TEXT, state BLOB NOT NULL,
  first_sequence INTEGER NOT NULL, events BLOB NOT NULL);
CREATE INDEX runs_open ON runs (run) WHERE ended = 0 AND due = 0;
CREATE INDEX runs_by_status ON runs (status) WHERE status <> 0 AND status <> 2;
CREATE TABLE history (
  run INTEGER, first_sequence INTEGER, events BLOB NOT NULL, PRIMARY KEY (run, first_sequence)) WITHOUT ROWID;
CREATE TABLE keys (key TEXT PRIMARY KEY, run INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE payloads (hash BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE payload_refs (run INTEGER, hash BLOB, PRIMARY KEY (run, hash)) WITHOUT ROWID;
CREATE INDEX payload_refs_by_hash ON payload_refs (hash);
CREATE TABLE plans (number INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE due_lists (slot INTEGER PRIMARY KEY, runs BLOB NOT NULL);
CREATE TABLE ended_lists (slot INTEGER PRIMARY KEY, commit_id INTEGER NOT NULL, runs BLOB NOT NULL);
)";

Result<void> make_version_1(Connection& connection) {
  return connection.execute("PRAGMA application_id = " + std::to_string(application_id) + ";" + version_1, "set up");
}

// The same tables; events in them may hold what a program of version 1 would read wrongly, so it must not open the file any more.
Result<void> make_version_2(Connection&) { return {}; }

constexpr SchemaStep steps_of_this_version[] = {make_version_1, make_version_2};

Error refusal(ErrorCode code, const Connection& connection, std::string_view why) {
  return {code, "Cannot open " + connection.path() + ": " + std::string{why}};
}

Result<void> run_step(Connection& connection, SchemaStep step, std::int64_t version) {
  if (auto begun = connection.execute("BEGIN IMMEDIATE", "set up"); !begun) return begun;
  auto done = step(connection);
  if (done)
    done =
        connection.execute("UPDATE meta SET value = " + std::to_string(version) + " WHERE key = 'version'", "set up");
  if (done) done = connection.execute("COMMIT", "set up");
  if (!done) sqlite3_exec(connection.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  return done;
}

}  // namespace

std::span<const SchemaStep> schema_steps() { return steps_of_this_version; }

Result<std::int64_t> schema_version(Connection& connection, std::int64_t known) {
  // Tables first: another process may be making both at this moment, in one commit, and then the id is there when the tables are.
  const auto tables = connection.integer("SELECT count(*) FROM sqlite_schema", "open");
  if (!tables) return tables;
  const auto id = connection.integer("PRAGMA application_id", "open");
  if (!id) return id;
  if (*tables == 0 && *id == 0) return 0;
  if (*id != application_id) {
    return std::unexpected{refusal(ErrorCode::store_damaged, connection,
                                   "it is a database of another program. Choose another path for the store.")};
  }
  const auto version = connection.integer("SELECT value FROM meta WHERE key = 'version'", "open");
  if (!version) return version;
  if (*version > known) {
    return std::unexpected{refusal(ErrorCode::store_newer, connection,
                                   "its format is version " + std::to_string(*version) +
                                       ", and this program knows up to " + std::to_string(known) +
                                       ". Use the newer program that wrote it.")};
  }
  if (*version < 1) {
    return std::unexpected{refusal(ErrorCode::store_damaged, connection,
                                   "it does not say its version. Put a copy from a backup in its place.")};
  }
  return version;
}

Result<void> migrate(Connection& connection, std::int64_t version, std::span<const SchemaStep> steps) {
  for (auto next = static_cast<std::size_t>(version); next < steps.size(); ++next) {
    if (auto done = run_step(connection, steps[next], static_cast<std::int64_t>(next) + 1); !done) return done;
  }
  return {};
}

}  // namespace reprise::store::sqlite
