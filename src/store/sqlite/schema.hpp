// The tables, and how a file of an older version becomes one of this version. docs/formats/store.md describes them.
//
// Thread safety: none; called while the store is opened.
#pragma once

#include <cstdint>
#include <span>

#include "store/sqlite/connection.hpp"

namespace reprise::store::sqlite {

inline constexpr std::int64_t application_id = 0x52505253;  // "RPRS"

// Brings the tables from version `index` to `index + 1`, inside a transaction. Steps are added at the end and never changed.
using SchemaStep = Result<void> (*)(Connection& connection);
std::span<const SchemaStep> schema_steps();

// What the file is, without changing it: 0 = empty. Errors: damaged, of another program, newer than `known`.
Result<std::int64_t> schema_version(Connection& connection, std::int64_t known);

// From `version` to that of the steps. Each step in its own transaction, so that a crash leaves one version or the other.
Result<void> migrate(Connection& connection, std::int64_t version, std::span<const SchemaStep> steps);

}  // namespace reprise::store::sqlite
