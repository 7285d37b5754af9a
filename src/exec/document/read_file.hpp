// Files that documents name: lists of items, schemas, secrets, other flows. All of it or an error: half a list must not look like a list.
//
// Only regular files: a pipe or a device may never answer, and has nothing left for the next attempt. A mount may not answer either, so a
// read blocks for as long as it likes; FileReader has threads for that. Thread safety: a function of its arguments.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <string>

namespace reprise::exec {

inline constexpr std::size_t list_file_bytes_max = std::size_t{1} << 30U;
inline constexpr std::size_t schema_file_bytes_max = std::size_t{16} << 20U;
inline constexpr std::size_t flow_file_bytes_max = std::size_t{1} << 20U;
inline constexpr std::size_t secret_file_bytes_max = std::size_t{1} << 20U;

struct FileProblem {
  std::string message;     // "cannot read PATH: what the system said"
  bool passes_by = false;  // it may be gone at the next attempt: no answer, or held by another process
};
using FileContent = std::expected<std::string, FileProblem>;
using ReadFile = std::function<FileContent(const std::string& path, std::size_t bytes_max)>;

FileContent read_regular_file(const std::string& path, std::size_t bytes_max);

}  // namespace reprise::exec
