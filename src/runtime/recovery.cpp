// From the store back into memory: the journal first, then open runs turn by turn, and parked ones when they are due.
#include <algorithm>
#include <unordered_map>

#include "event/codec.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

std::unexpected<Error> damaged(std::string message) {
  return std::unexpected{Error{ErrorCode::store_damaged, std::move(message)}};
}

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
    adopt(run, now);
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
  if (run == nullptr) return damaged("the row of run " + std::to_string(number) + " cannot be read");
  return Loaded{run, true};
}

void Loop::unload(const Loaded& loaded) {
  if (!loaded.fresh || loaded.run->touched) return;
  forget(*loaded.run);
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
