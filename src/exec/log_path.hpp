// Where the output of an attempt is kept: one file each, beside the store.
//
//   .reprise/logs/019a86b2-…/fetch/57.2.log          item 57, attempt 2
//   .reprise/logs/019a86b2-…/fetch/12000/12345.1.log  from item 1,000 on: folders of a thousand items
//
// Thread safety: functions of their arguments; nothing is opened or made here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/event.hpp>

namespace reprise::exec {

// The folder of everything a run wrote.
std::string log_folder(std::string_view store_folder, const RunId& run);
// Of one step of it. Names that are no good names for a file are escaped, so that no two steps share one and none leaves the folder.
std::string log_folder(std::string_view store_folder, const RunId& run, std::string_view step);

std::string log_path(std::string_view store_folder, const RunId& run, std::string_view step, std::uint32_t item,
                     std::uint64_t attempt);

struct LogName {
  std::uint32_t item = 0;
  std::uint64_t attempt = 0;

  auto operator<=>(const LogName&) const = default;
};
// The other way: what a file named 57.2.log holds; std::nullopt when it is something else.
std::optional<LogName> log_name_in(std::string_view file_name) noexcept;

}  // namespace reprise::exec
