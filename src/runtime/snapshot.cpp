#include "runtime/snapshot.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/shard_snapshot.hpp"

namespace reprise::runtime {
namespace {

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}

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

}  // namespace

struct Snapshot::State {
  struct Part {
    store::Shard shard;
    std::unique_ptr<ShardReader> reader;
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
    const auto slot = slot_in(parts.front().reader->key().secret, id);
    if (!slot) return nullptr;
    const auto part = std::ranges::find_if(parts, [&](const Part& each) { return each.reader->key().slot == *slot; });
    if (part != parts.end()) return &*part;
    const auto trouble = std::ranges::find(unreadable, *slot, &Trouble::slot);
    if (trouble != unreadable.end()) return std::unexpected{trouble->error};
    return nullptr;
  }

  template <class Read>
  std::invoke_result_t<Read, ShardReader&> in_shard_of(const RunId& id, const Read& read) {
    const auto part = part_of(id);
    if (!part) return std::unexpected{part.error()};
    if (*part == nullptr) return std::unexpected{no_such_run(to_string(id))};
    return read(*(*part)->reader);
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
      state->parts.push_back({shard, std::make_unique<ShardSnapshot>(*std::move(opened))});
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

void Snapshot::read_live(const store::Shard& shard, std::unique_ptr<ShardReader> reader) {
  const auto part = std::ranges::find(state_->parts, shard, &State::Part::shard);
  if (part == state_->parts.end()) {
    state_->parts.push_back({shard, std::move(reader)});
  } else {
    part->reader = std::move(reader);
  }
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
  if (*part == nullptr) return std::unexpected{no_such_run(to_string(id))};
  return (*part)->shard;
}

// ---- finding ----------------------------------------

// Each shard gives as many as are wanted in all, so the newest of all are among them.
std::expected<RunPage, Error> Snapshot::find(const RunQuery& query, std::string_view cursor) {
  auto positions = positions_in(cursor);
  if (!positions) return std::unexpected{positions.error()};
  struct Given {
    ShardReader* reader;
    FoundRuns page;
    std::size_t taken = 0;
    bool has_next() const { return taken < page.runs.size(); }
  };
  RunQuery summaries = query;
  summaries.details = false;  // of those that are given in the end
  std::vector<Given> given;
  for (State::Part& part : state_->parts) {
    auto page = part.reader->find_below(summaries, (*positions)[part.reader->key().slot]);
    if (!page) return std::unexpected{page.error()};
    given.push_back({part.reader.get(), *std::move(page)});
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
  const std::size_t limit = limit_of(query);
  while (page.runs.size() < limit) {
    Given* const next = newest();
    if (next == nullptr) break;
    RunInfo& run = next->page.runs[next->taken++];
    (*positions)[next->reader->key().slot] = number_in(run.id);
    if (query.details) {
      if (auto added = next->reader->add_details(run); !added) return std::unexpected{added.error()};
    }
    page.runs.push_back(std::move(run));
  }
  const bool has_more =
      std::ranges::any_of(given, [](const Given& each) { return each.has_next() || each.page.next_below > 1; });
  if (has_more) page.cursor = cursor_of(*positions);
  return page;
}

std::expected<std::optional<RunId>, Error> Snapshot::find_key(std::string_view key) {
  for (State::Part& part : state_->parts) {
    auto run = part.reader->find_key(key);
    if (!run || *run) return run;
  }
  return std::nullopt;
}

// ---- one run, and all dead letters ----------------------------------------

std::expected<std::optional<RunView>, Error> Snapshot::run(const RunId& id) {
  const auto part = state_->part_of(id);
  if (!part) return std::unexpected{part.error()};
  if (*part == nullptr) return std::nullopt;
  return (*part)->reader->run(id);
}

std::expected<void, Error> Snapshot::each_event(const RunId& id, const std::function<bool(Event&&)>& visit) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.each_event(id, visit); });
}
std::expected<void, Error> Snapshot::each_item(const RunId& id, const std::function<bool(const ItemView&)>& visit) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.each_item(id, visit); });
}
std::expected<std::string, Error> Snapshot::payload(const RunId& id, std::string_view hash) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.payload(id, hash); });
}
std::expected<std::vector<std::string>, Error> Snapshot::item_inputs(const RunId& id, std::string_view step,
                                                                     std::size_t limit) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.item_inputs(id, step, limit); });
}

std::expected<std::string, Error> Snapshot::item_input(const RunId& id, std::string_view step, std::uint32_t item) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.item_input(id, step, item); });
}
std::expected<Replayed, Error> Snapshot::replay(const RunId& id) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.replay(id); });
}
std::expected<std::vector<DeadLetter>, Error> Snapshot::dead_letters_of(const RunId& id, std::size_t limit) {
  return state_->in_shard_of(id, [&](ShardReader& shard) { return shard.dead_letters_of(id, limit); });
}

std::expected<std::vector<DeadLetter>, Error> Snapshot::dead_letters(std::size_t limit) {
  std::vector<DeadLetter> letters;
  for (State::Part& part : state_->parts) {
    auto more = part.reader->dead_letters(limit);
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
