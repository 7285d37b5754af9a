// What the commands that look have in common: finding the run, naming a part of it, columns, and pieces of JSON.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/look/item_labels.hpp"
#include "cli/look/look_commands.hpp"
#include "event/failure_json.hpp"
#include "observe/live/plain_printer.hpp"
#include "runtime/snapshot.hpp"
#include "text/value.hpp"

namespace reprise::cli {

struct Looked {
  std::unique_ptr<runtime::RunReader> reader;
  store::Shard shard;  // which has the run
  RunId id;
  runtime::RunView view;

  observe::PlainPrinter printer() const;
  ItemLabels labels();  // refers to this
};

// The error is an exit code; the message has been written already.
// Of a shard that cannot be read it is told here, and the others are shown.
std::expected<runtime::Snapshot, int> open_snapshot(const std::string& store);
// At the end of a list: 0, or the exit code of a list that is not complete.
int exit_code_of_list(const runtime::Snapshot& snapshot);
std::expected<Looked, int> look_at(const RunOptions& options);

// The owner of the shard says that it goes on with the run.
bool is_worked_on(const store::Shard& shard, const RunId& run);
// The run is open, and nobody works on it: it waits for `reprise resume`.
bool is_left_alone(const Looked& looked);

// STEP or STEP[ITEM]: fetch, fetch[57].
struct WorkPlace {
  std::string step;
  std::optional<std::uint32_t> item;

  bool operator==(const WorkPlace&) const = default;
};
std::expected<WorkPlace, Error> parse_work_place(std::string_view text);

struct FoundPlace {
  std::size_t step = 0;  // in the plan
  std::optional<std::uint32_t> item;
};
// std::nullopt when none was asked for; `not_found` when the run has no such step or item.
std::expected<std::optional<FoundPlace>, Error> find_place(const Looked& looked, const std::string& place);

// A command line for people to copy: reprise why 019a… 'fetch[57]', with the same --store.
std::string suggested(const std::string& store, std::string_view command, const RunId& run,
                      std::string_view arguments = {});
std::string shell_quoted(std::string_view text);  // as a shell reads it as one word
std::string quoted_place(std::string_view step, std::uint32_t item, bool has_items);

// Rows of equally many cells, the first being the headings, in columns as wide as they need; no blanks at the ends of lines.
std::string columns(const std::vector<std::vector<std::string>>& rows);

// At most so many characters, safe to show on one line.
std::string preview(std::string_view bytes, std::size_t characters_max = 200);

text::Value whole(std::uint64_t number);
text::Value word(std::string_view name);
using event::failure_value;                 // the fields of an event's error
void print_json(const text::Value& value);  // one line

}  // namespace reprise::cli
