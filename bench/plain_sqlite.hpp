// The raw limit that the engine is measured against: the same bytes through plain SQLite, one row for each step.
#pragma once

#include <cstddef>
#include <string>

namespace reprise::bench {

struct PlainSqlite {
  double rows_per_s = 0;
  double commit_p50_s = 0;
};
// WAL, synchronous=FULL, one connection, prepared statement: `row_bytes` a row, `rows` a transaction, for about `seconds`.
PlainSqlite run_plain_sqlite(const std::string& folder, std::size_t row_bytes, std::size_t rows, double seconds);

}  // namespace reprise::bench
