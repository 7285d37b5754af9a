#include "runtime/shard_snapshot.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/hex.hpp"
#include "core/core.hpp"
#include "event/codec.hpp"
#include "event/history.hpp"
#include "exec/function/list.hpp"
#include "exec/secrets/sealing.hpp"
#include "runtime/shard_snapshot_state.hpp"
#include "text/ascii.hpp"

namespace reprise::runtime {
namespace {

constexpr std::size_t page_max = 10'000;

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}
std::unexpected<Error> damaged(std::string message) { return failure(ErrorCode::store_damaged, std::move(message)); }
std::unexpected<Error> no_such_run(std::string_view name) {
  return failure(ErrorCode::not_found,
                 "There is no run " + std::string{name} + " in this store. `reprise runs` lists those there are.");
}

WallTime wall_time(Time time) { return WallTime{Duration{time}}; }

}  // namespace

// ---- opening ----------------------------------------

ShardSnapshot::ShardSnapshot(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
ShardSnapshot::ShardSnapshot(ShardSnapshot&&) noexcept = default;
ShardSnapshot& ShardSnapshot::operator=(ShardSnapshot&&) noexcept = default;
ShardSnapshot::~ShardSnapshot() = default;

std::expected<ShardSnapshot, Error> ShardSnapshot::open(std::unique_ptr<store::StoreView> view) {
  auto state = std::make_unique<State>(std::move(view));
  if (auto loaded = state->load_plans(); !loaded) return std::unexpected{loaded.error()};
  if (auto loaded = state->load_journal(); !loaded) return std::unexpected{loaded.error()};
  state->store->let_go();
  return ShardSnapshot{std::move(state)};
}

std::expected<ShardSnapshot, Error> ShardSnapshot::open(const std::string& path) {
  auto view = store::open_store_read_only("sqlite:" + path);
  if (!view) return std::unexpected{view.error()};
  return open(*std::move(view));
}

std::uint64_t ShardSnapshot::secret() const noexcept { return state_->secret; }
std::uint32_t ShardSnapshot::slot() const noexcept { return state_->slot; }

// ---- finding ----------------------------------------

std::expected<ShardSnapshot::Page, Error> ShardSnapshot::find(const RunQuery& query, std::uint64_t below_number) {
  std::uint64_t below = below_number == 0 ? UINT64_MAX : below_number;
  const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, page_max);
  store::RunFilter filter{.status = query.status};
  if (query.created_from) filter.created_from = query.created_from->time_since_epoch().count();
  if (query.created_before) filter.created_before = query.created_before->time_since_epoch().count();
  auto from_journal = state_->journal_runs.begin();
  Page page;
  for (bool more = true; more;) {
    const auto rows = state_->store->find(filter, below == UINT64_MAX ? 0 : below, limit);
    if (!rows) return std::unexpected{rows.error()};
    const auto is_unknown = [&](const store::StoredRun& row) { return state_->core.plan(row.plan) == nullptr; };
    if (std::ranges::any_of(*rows, is_unknown)) {
      if (auto loaded = state_->load_plans(); !loaded) return std::unexpected{loaded.error()};
    }
    more = rows->size() == limit;
    const std::uint64_t lowest = more ? rows->back().run : 0;
    std::map<std::uint64_t, RunInfo, std::greater<>> found;  // the journal knows better than a row
    for (const store::StoredRun& row : *rows) {
      if (!state_->is_in_journal(row.run)) found.emplace(row.run, state_->info_of(row));
    }
    for (; from_journal != state_->journal_runs.end() && *from_journal >= lowest; ++from_journal) {
      const core::Run& run = *state_->core.find(*from_journal);
      const bool wanted = *from_journal < below && (!query.status || run.status == *query.status) &&
                          run.created >= filter.created_from && run.created < filter.created_before;
      if (wanted) found.emplace(run.number, state_->info_of(run));
    }
    for (auto& [number, info] : found) {
      if (!query.name.empty() && info.name != query.name) continue;
      if (page.runs.size() == limit) {
        page.has_more = true;
        return page;
      }
      page.runs.push_back(std::move(info));
    }
    below = lowest;
  }
  return page;
}

std::expected<std::optional<RunId>, Error> ShardSnapshot::find_key(std::string_view key) {
  for (const std::uint64_t number : state_->journal_runs) {
    const core::Run& run = *state_->core.find(number);
    if (run.key == key) return state_->id(number, run.created);
  }
  const auto number = state_->store->run_of_key(key);
  if (!number) return std::unexpected{number.error()};
  if (!*number) return std::nullopt;
  const auto row = state_->store->read_run(**number);
  if (!row) return std::unexpected{row.error()};
  if (!*row) return std::nullopt;
  return state_->id(**number, (*row)->created);
}

// ---- one run ----------------------------------------

std::expected<std::optional<RunView>, Error> ShardSnapshot::run(const RunId& id) {
  const auto loaded = state_->load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  if (*loaded == nullptr) return std::nullopt;
  return state_->view_of(**loaded);
}

std::uint32_t RunView::given_items() const {
  return steps.front().has_items && !plan->steps.front().for_each ? steps.front().items : 0;
}

std::expected<void, Error> ShardSnapshot::each_event(const RunId& id, const std::function<bool(Event&&)>& visit) {
  const auto loaded = state_->load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const run = *loaded;
  if (run == nullptr) return no_such_run(to_string(id));
  event::EventHistory history{id, core::step_labels(*run->plan->plan)};
  std::uint64_t sequence = 0;
  bool going = true;
  bool whole = true;
  auto read = state_->each_chunk(*run, [&](std::uint64_t first, std::string_view chunk) {
    event::ChunkReader reader{chunk, first};
    event::Record record;
    while (going && whole && reader.next(record)) {
      whole = record.sequence == ++sequence;
      if (whole) going = visit(history.add(record));
    }
    whole = whole && reader.ok();
    return going && whole;
  });
  if (!read) return read;
  if (!whole || (going && sequence != run->sequence)) {
    const auto row = state_->store->read_run(run->number);
    if (run->has_row && row && !*row) return no_such_run(to_string(id));  // it was removed while it was read
    return damaged("the events of run " + to_string(id) + " cannot be read beyond number " + std::to_string(sequence));
  }
  return {};
}

std::expected<std::vector<Event>, Error> ShardSnapshot::events(const RunId& id) {
  std::vector<Event> events;
  auto read = each_event(id, [&](Event&& event) {
    events.push_back(std::move(event));
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return events;
}

std::expected<std::string, Error> ShardSnapshot::payload(std::string_view hash) {
  auto bytes = base::bytes_of_hexadecimal(hash);
  if (!bytes) return failure(ErrorCode::invalid, "\"" + std::string{hash} + "\" is not the hash of a payload");
  return state_->bytes_of({.bytes = *std::move(bytes), .size = 0, .hashed = true});
}

std::expected<std::string, Error> ShardSnapshot::item_input(const RunId& id, std::string_view step,
                                                            std::uint32_t item) {
  const auto loaded = state_->load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const run = *loaded;
  if (run == nullptr) return no_such_run(to_string(id));
  const auto& steps = run->plan->plan->steps;
  const auto found = std::ranges::find_if(steps, [&](const core::StepPlan& plan) { return *plan.name == step; });
  if (found == steps.end()) return failure(ErrorCode::not_found, "The run has no step \"" + std::string{step} + "\".");
  const core::StepState& state = run->steps[static_cast<std::size_t>(found - steps.begin())];
  if (item >= state.items) {
    return failure(ErrorCode::not_found, "Step \"" + std::string{step} + "\" has no item " + std::to_string(item) +
                                             ": it has " + std::to_string(state.items) + ", counted from 0.");
  }
  if (state.map == nullptr) return run->plan->plan->is_document ? std::string{} : state_->bytes_of(run->input);
  const bool was_given_items = !found->for_each;
  auto list = state_->bytes_of(was_given_items ? run->input : state.map->list);
  if (!list) return list;
  const auto element = exec::list_element(*list, item);
  if (!element)
    return damaged("item " + std::to_string(item) + " of step \"" + std::string{step} + "\" cannot be read");
  return run->plan->plan->is_document ? exec::shown(*element) : std::string{*element};
}

std::expected<std::vector<std::string>, Error> ShardSnapshot::item_inputs(const RunId& id, std::string_view step,
                                                                          std::size_t limit) {
  const auto loaded = state_->load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  std::vector<std::string> inputs;
  const core::Run* const run = *loaded;
  if (run == nullptr) return no_such_run(to_string(id));
  const auto& steps = run->plan->plan->steps;
  const auto found = std::ranges::find_if(steps, [&](const core::StepPlan& plan) { return *plan.name == step; });
  if (found == steps.end() || !run->plan->plan->is_document) return inputs;
  const core::StepState& state = run->steps[static_cast<std::size_t>(found - steps.begin())];
  if (state.map == nullptr) return inputs;
  const auto list = state_->bytes_of(state.map->list);
  if (!list) return std::unexpected{list.error()};
  for (std::uint32_t item = 0; item < std::min<std::size_t>(state.items, limit); ++item) {
    const auto element = exec::list_element(*list, item);
    if (!element) break;
    inputs.push_back(exec::shown(*element));
  }
  return inputs;
}

std::expected<Replayed, Error> ShardSnapshot::replay(const RunId& id) {
  const auto loaded = state_->load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const recorded = *loaded;
  if (recorded == nullptr) return no_such_run(to_string(id));
  core::Core core{0, 0};
  core.use(facts_decoder());
  core.add_plan(recorded->plan->number, recorded->plan->plan);
  core::Run& run = core.add(recorded->number);
  bool fits = true;
  auto read = state_->each_chunk(
      *recorded, [&](std::uint64_t first, std::string_view chunk) { return fits = core.replay(run, chunk, first); });
  if (!read) return std::unexpected{read.error()};
  if (!fits || run.plan == nullptr) return damaged("the events of run " + to_string(id) + " do not fit together");
  auto view = state_->view_of(run);
  if (!view) return std::unexpected{view.error()};
  std::string recorded_state;
  std::string replayed_state;
  core::encode_state(*recorded, recorded_state);
  core::encode_state(run, replayed_state);
  return Replayed{*std::move(view), recorded_state == replayed_state};
}

// ---- dead letters ----------------------------------------

namespace {

void add_letters(const RunId& id, core::Run& run, std::size_t limit, std::vector<DeadLetter>& letters) {
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    core::StepState& state = run.steps[step];
    state.for_each_item([&](std::uint32_t index, core::Item& item) {
      if (!item.dead_letter || letters.size() >= limit) return;
      DeadLetter letter{.run = id, .flow = run.plan->plan->name, .step = *run.step_plan(step).name, .item = index};
      letter.has_items = state.map != nullptr;
      letter.attempts = item.attempt;
      letter.time = wall_time(item.due);
      if (item.trouble != nullptr) {
        letter.failure = item.trouble->failure;
        letter.reason = item.trouble->reason;
      }
      letters.push_back(std::move(letter));
    });
  }
}

bool may_have_letters(const core::Plan& plan) {
  return std::ranges::any_of(plan.steps,
                             [](const core::StepPlan& step) { return step.on_failure == OnFailure::dead_letter; });
}

}  // namespace

std::expected<std::vector<DeadLetter>, Error> ShardSnapshot::dead_letters(const std::optional<RunId>& wanted,
                                                                          std::size_t limit) {
  std::vector<DeadLetter> letters;
  const auto look_into = [&](const RunId& id) -> store::Result<void> {
    const auto loaded = state_->load(id);
    if (!loaded) return std::unexpected{loaded.error()};
    if (*loaded == nullptr) return no_such_run(to_string(id));
    add_letters(id, **loaded, limit, letters);
    return {};
  };
  if (wanted) {
    if (auto looked = look_into(*wanted); !looked) return std::unexpected{looked.error()};
    return letters;
  }
  if (auto loaded = state_->load_plans(); !loaded) return std::unexpected{loaded.error()};
  const auto plans = state_->store->read_plans();
  if (!plans) return std::unexpected{plans.error()};
  std::vector<std::uint32_t> keeping;  // plans that keep letters
  for (const store::StoredPlan& plan : *plans) {
    const core::NumberedPlan* const known = state_->core.plan(plan.number);
    if (known != nullptr && may_have_letters(*known->plan)) keeping.push_back(plan.number);
  }
  if (keeping.empty()) return letters;
  std::vector<std::pair<std::uint64_t, RunId>> runs;
  for (const std::uint64_t number : state_->journal_runs) {
    const core::Run& run = *state_->core.find(number);
    if (std::ranges::binary_search(keeping, run.plan->number))
      runs.emplace_back(number, state_->id(number, run.created));
  }
  std::uint64_t below = 0;
  for (bool more = true; more;) {
    const auto rows = state_->store->find({}, below, page_max);
    if (!rows) return std::unexpected{rows.error()};
    for (const store::StoredRun& row : *rows) {
      below = row.run;
      if (std::ranges::binary_search(keeping, row.plan) && !state_->is_in_journal(row.run))
        runs.emplace_back(row.run, state_->id(row.run, row.created));
    }
    more = rows->size() == page_max;
  }
  std::ranges::sort(runs, std::greater<>{}, &std::pair<std::uint64_t, RunId>::first);
  for (const auto& [number, id] : runs) {
    if (letters.size() >= limit) break;
    if (auto looked = look_into(id); !looked) return std::unexpected{looked.error()};
  }
  return letters;
}

}  // namespace reprise::runtime
