// From the store back into memory: the journal first, then open runs turn by turn, and parked ones when they are due.
#include <algorithm>
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "runtime/stored_runs.hpp"

namespace reprise::runtime {

store::Result<std::vector<BookedPlan>> Loop::recover(const core::PatternCompiler& compile, Time now) {
  began_ = now;
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
  auto replayed =
      runtime::replay_journal(store_, core_,
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
  std::uint64_t last = 0;
  bool is_in_order = true;
  auto sizes = store_.read_journal([&](std::uint64_t commit, std::string_view frame) {
    is_in_order = commit > last && commit < next_commit_;
    if (is_in_order) journal_.add_frame(commit, frame.size());
    last = commit;
    return is_in_order;
  });
  if (!sizes) return sizes;
  if (!is_in_order) {
    return std::unexpected{
        Error{ErrorCode::store_damaged, "commit " + std::to_string(last) + " of the journal is not where it belongs"}};
  }
  journal_.inherit();
  for (const std::uint64_t number : order) {
    core::Run& run = *core_.find(number);
    adopt(run, now);
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

// A run that was stored before anybody looked at it may turn out to wait for long, and nobody would touch it: it leaves again, or
// memory would fill with its like.
void Loop::adopt(core::Run& run, Time now) { core_.adopt(run, now, store_.owner_before_died() ? began_ : 0); }

void Loop::take_in(core::Run& run, Time now) {
  adopt(run, now);
  account(run);
  if (run.touched || run.has_ended() || !park_until(run, now)) return;
  run.touched = true;
  core_.effects().touched.push_back(&run);
}

// Runs that were busy when their image was written to shorten the journal.
void Loop::take_open_runs(const store::Result<Rows>& rows, Time now) {
  if (!rows) return reading_failed(rows.error(), now);
  for (const store::StoredRun& row : *rows) {
    open_cursor_ = row.run;
    if (look_ups_.has_changed(row.run) || core_.find(row.run) != nullptr) continue;
    core::Run* const run = revive(row);
    if (run != nullptr) take_in(*run, now);
  }
  loading_ = rows->size() == settings_.rows_a_turn;
}

// The store cannot show yet what is on its way to it. The cursor must not pass those.
std::optional<ReadRequest::DueRuns> Loop::due_runs_to_read(Time now) {
  if (now < read_again_ || !next_due_ || !has_room_to_load()) return std::nullopt;
  const Time on_the_way = earliest_due_outstanding();
  const Time before = std::min(now + settings_.park_after.count() / 2, on_the_way - 1);
  if (*next_due_ > before) return std::nullopt;
  parked_meanwhile_ = on_the_way;
  return ReadRequest::DueRuns{before, due_cursor_, settings_.rows_a_turn};
}

void Loop::take_due_runs(const ReadRequest::DueRuns& asked, const ReadAnswer& answer, Time now) {
  const auto& rows = *answer.due;
  if (!rows) return reading_failed(rows.error(), now);
  for (const store::StoredRun& row : *rows) {
    due_cursor_ = {row.due, row.run};
    if (look_ups_.has_changed(row.run) || core_.find(row.run) != nullptr) continue;
    core::Run* const run = revive(row);
    if (run != nullptr) take_in(*run, now);
  }
  if (rows->size() == asked.limit || !answer.next_due) return;
  const auto& next = *answer.next_due;
  if (!next) return reading_failed(next.error(), now);
  next_due_ = *next;
  if (parked_meanwhile_ != INT64_MAX) next_due_ = std::min(parked_meanwhile_, next_due_.value_or(parked_meanwhile_));
}

// No run is parked that is due before: it has been read by now, or is being read, and nobody would load the run again.
Time Loop::parked_after() const noexcept {
  const bool is_reading = looking_up_.is_reading && looking_up_.request.due;
  return is_reading ? std::max(due_cursor_.due, looking_up_.request.due->before) : due_cursor_.due;
}

Time Loop::earliest_due_outstanding() const noexcept {
  Time earliest = INT64_MAX;
  for (const auto& batch : outstanding_) earliest = std::min(earliest, batch->earliest_due);
  return earliest;
}

}  // namespace reprise::runtime
