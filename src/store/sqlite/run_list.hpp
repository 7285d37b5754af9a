// Lists of runs as they stand in due_lists and ended_lists: sorted, as differences, a few bytes for each run.
//
// One row of an index costs as much as the run's own row, and due times are spread over many pages; one list for each commit
// costs next to nothing. The price is that an entry stays when its run has moved on: whoever reads a list asks the run's row
// whether the entry still holds. Thread safety: none needed, everything is an argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace reprise::store::sqlite {

inline constexpr std::size_t run_list_entries_max = 256;  // in one row, so that looking at one stays cheap

void append_run_list(std::span<const DueCursor> sorted, std::string& out);

// Adds the entries to `out`; false when the bytes are not a list.
bool read_run_list(std::string_view bytes, std::vector<DueCursor>& out);

}  // namespace reprise::store::sqlite
