#include "runtime/shard_snapshot.hpp"

#include <algorithm>
#include <utility>

#include "core/core.hpp"
#include "text/pattern.hpp"

namespace reprise::runtime {
namespace {

std::shared_ptr<const MessagePattern> compile(std::string_view expression) {
  auto pattern = text::compile_pattern(expression);
  return pattern ? *std::move(pattern) : nullptr;
}

}  // namespace

// The plans and the runs of the journal at one moment, replayed and never live, and a door to the rest.
struct ShardSnapshot::State {
  explicit State(std::unique_ptr<store::StoreView> opened)
      : store{std::move(opened)}, key{store->secret(), store->slot()} {
    core.use(core::FactsDecoder{compile, nullptr});
  }

  store::Result<void> load_plans();  // those that are not known yet
  store::Result<void> load_journal();
  void forget_visited() {
    if (visited != 0) core.forget(*core.find(std::exchange(visited, 0)));
  }

  std::unique_ptr<store::StoreView> store;
  ShardKey key;
  core::Core core{0, 0};      // the runs of the journal, and the visited one; none of them is live
  std::uint64_t visited = 0;  // the run whose row was read last; 0 = none
};

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

// As recovery does it (recovery.cpp), without taking over.
store::Result<void> ShardSnapshot::State::load_journal() {
  return replay_journal(*store, core,
                        {.revive = [&](const store::StoredRun& row) { return revive(core, row); },
                         .found = [](core::Run&, std::uint64_t) {}});
}

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

// ---- what a shard's reader needs ----------------------------------------

ShardKey ShardSnapshot::key() const noexcept { return state_->key; }
store::Store& ShardSnapshot::store() noexcept { return *state_->store; }
core::FactsDecoder ShardSnapshot::facts_decoder() const { return core::FactsDecoder{compile, nullptr}; }

std::shared_ptr<const core::Plan> ShardSnapshot::plan(std::uint32_t number) {
  if (state_->core.plan(number) == nullptr && !state_->load_plans()) return nullptr;
  const core::NumberedPlan* const known = state_->core.plan(number);
  return known != nullptr ? known->plan : nullptr;
}

store::Result<core::Run*> ShardSnapshot::load(const RunId& wanted) {
  core::Core& core = state_->core;
  const std::uint64_t number = number_in(wanted);
  if (core::Run* const run = core.find(number); run != nullptr)
    return key().id(number, run->created) == wanted ? run : nullptr;
  const auto row = state_->store->read_run(number);
  if (!row) return std::unexpected{row.error()};
  if (!*row || key().id(number, (*row)->created) != wanted) return nullptr;
  if (core.plan((*row)->plan) == nullptr) {  // younger than this snapshot
    if (auto loaded = state_->load_plans(); !loaded) return std::unexpected{loaded.error()};
  }
  state_->forget_visited();
  core::Run* const run = revive(core, **row);
  if (run == nullptr) return std::unexpected{unreadable_row(number)};
  state_->visited = number;
  return run;
}

std::expected<FoundRuns, Error> ShardSnapshot::some_below(const RunQuery& query, std::uint64_t below) {
  const auto rows = state_->store->find(filter_of(query), below, limit_of(query));
  if (!rows) return std::unexpected{rows.error()};
  const auto is_unknown = [&](const store::StoredRun& row) { return state_->core.plan(row.plan) == nullptr; };
  if (std::ranges::any_of(*rows, is_unknown)) {
    if (auto loaded = state_->load_plans(); !loaded) return std::unexpected{loaded.error()};
  }
  state_->forget_visited();  // its row may be younger by now
  return found_runs(query, below, *rows, state_->core, key());
}

std::expected<std::optional<RunId>, Error> ShardSnapshot::find_key(std::string_view wanted) {
  std::optional<RunId> found;
  state_->core.for_each_run([&](const core::Run& run) {
    if (run.key == wanted) found = key().id(run.number, run.created);
  });
  if (found || wanted.empty()) return found;
  const auto number = state_->store->run_of_key(wanted);
  if (!number) return std::unexpected{number.error()};
  if (!*number) return std::nullopt;
  const auto row = state_->store->read_run(**number);
  if (!row) return std::unexpected{row.error()};
  if (!*row) return std::nullopt;
  return key().id(**number, (*row)->created);
}

}  // namespace reprise::runtime
