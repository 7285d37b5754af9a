// One connection to the file, and what SQLite's error codes mean to us.
//
// Thread safety: one thread at a time.
#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>
#include <utility>

#include "store/sqlite/open_files.hpp"
#include "store/sqlite/statement.hpp"
#include "store/store.hpp"

namespace reprise::store::sqlite {

enum class Access { read, write, write_or_create };

class Connection {
 public:
  Connection() = default;
  Connection(Connection&& other) noexcept
      : use_{std::move(other.use_)},
        database_{std::exchange(other.database_, nullptr)},
        path_{std::move(other.path_)} {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(use_, other.use_);
    std::swap(database_, other.database_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~Connection();

  static Result<Connection> open(const std::string& path, Access access, const std::string& vfs);

  // The last error as a sentence: PATH could not be `doing`, because. Call it before anything else runs on this connection.
  Error error(std::string_view doing) const;

  Result<void> execute(const std::string& sql, std::string_view doing);
  Result<std::int64_t> integer(std::string_view sql,
                               std::string_view doing);  // first column of the first row; 0 if none

  sqlite3* get() const noexcept { return database_; }
  const std::string& path() const noexcept { return path_; }

 private:
  FileUse use_;  // ends after the connection has
  sqlite3* database_ = nullptr;
  std::string path_;
};

// The store is not where it was: removed, moved or replaced while this process had it.
Error gone(const std::string& path);

Error error_from_errno(int number, const std::string& path, std::string_view doing);

}  // namespace reprise::store::sqlite
