// From the store back into memory: the journal first, then open runs turn by turn, and parked ones when they are due.
#include <algorithm>
#include <unordered_map>

#include "event/codec.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

// Reads the list of runs that have an image in the commit of this frame.
template <class F>
void for_each_imaged(const event::FramePart& part, F&& visit) {
  event::ByteReader in{part.chunk.substr(std::min(event::chunk_header_bytes, part.chunk.size()))};
  std::uint64_t run = 0;
  while (!in.at_end()) {
    run += static_cast<std::uint64_t>(in.signed_varint());
    visit(run);
  }
}

}  // namespace

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
  // Two passes: a run's events count only from its last image on, and most runs in the journal have ended.
  std::unordered_map<std::uint64_t, std::uint64_t> imaged;  // run → commit of its last image
  std::optional<Error> mistake;
  const auto read_frames = [&](const auto& visit) -> store::Result<void> {
    return store_.read_journal([&](std::uint64_t commit, std::string_view frame) {
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
    if (part.run == 0) for_each_imaged(part, [&](std::uint64_t run) { imaged[run] = commit; });
  });
  if (!first) return first;
  std::vector<std::uint64_t> order;
  auto second = read_frames([&](std::uint64_t commit, const event::FramePart& part) {
    if (part.run == 0) return;
    next_run_ = std::max(next_run_, part.run + 1);
    const auto image = imaged.find(part.run);
    if (image != imaged.end() && image->second >= commit) return;
    core::Run* run = core_.find(part.run);
    if (run == nullptr) {
      if (part.first_sequence > 1) {
        const auto row = store_.read_run(part.run);
        if (!row) {
          mistake = row.error();
          return;
        }
        if (*row) run = revive(**row);
        if (run != nullptr && !run->counted) {  // reopened since
          ++open_;
          run->counted = true;
        }
      } else {
        run = &core_.add(part.run);
        ++open_;
        run->counted = true;
      }
      if (run == nullptr) {
        mistake =
            Error{ErrorCode::store_damaged, "run " + std::to_string(part.run) + " is in the journal and has no row"};
        return;
      }
      order.push_back(part.run);
      run->oldest_commit = commit;
      journal_.add_run(part.run, commit);
    }
    if (!core_.replay(*run, part.chunk, part.first_sequence)) {
      mistake =
          Error{ErrorCode::store_damaged, "the events of run " + std::to_string(part.run) + " do not fit together"};
    }
  });
  if (!second) return second;
  if (mistake) return std::unexpected{*mistake};
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
  core::Run& run = core_.add(row.run);
  if (core_.restore(run, row.state)) {
    run.has_row = true;
    run.framed_sequence = run.sequence;
    run.counted = is_open(row.status);
    account(run);
    return &run;
  }
  core_.forget(run);
  return nullptr;
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
