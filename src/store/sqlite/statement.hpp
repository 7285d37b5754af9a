// A prepared statement that is kept, and its use: bind, step through the rows, reset when the use goes out of scope.
//
//   auto rows = select_run_(number);
//   while (rows.next()) read(rows.integer(0), rows.bytes(1));
//   if (rows.failed()) return connection.error("read a run");
//
// Bound bytes are not copied: they must outlive the use. Thread safety: as its connection, one thread at a time.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::store::sqlite {

struct Blob {
  std::string_view bytes;
};
struct Text {  // an empty one is NULL
  std::string_view bytes;
};

class Rows {
 public:
  explicit Rows(sqlite3_stmt* statement, int code) noexcept : statement_{statement}, code_{code} {}
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { sqlite3_reset(statement_); }

  bool next() noexcept {  // false: no more, or failed()
    if (code_ == SQLITE_OK || code_ == SQLITE_ROW) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  bool failed() const noexcept { return code_ != SQLITE_OK && code_ != SQLITE_ROW && code_ != SQLITE_DONE; }

  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::uint64_t number(int column) const noexcept { return static_cast<std::uint64_t>(integer(column)); }
  bool is_null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  // Valid until the next row.
  std::string_view bytes(int column) const noexcept {
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return data == nullptr ? std::string_view{}
                           : std::string_view{data, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  sqlite3_stmt* statement_;
  int code_;
};

class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept
      : statement_{std::exchange(other.statement_, nullptr)}, database_{other.database_}, sql_{other.sql_} {}
  Statement& operator=(Statement&& other) noexcept {
    std::swap(statement_, other.statement_);
    std::swap(database_, other.database_);
    std::swap(sql_, other.sql_);
    return *this;
  }
  ~Statement() { sqlite3_finalize(statement_); }

  // `sql` must outlive this.
  bool prepare(sqlite3* database, std::string_view sql) {
    prepare_when_used(database, sql);
    return compile() == SQLITE_OK;
  }
  // For those of many that may never be used: its mistakes are those of its first use.
  void prepare_when_used(sqlite3* database, std::string_view sql) {
    sqlite3_finalize(std::exchange(statement_, nullptr));
    database_ = database;
    sql_ = sql;
  }

  template <class... Values>
  [[nodiscard]] Rows operator()(const Values&... values) {
    int index = 0;
    int code = statement_ == nullptr ? compile() : SQLITE_OK;
    ((code = code == SQLITE_OK ? bind(++index, values) : code), ...);
    return Rows{statement_, code};
  }

  // For statements that return nothing: true when it worked.
  template <class... Values>
  [[nodiscard]] bool run(const Values&... values) {
    Rows rows = (*this)(values...);
    rows.next();
    return !rows.failed();
  }

 private:
  int compile() {
    return sqlite3_prepare_v3(database_, sql_.data(), static_cast<int>(sql_.size()), SQLITE_PREPARE_PERSISTENT,
                              &statement_, nullptr);
  }
  template <std::integral Integer>
  int bind(int index, Integer value) {
    return sqlite3_bind_int64(statement_, index, static_cast<sqlite3_int64>(value));
  }
  int bind(int index, Blob blob) {
    if (blob.bytes.empty()) return sqlite3_bind_zeroblob(statement_, index, 0);
    return sqlite3_bind_blob64(statement_, index, blob.bytes.data(), blob.bytes.size(), SQLITE_STATIC);
  }
  int bind(int index, Text text) {
    if (text.bytes.empty()) return sqlite3_bind_null(statement_, index);
    return sqlite3_bind_text64(statement_, index, text.bytes.data(), text.bytes.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  int bind(int index, const std::optional<std::int64_t>& value) {
    return value ? bind(index, *value) : sqlite3_bind_null(statement_, index);
  }

  sqlite3_stmt* statement_ = nullptr;
  sqlite3* database_ = nullptr;
  std::string_view sql_;
};

}  // namespace reprise::store::sqlite
