#include "runtime/snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "event/evidence.hpp"
#include "runtime/ids.hpp"
#include "runtime/parentage.hpp"
#include "text/ascii.hpp"

namespace reprise::runtime {
namespace {

using event::Time;

constexpr std::size_t page_max = 10'000;
constexpr std::size_t prefix_min = 4;
constexpr std::size_t id_characters = 36;

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}
std::unexpected<Error> no_such_run(std::string_view name) {
  return failure(ErrorCode::not_found,
                 "There is no run " + std::string{name} + " in this store. `reprise runs` lists those there are.");
}

WallTime wall_time(Time time) { return WallTime{Duration{time}}; }

// How far each shard has been read: slot:NUMBER, separated by commas. NUMBER is the last run that was given; 0 = none yet.
using Positions = std::map<std::uint32_t, std::uint64_t>;

std::string cursor_of(const Positions& positions) {
  std::string cursor;
  for (const auto& [slot, number] : positions)
    cursor += (cursor.empty() ? "" : ",") + std::to_string(slot) + ":" + std::to_string(number);
  return cursor;
}

std::expected<Positions, Error> positions_in(std::string_view cursor) {
  Positions positions;
  while (!cursor.empty()) {
    std::uint32_t slot = 0;
    std::uint64_t number = 0;
    const char* const end = cursor.data() + cursor.size();
    const auto [colon, no_slot] = std::from_chars(cursor.data(), end, slot);
    const bool has_slot = no_slot == std::errc{} && colon != end && *colon == ':';
    const auto [stop, no_number] = has_slot ? std::from_chars(colon + 1, end, number) : std::from_chars_result{end, {}};
    if (!has_slot || no_number != std::errc{} || (stop != end && *stop != ','))
      return failure(ErrorCode::invalid, "this is not a cursor that find() gave");
    positions[slot] = number;
    cursor = {stop, end};
    if (!cursor.empty()) cursor.remove_prefix(1);
  }
  return positions;
}

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

struct Snapshot::State {
  struct Part {
    store::Shard shard;
    ShardSnapshot snapshot;
  };
  struct Trouble {
    std::uint32_t slot = 0;
    Error error;
  };

  std::vector<Part> parts;  // at least one
  std::vector<Trouble> unreadable;
  std::vector<Error> troubles;

  // nullptr: no shard of this store gave that id.
  std::expected<Part*, Error> part_of(const RunId& id) {
    const auto slot = slot_in(parts.front().snapshot.secret(), id);
    if (!slot) return nullptr;
    const auto part = std::ranges::find_if(parts, [&](const Part& each) { return each.snapshot.slot() == *slot; });
    if (part != parts.end()) return &*part;
    const auto trouble = std::ranges::find(unreadable, *slot, &Trouble::slot);
    if (trouble != unreadable.end()) return std::unexpected{trouble->error};
    return nullptr;
  }

  template <class Read>
  std::invoke_result_t<Read, ShardSnapshot&> in_shard_of(const RunId& id, const Read& read) {
    const auto part = part_of(id);
    if (!part) return std::unexpected{part.error()};
    if (*part == nullptr) return no_such_run(to_string(id));
    return read((*part)->snapshot);
  }
};

// ---- opening ----------------------------------------

Snapshot::Snapshot(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
Snapshot::Snapshot(Snapshot&&) noexcept = default;
Snapshot& Snapshot::operator=(Snapshot&&) noexcept = default;
Snapshot::~Snapshot() = default;

std::expected<Snapshot, Error> Snapshot::open(std::string_view url) {
  const auto ledger = store::open_ledger(url);
  if (!ledger) return std::unexpected{ledger.error()};
  return open((*ledger)->look());
}

std::expected<Snapshot, Error> Snapshot::open(std::vector<store::ShardView> shards) {
  auto state = std::make_unique<State>();
  std::optional<Error> absent;
  for (auto& [shard, view] : shards) {
    auto opened = view ? ShardSnapshot::open(*std::move(view)) : std::unexpected{view.error()};
    if (opened) {
      state->parts.push_back({shard, *std::move(opened)});
    } else if (opened.error().code == ErrorCode::not_found) {
      absent = opened.error();
    } else {
      state->unreadable.push_back({shard.slot, opened.error()});
      state->troubles.push_back(opened.error());
    }
  }
  if (!state->parts.empty()) return Snapshot{std::move(state)};
  if (!state->troubles.empty()) return std::unexpected{state->troubles.front()};
  return std::unexpected{absent.value_or(Error{ErrorCode::not_found, "There is nothing in this store yet."})};
}

const std::vector<Error>& Snapshot::troubles() const noexcept { return state_->troubles; }

std::vector<store::Shard> Snapshot::shards() const {
  std::vector<store::Shard> shards;
  for (const State::Part& part : state_->parts) shards.push_back(part.shard);
  return shards;
}

std::expected<store::Shard, Error> Snapshot::shard_of(const RunId& id) const {
  const auto part = state_->part_of(id);
  if (!part) return std::unexpected{part.error()};
  if (*part == nullptr) return no_such_run(to_string(id));
  return (*part)->shard;
}

// ---- finding ----------------------------------------

// Each shard gives as many as are wanted in all, so the newest of all are among them.
std::expected<RunPage, Error> Snapshot::find(const RunQuery& query, std::string_view cursor) {
  auto positions = positions_in(cursor);
  if (!positions) return std::unexpected{positions.error()};
  struct Given {
    ShardSnapshot::Page page;
    std::uint32_t slot;
    std::size_t taken = 0;
    bool has_next() const { return taken < page.runs.size(); }
  };
  std::vector<Given> given;
  for (State::Part& part : state_->parts) {
    const std::uint32_t slot = part.snapshot.slot();
    auto page = part.snapshot.find(query, (*positions)[slot]);
    if (!page) return std::unexpected{page.error()};
    given.push_back({*std::move(page), slot});
  }
  RunPage page;
  const auto newest = [&] {
    Given* found = nullptr;
    for (Given& each : given) {
      if (!each.has_next()) continue;
      if (found == nullptr || each.page.runs[each.taken].created > found->page.runs[found->taken].created)
        found = &each;
    }
    return found;
  };
  const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, page_max);
  while (page.runs.size() < limit) {
    Given* const next = newest();
    if (next == nullptr) break;
    RunInfo& run = next->page.runs[next->taken++];
    (*positions)[next->slot] = number_in(run.id);
    page.runs.push_back(std::move(run));
  }
  const bool has_more =
      std::ranges::any_of(given, [](const Given& each) { return each.has_next() || each.page.has_more; });
  if (has_more) page.cursor = cursor_of(*positions);
  return page;
}

std::expected<std::optional<RunId>, Error> Snapshot::find_key(std::string_view key) {
  for (State::Part& part : state_->parts) {
    auto run = part.snapshot.find_key(key);
    if (!run || *run) return run;
  }
  return std::nullopt;
}

std::expected<RunId, Error> Snapshot::resolve(std::string_view name) {
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
    if (!*found) return no_such_run(name);
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
  if (matches.empty()) return no_such_run(name);
  if (matches.size() == 1) return matches.front();
  return failure(ErrorCode::invalid, "Several runs begin with " + std::string{name} + ", among them " +
                                         to_string(matches[0]) + " and " + to_string(matches[1]) +
                                         ": write more of the id.");
}

// ---- one run, and all dead letters ----------------------------------------

std::expected<std::optional<RunView>, Error> Snapshot::run(const RunId& id) {
  const auto part = state_->part_of(id);
  if (!part) return std::unexpected{part.error()};
  if (*part == nullptr) return std::nullopt;
  return (*part)->snapshot.run(id);
}

std::expected<std::vector<Event>, Error> Snapshot::events(const RunId& id) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.events(id); });
}
std::expected<void, Error> Snapshot::each_event(const RunId& id, const std::function<bool(Event&&)>& visit) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.each_event(id, visit); });
}
std::expected<std::string, Error> Snapshot::payload(const RunId& id, std::string_view hash) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.payload(hash); });
}
void Snapshot::add_evidence(const RunId& id, Failure& failure) {
  if (!event::is_kept_apart(failure)) return;
  if (auto bytes = payload(id, failure.evidence)) failure.evidence = *std::move(bytes);
}

std::expected<std::vector<std::string>, Error> Snapshot::item_inputs(const RunId& id, std::string_view step,
                                                                     std::size_t limit) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.item_inputs(id, step, limit); });
}

std::expected<std::string, Error> Snapshot::item_input(const RunId& id, std::string_view step, std::uint32_t item) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.item_input(id, step, item); });
}
std::expected<Replayed, Error> Snapshot::replay(const RunId& id) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.replay(id); });
}
std::expected<std::vector<DeadLetter>, Error> Snapshot::dead_letters_of(const RunId& id, std::size_t limit) {
  return state_->in_shard_of(id, [&](ShardSnapshot& shard) { return shard.dead_letters(id, limit); });
}

std::expected<std::vector<DeadLetter>, Error> Snapshot::dead_letters(std::size_t limit) {
  std::vector<DeadLetter> letters;
  for (State::Part& part : state_->parts) {
    auto more = part.snapshot.dead_letters(std::nullopt, limit);
    if (!more) return more;
    std::ranges::move(*more, std::back_inserter(letters));
  }
  if (state_->parts.size() > 1)  // ids begin with the time of creation
    std::ranges::stable_sort(letters,
                             [](const DeadLetter& left, const DeadLetter& right) { return right.run < left.run; });
  if (letters.size() > limit) letters.resize(limit);
  return letters;
}

}  // namespace reprise::runtime
