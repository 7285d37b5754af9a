#include "runtime/shard_snapshot_state.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "runtime/parentage.hpp"
#include "text/pattern.hpp"

namespace reprise::runtime {
namespace {

std::unexpected<Error> damaged(std::string message) {
  return std::unexpected{Error{ErrorCode::store_damaged, std::move(message)}};
}

std::shared_ptr<const MessagePattern> compile(std::string_view expression) {
  auto pattern = text::compile_pattern(expression);
  return pattern ? *std::move(pattern) : nullptr;
}

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

}  // namespace

core::FactsDecoder facts_decoder() { return {compile, nullptr}; }

store::Result<void> ShardSnapshot::State::load_plans() {
  const auto plans = store->read_plans();
  if (!plans) return std::unexpected{plans.error()};
  for (const store::StoredPlan& row : *plans) {
    if (core.plan(row.number) != nullptr) continue;
    auto plan = core::decode_plan(row.body, compile, nullptr);
    if (!plan) return std::unexpected{plan.error()};
    core.add_plan(row.number, std::make_shared<const core::Plan>(*std::move(plan)));
  }
  return {};
}

core::Run* ShardSnapshot::State::revive(const store::StoredRun& row) {
  core::Run& run = core.add(row.run);
  if (core.restore(run, row.state)) {
    run.has_row = true;
    return &run;
  }
  core.forget(run);
  return nullptr;
}

// A run that the journal speaks of for the first time: new, or one whose image is older than this.
core::Run* ShardSnapshot::State::first_seen(const event::FramePart& part, std::optional<Error>& mistake) {
  core::Run* run = nullptr;
  if (part.first_sequence <= 1) {
    run = &core.add(part.run);
  } else {
    const auto row = store->read_run(part.run);
    if (!row) {
      mistake = row.error();
      return nullptr;
    }
    if (*row) run = revive(**row);
  }
  if (run == nullptr) {
    mistake = Error{ErrorCode::store_damaged, "run " + std::to_string(part.run) + " is in the journal and has no row"};
    return nullptr;
  }
  journal_runs.push_back(part.run);
  return run;
}

// As recovery does it (recovery.cpp), without taking over: a run's events count from its last image on.
store::Result<void> ShardSnapshot::State::load_journal() {
  std::unordered_map<std::uint64_t, std::uint64_t> imaged;  // run → commit of its last image
  std::optional<Error> mistake;
  const auto read_frames = [&](const auto& visit) -> store::Result<void> {
    return store->read_journal([&](std::uint64_t commit, std::string_view frame) {
      event::FrameReader reader{frame};
      event::FramePart part;
      while (!mistake && reader.next(part)) visit(commit, part);
      if (!mistake && reader.newer())
        mistake = Error{ErrorCode::store_newer, "the journal was written by a newer version of Reprise"};
      if (!mistake && !reader.ok())
        mistake =
            Error{ErrorCode::store_damaged, "commit " + std::to_string(commit) + " of the journal cannot be read"};
      return !mistake;
    });
  };
  auto first = read_frames([&](std::uint64_t commit, const event::FramePart& part) {
    if (part.run != 0) return;
    event::ByteReader in{part.chunk.substr(std::min(event::chunk_header_bytes, part.chunk.size()))};
    std::uint64_t run = 0;
    while (!in.at_end()) {
      run += static_cast<std::uint64_t>(in.signed_varint());
      imaged[run] = commit;
    }
  });
  if (!first) return first;
  auto second = read_frames([&](std::uint64_t commit, const event::FramePart& part) {
    if (part.run == 0) return;
    const auto image = imaged.find(part.run);
    if (image != imaged.end() && image->second >= commit) return;
    core::Run* run = core.find(part.run);
    if (run == nullptr) run = first_seen(part, mistake);
    if (run == nullptr) return;
    if (!core.replay(*run, part.chunk, part.first_sequence)) {
      mistake =
          Error{ErrorCode::store_damaged, "the events of run " + std::to_string(part.run) + " do not fit together"};
    }
  });
  if (!second) return second;
  if (mistake) return std::unexpected{*mistake};
  std::ranges::sort(journal_runs, std::greater<>{});
  return {};
}

RunInfo ShardSnapshot::State::info_of(const core::Run& run) const {
  RunInfo info{.id = id(run.number, run.created),
               .name = run.plan->plan->name,
               .status = run.status,
               .created = wall_time(run.created),
               .key = run.key};
  if (run.ended != 0) info.ended = wall_time(run.ended);
  if (const auto place = parent_of(run)) info.parent = place->run;
  return info;
}

RunInfo ShardSnapshot::State::info_of(const store::StoredRun& row) const {
  const core::NumberedPlan* const plan = core.plan(row.plan);
  RunInfo info{.id = id(row.run, row.created),
               .name = plan != nullptr ? plan->plan->name : "",
               .status = row.status,
               .created = wall_time(row.created),
               .key = row.key};
  if (row.ended != 0) info.ended = wall_time(row.ended);
  return info;
}

bool ShardSnapshot::State::is_in_journal(std::uint64_t run) const {
  return std::ranges::binary_search(journal_runs, run, std::greater<>{});
}

store::Result<core::Run*> ShardSnapshot::State::load(const RunId& wanted) {
  const std::uint64_t number = number_in(wanted);
  if (core::Run* const run = core.find(number); run != nullptr)
    return id(number, run->created) == wanted ? run : nullptr;
  const auto row = store->read_run(number);
  if (!row) return std::unexpected{row.error()};
  if (!*row || id(number, (*row)->created) != wanted) return nullptr;
  if (core.plan((*row)->plan) == nullptr) {  // younger than this snapshot
    if (auto loaded = load_plans(); !loaded) return std::unexpected{loaded.error()};
  }
  if (visited != 0) core.forget(*core.find(std::exchange(visited, 0)));
  core::Run* const run = revive(**row);
  if (run == nullptr) return damaged("the row of run " + std::to_string(number) + " cannot be read");
  visited = number;
  return run;
}

store::Result<std::string> ShardSnapshot::State::bytes_of(const event::Payload& payload) {
  if (!payload.hashed) return payload.bytes;
  auto bytes = store->read_payload(payload.bytes);
  if (!bytes) return std::unexpected{bytes.error()};
  if (!*bytes) return damaged("a large payload is missing from the store");
  return std::move(**bytes);
}

store::Result<RunView> ShardSnapshot::State::view_of(const core::Run& run) {
  RunView view{
      .info = info_of(run), .outcome = core::outcome_of(run), .sequence = run.sequence, .plan = core::own_plan(run)};
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

// First what had left the journal with its images, then what was still in it. What was recorded since then is of another moment.
store::Result<void> ShardSnapshot::State::each_chunk(const core::Run& run, const store::Store::ChunkReader& visit) {
  bool going = true;
  if (run.has_row) {
    const std::uint64_t end = run.events.empty() ? run.sequence + 1 : run.events_first;
    auto read = store->read_history(run.number, [&](std::uint64_t first, std::string_view chunk) {
      if (first >= end) return false;
      going = visit(first, chunk);
      return going;
    });
    if (!read) return read;
  }
  if (going && !run.events.empty()) visit(run.events_first, run.events);
  return {};
}

}  // namespace reprise::runtime
