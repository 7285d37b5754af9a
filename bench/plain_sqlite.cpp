#include "plain_sqlite.hpp"

#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "timing.hpp"

namespace reprise::bench {
namespace {

void check(int code, sqlite3* db) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
  std::fprintf(stderr, "reprise-bench: sqlite: %s\n", sqlite3_errmsg(db));
  std::exit(1);
}

}  // namespace

PlainSqlite run_plain_sqlite(const std::string& folder, std::size_t row_bytes, std::size_t rows, double seconds) {
  using Clock = std::chrono::steady_clock;
  const std::string path = folder + "/plain.db";
  sqlite3* db = nullptr;
  check(sqlite3_open(path.c_str(), &db), db);
  check(
      sqlite3_exec(
          db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE steps(id INTEGER PRIMARY KEY, body BLOB)",
          nullptr, nullptr, nullptr),
      db);
  sqlite3_stmt* insert = nullptr;
  check(sqlite3_prepare_v2(db, "INSERT INTO steps(body) VALUES(?)", -1, &insert, nullptr), db);
  const std::string row(row_bytes, 'x');
  std::vector<double> commits;
  std::size_t count = 0;
  const auto start = Clock::now();
  auto before = start;
  while (std::chrono::duration<double>(before - start).count() < seconds) {
    check(sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), db);
    for (std::size_t index = 0; index < rows; ++index) {
      check(sqlite3_bind_blob(insert, 1, row.data(), static_cast<int>(row.size()), SQLITE_STATIC), db);
      check(sqlite3_step(insert), db);
      sqlite3_reset(insert);
    }
    check(sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr), db);
    const auto now = Clock::now();
    commits.push_back(std::chrono::duration<double>(now - before).count());
    before = now;
    count += rows;
  }
  const double elapsed = std::chrono::duration<double>(before - start).count();
  sqlite3_finalize(insert);
  sqlite3_close(db);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return {static_cast<double>(count) / elapsed, median(std::move(commits))};
}

}  // namespace reprise::bench
