// Filters: which runs and which work items somebody means. One grammar for the command line, the HTTP API and the pages.
//
//   auto filter = index::parse_filter({"step:fetch", "http:5xx", "error:\"connection reset\"", "item:17,20-30"});
//   filter->matches(run, now) && filter->matches(item);
//
// A word is `key:value`; words are joined by "and", values after one key (a comma between them) by "or". A value with blanks or commas stands in double
// quotes, with \" and \\ inside. Keys of runs: status flow since until older label:k=v parent key. Keys of work items: step item class kind http exit
// error fingerprint attempts label:TEXT. A key may be repeated: status, step, … then mean any of all values, error and label mean all of them.
// Bounds: 64 words, 4 KiB each, 256 values after one key. Thread safety: values; the functions need none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/event.hpp>
#include <reprise/failure.hpp>

namespace reprise::index {

inline constexpr std::size_t words_max = 64;
inline constexpr std::size_t word_bytes_max = 4096;
inline constexpr std::size_t values_max = 256;

// From and to, both included.
struct NumberRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;

  bool has(std::uint64_t number) const noexcept { return from <= number && number <= to; }
  bool operator==(const NumberRange&) const = default;
};

// A time as it was written: so long before the question is asked, or at that time.
struct FilterTime {
  std::optional<Duration> ago = {};
  WallTime at = {};

  WallTime before(WallTime now) const noexcept;
  bool operator==(const FilterTime&) const = default;
};

// What a filter looks at in a run. Views: valid during the call.
struct RunSubject {
  std::string_view status = {};  // as `reprise runs` shows it: `interrupted` is one, too
  std::string_view flow = {};
  std::string_view key = {};
  std::string_view parent = {};  // the id of the run it works for; empty: none
  WallTime created = {};
  WallTime changed = {};  // its last event
  std::span<const std::pair<std::string, std::string>> labels = {};
};

// What a filter looks at in a work item. Without a failure, conditions on failures do not hold.
struct ItemSubject {
  std::string_view step = {};
  std::optional<std::uint64_t> item = {};  // none: the step has no items
  std::string_view label = {};
  std::uint64_t attempts = 0;
  const Failure* failure = nullptr;
  std::optional<FailureClass> failure_class = {};
  std::string_view fingerprint = {};
};

struct Filter {
  std::vector<std::string> statuses = {};
  std::vector<std::string> flows = {};
  std::vector<std::string> keys = {};
  std::vector<std::string> parents = {};  // beginnings of ids
  std::optional<FilterTime> since = {};   // created at or after
  std::optional<FilterTime> until = {};   // created before
  std::optional<Duration> older = {};     // nothing has happened for so long
  std::vector<std::pair<std::string, std::string>> run_labels = {};

  std::vector<std::string> steps = {};
  std::vector<NumberRange> items = {};
  std::vector<FailureClass> classes = {};
  std::vector<FailureKind> kinds = {};
  std::vector<NumberRange> http = {};
  std::vector<NumberRange> exits = {};
  std::vector<NumberRange> attempts = {};
  std::vector<std::string> errors = {};        // parts of type or message, without regard to case: all of them
  std::vector<std::string> fingerprints = {};  // beginnings
  std::vector<std::string> item_labels = {};   // parts, without regard to case: all of them

  bool looks_at_runs() const noexcept;   // has a condition on runs
  bool looks_at_items() const noexcept;  // has a condition on work items
  bool empty() const noexcept { return !looks_at_runs() && !looks_at_items(); }

  bool matches(const RunSubject& run, WallTime now) const;
  bool matches(const ItemSubject& item) const;

  bool operator==(const Filter&) const = default;
};

struct FilterMistake {
  std::size_t word = 0;    // its place among the words, from 0
  std::size_t offset = 0;  // in that word, in bytes
  std::string message = {};
  std::string help = {};  // may be empty

  bool operator==(const FilterMistake&) const = default;
};

// Each argument is one word, as a shell has split them; quotes around a value are taken off.
std::expected<Filter, FilterMistake> parse_filter(std::span<const std::string> words);

// One text with words between blanks, as a URL or a search field has it. `word` and `offset` of a mistake are those of the word.
std::expected<Filter, FilterMistake> parse_filter(std::string_view text);

// A filter's word always has a colon behind a known or unknown key; `fetch` and `fetch[3]` are none.
bool is_filter_word(std::string_view word) noexcept;

}  // namespace reprise::index
