#include "runtime/shard_reader.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/hex.hpp"
#include "event/codec.hpp"
#include "exec/function/list.hpp"
#include "exec/secrets/sealing.hpp"

namespace reprise::runtime {
namespace {

using event::Time;

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}
std::unexpected<Error> damaged(std::string message) { return failure(ErrorCode::store_damaged, std::move(message)); }
std::unexpected<Error> missing(const RunId& id) { return std::unexpected{no_such_run(to_string(id))}; }

WallTime wall_time(Time time) { return WallTime{Duration{time}}; }

StepView step_view(const core::StepPlan& plan, const core::StepState& state) {
  return {.name = *plan.name,
          .status = state.status,
          .has_items = plan.for_each || state.map != nullptr,
          .items = state.items,
          .running = state.running,
          .succeeded = state.succeeded,
          .failed = state.failed,
          .canceled = state.canceled,
          .visits = state.visits};
}

ItemView item_view(const core::StepPlan& plan, const core::StepState& state, std::uint32_t index,
                   const core::Item& item) {
  ItemView view{.step = *plan.name,
                .item = index,
                .has_items = state.map != nullptr,
                .status = item.status,
                .attempts = item.attempt,
                .dead_letter = item.dead_letter,
                .skipped = !item.has_begun() && item.trouble != nullptr &&
                           item.trouble->reason == StopReason::circuit_open,
                .due = wall_time(item.due)};
  if (item.trouble == nullptr) return view;
  view.failure = &item.trouble->failure;
  view.reason = item.trouble->reason;
  return view;
}

void each_touched_item(core::Run& run, const std::function<bool(const ItemView&)>& visit) {
  bool going = true;
  for (std::uint32_t step = 0; going && step < run.step_count(); ++step) {
    core::StepState& state = run.steps[step];
    state.for_each_item([&](std::uint32_t index, const core::Item& item) {
      if (going && item.status != core::ItemStatus::untouched)
        going = visit(item_view(run.step_plan(step), state, index, item));
    });
  }
}

bool may_have_letters(const core::Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const core::StepPlan& step) {
    return step.on_failure == OnFailure::dead_letter || step.effect == Effect::at_most_once;  // unclear ones are kept
  });
}

}  // namespace

// ---- events ----------------------------------------

EventTeller::EventTeller(const RunId& run, const core::Plan& plan, const std::function<bool(Event&&)>& visit)
    : history_{run, core::step_labels(plan)}, visit_{visit} {}

bool EventTeller::tell(std::uint64_t first_sequence, std::string_view chunk) {
  event::ChunkReader reader{chunk, first_sequence};
  event::Record record;
  while (going_ && whole_ && reader.next(record)) {
    whole_ = record.sequence == ++sequence_;
    if (whole_) going_ = visit_(history_.add(record));
  }
  whole_ = whole_ && reader.ok();
  return going_ && whole_;
}

std::expected<void, Error> ShardReader::each_event(const RunId& id, const std::function<bool(Event&&)>& visit) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const run = *loaded;
  if (run == nullptr) return missing(id);
  EventTeller teller{id, *run->plan->plan, visit};
  auto read = each_chunk(*run, [&](std::uint64_t first, std::string_view chunk) { return teller.tell(first, chunk); });
  if (!read) return read;
  if (!teller.is_whole() || (!teller.has_enough() && teller.sequence() != run->sequence)) {
    const auto row = store().read_run(run->number);
    if (run->has_row && row && !*row) return missing(id);  // it was removed while it was read
    return damaged("the events of run " + to_string(id) + " cannot be read beyond number " +
                   std::to_string(teller.sequence()));
  }
  return {};
}

// First what had left the journal with its images, then what was still in it. What was recorded since then is of another moment.
store::Result<void> ShardReader::each_chunk(const core::Run& run, const store::Store::ChunkReader& visit) {
  bool going = true;
  if (run.has_row) {
    const std::uint64_t end = run.events.empty() ? run.sequence + 1 : run.events_first;
    auto read = store().read_history(run.number, [&](std::uint64_t first, std::string_view chunk) {
      if (first >= end) return false;
      going = visit(first, chunk);
      return going;
    });
    if (!read) return read;
  }
  if (going && !run.events.empty()) visit(run.events_first, run.events);
  return {};
}

// ---- one run ----------------------------------------

std::expected<std::optional<RunView>, Error> ShardReader::run(const RunId& id) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  if (*loaded == nullptr) return std::nullopt;
  return view_of(**loaded);
}

store::Result<RunView> ShardReader::view_of(const core::Run& run) {
  RunView view{.info = info_of(run, key()),
               .outcome = core::outcome_of(run),
               .sequence = run.sequence,
               .plan = core::own_plan(run)};
  auto input = bytes_of(run.input);
  if (!input) return std::unexpected{input.error()};
  view.input = *std::move(input);
  if (const event::Payload* const output = core::output_of(run); output != nullptr && output->hashed) {
    auto bytes = bytes_of(*output);
    if (!bytes) return std::unexpected{bytes.error()};
    view.outcome.output = *std::move(bytes);
  }
  for (std::uint32_t step = 0; step < run.step_count(); ++step)
    view.steps.push_back(step_view(run.step_plan(step), run.steps[step]));
  return view;
}

std::expected<void, Error> ShardReader::each_item(const RunId& id, const std::function<bool(const ItemView&)>& visit) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  if (*loaded == nullptr) return missing(id);
  each_touched_item(**loaded, visit);
  return {};
}

std::expected<std::string, Error> ShardReader::item_input(const RunId& id, std::string_view step, std::uint32_t item) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const run = *loaded;
  if (run == nullptr) return missing(id);
  const auto& steps = run->plan->plan->steps;
  const auto found = std::ranges::find_if(steps, [&](const core::StepPlan& plan) { return *plan.name == step; });
  if (found == steps.end()) return failure(ErrorCode::not_found, "The run has no step \"" + std::string{step} + "\".");
  const core::StepState& state = run->steps[static_cast<std::size_t>(found - steps.begin())];
  if (item >= state.items) {
    return failure(ErrorCode::not_found, "Step \"" + std::string{step} + "\" has no item " + std::to_string(item) +
                                             ": it has " + std::to_string(state.items) + ", counted from 0.");
  }
  if (state.map == nullptr) return run->plan->plan->is_document ? std::string{} : bytes_of(run->input);
  const bool was_given_items = !found->for_each;
  auto list = bytes_of(was_given_items ? run->input : state.map->list);
  if (!list) return list;
  const auto element = exec::list_element(*list, item);
  if (!element)
    return damaged("item " + std::to_string(item) + " of step \"" + std::string{step} + "\" cannot be read");
  return run->plan->plan->is_document ? exec::shown(*element) : std::string{*element};
}

std::expected<std::vector<std::string>, Error> ShardReader::item_inputs(const RunId& id, std::string_view step,
                                                                        std::size_t limit) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  std::vector<std::string> inputs;
  const core::Run* const run = *loaded;
  if (run == nullptr) return missing(id);
  const auto& steps = run->plan->plan->steps;
  const auto found = std::ranges::find_if(steps, [&](const core::StepPlan& plan) { return *plan.name == step; });
  if (found == steps.end() || !run->plan->plan->is_document) return inputs;
  const core::StepState& state = run->steps[static_cast<std::size_t>(found - steps.begin())];
  if (state.map == nullptr) return inputs;
  const auto list = bytes_of(state.map->list);
  if (!list) return std::unexpected{list.error()};
  for (std::uint32_t item = 0; item < std::min<std::size_t>(state.items, limit); ++item) {
    const auto element = exec::list_element(*list, item);
    if (!element) break;
    inputs.push_back(exec::shown(*element));
  }
  return inputs;
}

std::expected<Replayed, Error> ShardReader::replay(const RunId& id) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  const core::Run* const recorded = *loaded;
  if (recorded == nullptr) return missing(id);
  core::Core core{0, 0};
  core.use(facts_decoder());
  core.add_plan(recorded->plan->number, recorded->plan->plan);
  core::Run& run = core.add(recorded->number);
  bool fits = true;
  auto read = each_chunk(
      *recorded, [&](std::uint64_t first, std::string_view chunk) { return fits = core.replay(run, chunk, first); });
  if (!read) return std::unexpected{read.error()};
  if (!fits || run.plan == nullptr) return damaged("the events of run " + to_string(id) + " do not fit together");
  auto view = view_of(run);
  if (!view) return std::unexpected{view.error()};
  std::string recorded_state;
  std::string replayed_state;
  core::encode_state(*recorded, recorded_state);
  core::encode_state(run, replayed_state);
  return Replayed{*std::move(view), recorded_state == replayed_state};
}

store::Result<std::string> ShardReader::bytes_of(const event::Payload& payload) {
  if (!payload.hashed) return payload.bytes;
  auto bytes = store().read_payload(payload.bytes);
  if (!bytes) return std::unexpected{bytes.error()};
  if (!*bytes) return damaged("a large payload is missing from the store");
  return std::move(**bytes);
}

std::expected<std::string, Error> ShardReader::payload(const RunId&, std::string_view hash) {
  auto bytes = base::bytes_of_hexadecimal(hash);
  if (!bytes) return failure(ErrorCode::invalid, "\"" + std::string{hash} + "\" is not the hash of a payload");
  return bytes_of({.bytes = *std::move(bytes), .size = 0, .hashed = true});
}

// ---- finding ----------------------------------------

// Summaries come from rows, which have no details; what is in memory has them.
std::expected<void, Error> ShardReader::add_details(RunInfo& info) {
  if (info.changed != WallTime{}) return {};
  const auto loaded = load(info.id);
  if (!loaded) return std::unexpected{loaded.error()};
  if (*loaded != nullptr) info = info_of(**loaded, key());  // else it was removed meanwhile
  return {};
}

std::expected<FoundRuns, Error> ShardReader::find_below(const RunQuery& query, std::uint64_t below) {
  RunQuery rest = query;
  rest.limit = limit_of(query);
  FoundRuns page{.next_below = below};
  do {
    auto some = some_below(rest, page.next_below);
    if (!some) return some;
    rest.limit -= some->runs.size();
    std::ranges::move(some->runs, std::back_inserter(page.runs));
    std::ranges::move(some->plans, std::back_inserter(page.plans));
    page.next_below = some->next_below;
  } while (rest.limit > 0 && page.next_below > 1);
  for (RunInfo& info : page.runs) {
    if (!query.details) break;
    if (auto added = add_details(info); !added) return std::unexpected{added.error()};
  }
  return page;
}

std::expected<RunPage, Error> ShardReader::find(const RunQuery& query, std::string_view cursor) {
  std::uint64_t below = 0;
  if (!cursor.empty()) {
    const char* const end = cursor.data() + cursor.size();
    const auto [stop, mistake] = std::from_chars(cursor.data(), end, below);
    if (mistake != std::errc{} || stop != end || below == 0)
      return failure(ErrorCode::invalid, "this is not a cursor that find() gave");
  }
  auto found = find_below(query, below);
  if (!found) return std::unexpected{found.error()};
  RunPage page{.runs = std::move(found->runs)};
  if (found->next_below > 1) page.cursor = std::to_string(found->next_below);
  return page;
}

// ---- dead letters ----------------------------------------

std::expected<std::vector<DeadLetter>, Error> ShardReader::dead_letters_of(const RunId& id, std::size_t limit) {
  const auto loaded = load(id);
  if (!loaded) return std::unexpected{loaded.error()};
  if (*loaded == nullptr) return missing(id);
  std::vector<DeadLetter> letters;
  each_touched_item(**loaded, [&](const ItemView& item) {
    if (letters.size() >= limit) return false;
    if (!item.dead_letter) return true;
    DeadLetter letter{.run = id,
                      .flow = (*loaded)->plan->plan->name,
                      .step = std::string{item.step},
                      .item = item.item,
                      .has_items = item.has_items,
                      .attempts = item.attempts,
                      .reason = item.reason,
                      .skipped = item.skipped,
                      .time = item.due};
    if (item.failure != nullptr) letter.failure = *item.failure;
    letters.push_back(std::move(letter));
    return true;
  });
  return letters;
}

std::expected<std::vector<std::uint32_t>, Error> ShardReader::plans_with_letters() {
  const auto plans = store().read_plans();
  if (!plans) return std::unexpected{plans.error()};
  std::vector<std::uint32_t> numbers;
  for (const store::StoredPlan& row : *plans) {
    const auto known = plan(row.number);
    if (known != nullptr && may_have_letters(*known)) numbers.push_back(row.number);
  }
  return numbers;
}

std::expected<std::vector<DeadLetter>, Error> ShardReader::dead_letters(std::size_t limit) {
  std::vector<DeadLetter> letters;
  const auto keeping = plans_with_letters();
  if (!keeping) return std::unexpected{keeping.error()};
  if (keeping->empty()) return letters;
  std::uint64_t below = 0;
  do {
    const auto page = find_below({.limit = page_max}, below);
    if (!page) return std::unexpected{page.error()};
    for (std::size_t index = 0; index < page->runs.size() && letters.size() < limit; ++index) {
      if (!std::ranges::binary_search(*keeping, page->plans[index])) continue;
      auto more = dead_letters_of(page->runs[index].id, limit - letters.size());
      if (!more && more.error().code == ErrorCode::not_found) continue;  // removed meanwhile
      if (!more) return more;
      std::ranges::move(*more, std::back_inserter(letters));
    }
    below = page->next_below;
  } while (below > 1 && letters.size() < limit);
  return letters;
}

}  // namespace reprise::runtime
