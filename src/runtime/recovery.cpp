// From the store back into memory: the journal first, then open runs turn by turn, and parked ones when they are due.
#include <algorithm>
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "runtime/stored_runs.hpp"

namespace reprise::runtime {

store::Result<std::vector<BookedPlan>> Loop::recover(const core::PatternCompiler& compile, Time now) {
  core_.use(core::FactsDecoder{compile, settings_.types});
  const auto plans = store_.read_plans();
  if (!plans) return std::unexpected{plans.error()};
  std::vector<BookedPlan> booked;
  for (const store::StoredPlan& row : *plans) {
    auto plan = core::decode_plan(row.body, compile, settings_.types);
    if (!plan) return std::unexpected{plan.error()};
    booked.push_back({row.number, std::make_shared<const core::Plan>(*std::move(plan)), row.body});
    core_.add_plan(row.number, booked.back().plan);
    if (stored_plans_.size() <= row.number) stored_plans_.resize(row.number + 1, false);
    stored_plans_[row.number] = true;
  }
  const auto last_commit = store_.last_commit();
  if (!last_commit) return std::unexpected{last_commit.error()};
  next_commit_ = *last_commit + 1;
  const auto last_run = store_.last_run();
  if (!last_run) return std::unexpected{last_run.error()};
  next_run_ = *last_run + 1;
  const auto open = store_.count_open();
  if (!open) return std::unexpected{open.error()};
  open_ = *open;
  if (auto replayed = replay_journal(now); !replayed) return std::unexpected{replayed.error()};
  const auto due = store_.next_due(due_cursor_);
  if (!due) return std::unexpected{due.error()};
  next_due_ = *due;
  retention_.begin(now);
  return booked;
}

store::Result<void> Loop::replay_journal(Time now) {
  std::vector<std::uint64_t> order;
  auto replayed = runtime::replay_journal(store_, core_,
                                          {.named = [&](std::uint64_t run) { next_run_ = std::max(next_run_, run + 1); },
                                           .revive = [&](const store::StoredRun& row) { return revive(row); },
                                           .found =
                                               [&](core::Run& run, std::uint64_t commit) {
                                                 if (!std::exchange(run.counted, true)) ++open_;  // new, or reopened
                                                 order.push_back(run.number);
                                                 run.oldest_commit = commit;
                                                 journal_.add_run(run.number, commit);
                                               }});
  if (!replayed) return replayed;
  auto sizes = store_.read_journal([&](std::uint64_t commit, std::string_view frame) {
    journal_.add_frame(commit, frame.size());
    return true;
  });
  if (!sizes) return sizes;
  journal_.inherit();
  for (const std::uint64_t number : order) {
    core::Run& run = *core_.find(number);
    core_.adopt(run, now);
    account(run);
  }
  return {};
}

core::Run* Loop::revive(const store::StoredRun& row) {
  core::Run* const run = runtime::revive(core_, row);
  if (run == nullptr) return nullptr;
  run->framed_sequence = run->sequence;
  run->counted = is_open(row.status);
  account(*run);
  return run;
}

store::Result<Loop::Loaded> Loop::load(const RunId& wanted) {
  const std::uint64_t number = number_in(wanted);
  if (retention_.is_removing(number)) return Loaded{};
  if (core::Run* const run = core_.find(number); run != nullptr) {
    return Loaded{id(number, run->created) == wanted ? run : nullptr, false};
  }
  const auto row = store_.read_run(number);
  if (!row) return std::unexpected{row.error()};
  if (!*row || id(number, (*row)->created) != wanted) return Loaded{};
  core::Run* const run = revive(**row);
  if (run == nullptr) return std::unexpected{unreadable_row(number)};
  return Loaded{run, true};
}

void Loop::unload(const Loaded& loaded) {
  if (!loaded.fresh || loaded.run->touched) return;
  forget(*loaded.run);
}

// A run that was stored before anybody looked at it may turn out to wait for long, and nobody would touch it: it leaves again, or
// memory would fill with its like.
void Loop::take_in(core::Run& run, Time now) {
  core_.adopt(run, now);
  account(run);
  if (run.touched || run.has_ended() || !park_until(run, now)) return;
  run.touched = true;
  core_.effects().touched.push_back(&run);
}

// The store is asked again, but not at once.
void Loop::reading_failed(const Error& why, Time now) {
  if (why.code == ErrorCode::store_gone) return give_up(why);
  read_trouble_ = why;
  constexpr Duration read_pause = std::chrono::milliseconds{50};
  read_again_ = now + read_pause.count();
}

// Runs that were busy when their image was written to shorten the journal.
bool Loop::load_open_runs(Time now) {
  if (!loading_ || trouble_ || now < read_again_) return false;
  const auto rows = store_.read_open(open_cursor_, settings_.rows_a_turn);
  if (!rows) {
    reading_failed(rows.error(), now);
    return false;
  }
  read_trouble_.reset();
  for (const store::StoredRun& row : *rows) {
    open_cursor_ = row.run;
    if (core_.find(row.run) != nullptr) continue;
    core::Run* const run = revive(row);
    if (run == nullptr) continue;
    take_in(*run, now);
  }
  loading_ = rows->size() == settings_.rows_a_turn;
  return loading_;
}

bool Loop::load_due_runs(Time now) {
  Time before = now + settings_.park_after.count() / 2;
  if (trouble_ || now < read_again_ || !next_due_ || *next_due_ > before || !has_room_to_load()) return false;
  // The store cannot show yet what is on its way to it. The cursor must not pass those.
  const Time on_the_way = earliest_due_outstanding();
  before = std::min(before, on_the_way - 1);
  const auto rows = store_.read_due(before, due_cursor_, settings_.rows_a_turn);
  if (!rows) {
    reading_failed(rows.error(), now);
    return false;
  }
  read_trouble_.reset();
  for (const store::StoredRun& row : *rows) {
    due_cursor_ = {row.due, row.run};
    if (core_.find(row.run) != nullptr) continue;
    core::Run* const run = revive(row);
    if (run == nullptr) continue;
    take_in(*run, now);
  }
  if (rows->size() == settings_.rows_a_turn) return true;
  if (const auto next = store_.next_due(due_cursor_)) {
    next_due_ = *next;
    if (on_the_way != INT64_MAX) next_due_ = std::min(on_the_way, next_due_.value_or(on_the_way));
  } else {
    reading_failed(next.error(), now);
  }
  return false;
}

Time Loop::earliest_due_outstanding() const noexcept {
  Time earliest = INT64_MAX;
  for (const auto& batch : outstanding_) earliest = std::min(earliest, batch->earliest_due);
  return earliest;
}

void Loop::apply_retention(Time now) {
  if (trouble_) return;
  const auto question = retention_.question(now, next_commit_ - 1 - outstanding_.size());
  if (!question) return;
  const auto expired = store_.expired(question->ended_before, question->keep, question->limit);
  if (!expired) return;
  std::size_t removed = 0;
  for (const std::uint64_t run : *expired) {
    if (core_.find(run) != nullptr || !retention_.remove(run)) continue;
    filling_.removals.push_back(run);
    ++removed;
  }
  retention_.found(expired->size(), removed, next_commit_, now);
}

}  // namespace reprise::runtime
