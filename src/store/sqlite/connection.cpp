#include "store/sqlite/connection.hpp"

#include <cerrno>
#include <system_error>

namespace reprise::store::sqlite {
namespace {

constexpr int busy_timeout_ms = 5000;  // only a person's sqlite3 shell can be in the way

std::string sentence(const std::string& path, std::string_view doing, std::string_view why) {
  return "Cannot " + std::string{doing} + " " + path + ": " + std::string{why};
}

bool is_full(int number) { return number == ENOSPC || number == EDQUOT || number == EFBIG; }
bool is_refused(int number) { return number == EROFS || number == EACCES || number == EPERM; }

int flags_of(Access access) {
  const int shared = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (access) {
    case Access::read:
      return shared | SQLITE_OPEN_READONLY;
    case Access::write:
      return shared | SQLITE_OPEN_READWRITE;
    case Access::write_or_create:
      break;
  }
  return shared | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
}

}  // namespace

Error gone(const std::string& path) {
  return {ErrorCode::store_gone, "Cannot continue with " + path +
                                     ": it was removed, moved or replaced while this process worked with it. What "
                                     "happens now can no longer be recorded. Put it back, or name its new place with "
                                     "--store, and resume."};
}

Error error_from_errno(int number, const std::string& path, std::string_view doing) {
  if (is_full(number)) return {ErrorCode::store_full, sentence(path, doing, "no space left. Make room and try again.")};
  if (is_refused(number)) {
    return {ErrorCode::store_read_only,
            sentence(path, doing, "it may not be written. Give this user the right to write the file and its folder.")};
  }
  return {ErrorCode::store_unavailable, sentence(path, doing, std::generic_category().message(number) + ".")};
}

// SQLite lets go of the file here, before use_ ends.
Connection::~Connection() { sqlite3_close_v2(database_); }

Result<Connection> Connection::open(const std::string& path, Access access, const std::string& vfs) {
  Connection connection;
  connection.path_ = path;
  const int code =
      sqlite3_open_v2(path.c_str(), &connection.database_, flags_of(access), vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) return std::unexpected{connection.error("open")};
  connection.use_ = FileUse{file_id_at(path)};
  sqlite3_busy_timeout(connection.database_, busy_timeout_ms);
  return connection;
}

Error Connection::error(std::string_view doing) const {
  const int code = sqlite3_extended_errcode(database_);
  const int system = sqlite3_system_errno(database_);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return error_from_errno(ENOSPC, path_, doing);
    case SQLITE_READONLY:
      return error_from_errno(EROFS, path_, doing);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {ErrorCode::store_damaged,
              sentence(path_, doing,
                       std::string{"the file is damaged or not a store ("} + sqlite3_errmsg(database_) +
                           "). Move it away, or put a copy from a backup in its place.")};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::store_unavailable,
              sentence(path_, doing, "another program is writing to it. Close that program and try again.")};
    default:
      break;
  }
  if (code != SQLITE_OK && system != 0 && (is_full(system) || is_refused(system))) {
    return error_from_errno(system, path_, doing);
  }
  const std::string cause = system != 0 ? ", " + std::generic_category().message(system) : "";
  return {ErrorCode::store_unavailable, sentence(path_, doing, std::string{sqlite3_errmsg(database_)} + cause + ".")};
}

Result<void> Connection::execute(const std::string& sql, std::string_view doing) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return std::unexpected{error(doing)};
  return {};
}

Result<std::int64_t> Connection::integer(std::string_view sql, std::string_view doing) {
  Statement statement;
  if (!statement.prepare(database_, sql)) return std::unexpected{error(doing)};
  Rows rows = statement();
  const std::int64_t value = rows.next() ? rows.integer(0) : 0;
  if (rows.failed()) return std::unexpected{error(doing)};
  return value;
}

}  // namespace reprise::store::sqlite
