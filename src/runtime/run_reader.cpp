#include "runtime/run_reader.hpp"

#include <algorithm>
#include <utility>

#include "event/evidence.hpp"
#include "event/record.hpp"
#include "runtime/parentage.hpp"
#include "text/ascii.hpp"

namespace reprise::runtime {
namespace {

using event::Time;

constexpr std::size_t prefix_min = 4;
constexpr std::size_t id_characters = 36;

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}

WallTime wall_time(Time time) { return WallTime{Duration{time}}; }

// Which times of creation ids with this beginning have: their first 48 bits are milliseconds.
struct Creation {
  Time from = 0;
  Time before = 0;
};
std::optional<Creation> creation_in(std::string_view prefix) {
  constexpr unsigned time_digits = 12;
  std::uint64_t first = 0;
  unsigned digits = 0;
  for (std::size_t at = 0; at < prefix.size(); ++at) {
    const char c = prefix[at];
    if (at == 8 || at == 13 || at == 18 || at == 23) {
      if (c != '-') return std::nullopt;
      continue;
    }
    const bool is_digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (!is_digit) return std::nullopt;
    if (digits == time_digits) continue;
    first = first * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    ++digits;
  }
  const unsigned missing = 4 * (time_digits - digits);
  const std::uint64_t last = (first + 1) << missing;
  constexpr std::uint64_t millisecond = 1'000'000;
  const std::uint64_t longest = static_cast<std::uint64_t>(INT64_MAX) / millisecond;
  const auto time_at = [&](std::uint64_t milliseconds) {
    return static_cast<Time>(std::min(milliseconds, longest) * millisecond);
  };
  return Creation{time_at(first << missing), last > longest ? INT64_MAX : time_at(last)};
}

}  // namespace

Error no_such_run(std::string_view name) {
  return {ErrorCode::not_found,
          "There is no run " + std::string{name} + " in this store. `reprise runs` lists those there are."};
}

std::uint32_t RunView::given_items() const {
  return steps.front().has_items && !plan->steps.front().for_each ? steps.front().items : 0;
}

std::expected<RunId, Error> RunReader::resolve(std::string_view name) {
  if (name == "@last" || name == "@last-failed") {
    RunQuery query{.limit = 100};
    if (name == "@last-failed") query.status = RunStatus::failed;
    std::string cursor;
    do {
      const auto page = find(query, cursor);
      if (!page) return std::unexpected{page.error()};
      for (const RunInfo& run : page->runs) {
        if (!parent_in_key(run.key)) return run.id;  // a summary says no more, and sub-flows have such keys
      }
      cursor = page->cursor;
    } while (!cursor.empty());
    return failure(ErrorCode::not_found,
                   query.status ? "No run in this store has failed." : "There is no run in this store.");
  }
  const std::string prefix = text::lowered(name);
  const auto creation = prefix.size() <= id_characters ? creation_in(prefix) : std::nullopt;
  if (!creation || prefix.size() < prefix_min) {
    return failure(ErrorCode::not_found,
                   "\"" + std::string{name} +
                       "\" does not name a run: write an id, at least the first 4 characters of one, "
                       "@last or @last-failed.");
  }
  if (const auto full = run_id_from(prefix)) {
    const auto found = run(*full);
    if (!found) return std::unexpected{found.error()};
    if (!*found) return std::unexpected{no_such_run(name)};
    return *full;
  }
  RunQuery query{
      .created_from = wall_time(creation->from), .created_before = wall_time(creation->before), .limit = 1000};
  std::vector<RunId> matches;
  std::string cursor;
  do {
    const auto page = find(query, cursor);
    if (!page) return std::unexpected{page.error()};
    for (const RunInfo& run : page->runs) {
      if (to_string(run.id).starts_with(prefix)) matches.push_back(run.id);
    }
    cursor = page->cursor;
  } while (!cursor.empty() && matches.size() < 2);
  if (matches.empty()) return std::unexpected{no_such_run(name)};
  if (matches.size() == 1) return matches.front();
  return failure(ErrorCode::invalid, "Several runs begin with " + std::string{name} + ", among them " +
                                         to_string(matches[0]) + " and " + to_string(matches[1]) +
                                         ": write more of the id.");
}

std::expected<std::vector<Event>, Error> RunReader::events(const RunId& id) {
  std::vector<Event> events;
  auto read = each_event(id, [&](Event&& event) {
    events.push_back(std::move(event));
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return events;
}

void RunReader::add_evidence(const RunId& id, Failure& failure) {
  if (!event::is_kept_apart(failure)) return;
  if (auto bytes = payload(id, failure.evidence)) failure.evidence = *std::move(bytes);
}

}  // namespace reprise::runtime
