// What has to be read from the store, who waits for it, and what is done with the answers.
//
// What is in memory is always newer than what was read. So an answer says something only about a run that is not in memory, and was not
// there either since the store was asked: left_memory() and removed() tell what such an answer is worth nothing about.
#include <algorithm>

#include "base/overloaded.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

// 0: an input of no run, or of one that is in memory.
std::uint64_t number_named_in(const Input& input) {
  const RunId* const run = run_named_in(input);
  return run != nullptr ? number_in(*run) : 0;
}

}  // namespace

// ---- inputs that wait ----------------------------------------

// In trouble everybody is told so at once.
bool Loop::must_wait_behind_others(const Input& input) const {
  return !waiting_runs_.empty() && !trouble_ && waiting_runs_.contains(number_named_in(input));
}

void Loop::put_aside(Input&& input) {
  // Nobody could be told of the end of Allow, and there are no more of them than runs.
  if (waiting_.size() >= settings_.waiting_max && !std::holds_alternative<Allow>(input)) {
    return refuse(input, {ErrorCode::full,
                          std::to_string(waiting_.size()) + " requests wait for the store already: try again later"});
  }
  if (const std::uint64_t run = number_named_in(input); run != 0) waiting_runs_.insert(run);
  waiting_.push_back(std::move(input));
}

void Loop::refuse(Input& input, const Error& error) {
  const auto tell = [&](auto& kind) { kind.reply->done(std::unexpected{error}); };
  std::visit(base::Overloaded{[&](Submit& kind) { tell(kind); }, [&](Operate& kind) { tell(kind); },
                              [&](Ask& kind) { tell(kind); }, [&](Find& kind) { tell(kind); },
                              [](Reported& kind) { kind.report.answer(exec::ReportTaken::not_now); }, [](auto&) {}},
             input);
}

void Loop::refuse_finds(const Error& error) {
  for (Find& find : std::exchange(finds_, {})) find.reply->done(std::unexpected{error});
  if (finding_) finding_->reply->done(std::unexpected{error});
  finding_.reset();
}

// Those that still have to wait stand in the same order as before.
void Loop::try_waiting_again(Time now) {
  tries_again_ = false;
  auto waiting = std::exchange(waiting_, {});
  waiting_runs_.clear();
  for (Input& input : waiting) handle(std::move(input), now);
}

// ---- what an input needs ----------------------------------------

Loop::Looked<Loop::Loaded> Loop::load(const RunId& wanted) {
  const std::uint64_t number = number_in(wanted);
  if (retention_.is_removing(number)) return Loaded{};
  if (core::Run* const run = core_.find(number); run != nullptr) {
    return Loaded{id(number, run->created) == wanted ? run : nullptr, false};
  }
  const auto* const row = look_ups_.row(number);
  if (row == nullptr) return std::nullopt;
  if (!*row) return std::unexpected{row->error()};
  if (!**row || id(number, (**row)->created) != wanted) return Loaded{};
  core::Run* const run = revive(***row);
  if (run == nullptr) return std::unexpected{unreadable_row(number)};
  return Loaded{run, true};
}

void Loop::unload(const Loaded& loaded) {
  if (!loaded.fresh || loaded.run->touched) return;
  forget(*loaded.run);
}

Loop::Looked<std::optional<RunId>> Loop::id_of_key(const std::string& key) {
  const store::Result<std::optional<RunId>> nobody = std::nullopt;
  if (key.empty()) return nobody;
  KeyOwner owner;
  if (const auto young = young_keys_.find(key)) {
    owner.run = *young;
  } else {
    const auto* const stored = look_ups_.owner(key);
    if (stored == nullptr) return std::nullopt;
    if (!*stored) return std::unexpected{stored->error()};
    if (!**stored) return nobody;
    owner = ***stored;
  }
  if (retention_.is_removing(owner.run)) return nobody;
  if (const core::Run* const run = core_.find(owner.run); run != nullptr) return id(owner.run, run->created);
  if (!owner.created) return nobody;
  return id(owner.run, *owner.created);
}

// ---- requests ----------------------------------------

const ReadRequest* Loop::begin_read(Reading kind, Time now) {
  if (trouble_) return nullptr;
  return kind == Reading::look_ups ? begin_look_ups(now) : begin_listing(now);
}

const ReadRequest* Loop::begin_look_ups(Time now) {
  if (looking_up_.is_reading) return nullptr;
  ReadRequest& request = looking_up_.request;
  request = {};
  if (loading_ && now >= read_again_) request.open = {open_cursor_, settings_.rows_a_turn};
  request.due = due_runs_to_read(now);
  if (request.is_empty() && !look_ups_.has_wanted()) return nullptr;
  look_ups_.put_wanted(request);
  looking_up_.is_reading = true;
  is_spoiled_ = false;
  return &request;
}

const ReadRequest* Loop::begin_listing(Time now) {
  if (listing_.is_reading) return nullptr;
  ReadRequest& request = listing_.request;
  request = {};
  if (!finds_.empty()) {
    finding_ = std::move(finds_.front());
    finds_.pop_front();
    const FindReply& reply = *finding_->reply;
    request.find = {filter_of(reply.query), reply.below, limit_of(reply.query)};
  }
  request.expired = retention_.question(now, next_commit_ - 1 - outstanding_.size());
  if (request.is_empty()) return nullptr;
  meanwhile_ = {};
  listing_.is_reading = true;
  return &request;
}

// ---- answers ----------------------------------------

void Loop::end_read(Reading kind, ReadAnswer&& answer, Time now) {
  if (!answer.has_error()) read_trouble_.reset();
  kind == Reading::look_ups ? end_look_ups(std::move(answer), now) : end_listing(std::move(answer), now);
}

void Loop::end_look_ups(ReadAnswer&& answer, Time now) {
  looking_up_.is_reading = false;
  was_told_ = true;
  const ReadRequest& request = looking_up_.request;
  look_ups_.take(request, answer, is_spoiled_);
  if (answer.open) take_open_runs(*answer.open, now);
  if (answer.due) take_due_runs(*request.due, answer, now);
  try_waiting_again(now);
}

void Loop::end_listing(ReadAnswer&& answer, Time now) {
  listing_.is_reading = false;
  if (answer.expired && *answer.expired) remove_expired(**answer.expired, now);
  if (!finding_) return;  // told already what kept it
  finish_find(*std::exchange(finding_, std::nullopt), *answer.find);
}

// The store is asked again, but not at once.
void Loop::reading_failed(const Error& why, Time now) {
  if (why.code == ErrorCode::store_gone) return give_up(why);
  read_trouble_ = why;
  constexpr Duration read_pause = std::chrono::milliseconds{50};
  read_again_ = now + read_pause.count();
}

void Loop::left_memory(const core::Run& run) {
  look_ups_.changed(run.number);
  if (!listing_.is_reading) return;
  meanwhile_.changed.insert(run.number);
  if (listing_.request.find)
    meanwhile_.left.insert_or_assign(run.number,
                                     MeanwhileRuns::Left{info_of(run, {secret_, slot_}), run.plan->number});
}

void Loop::removed(std::span<const std::uint64_t> runs) {
  retention_.removed(runs);
  for (const std::uint64_t run : runs) {
    look_ups_.changed(run);
    if (listing_.is_reading) meanwhile_.removed.insert(run);
  }
}

// ---- lists ----------------------------------------

void Loop::take(Find&& find, Time) {
  if (trouble_) return find.reply->done(std::unexpected{*trouble_});
  if (finds_.size() >= settings_.waiting_max)
    return find.reply->done(std::unexpected{Error{
        ErrorCode::full, std::to_string(finds_.size()) + " requests wait for the store already: try again later"}});
  finds_.push_back(std::move(find));
}

void Loop::finish_find(Find&& find, const store::Result<Rows>& rows) {
  FindReply& reply = *find.reply;
  if (!rows) return reply.done(std::unexpected{rows.error()});
  reply.found = found_runs(reply.query, reply.below, *rows, core_, {secret_, slot_}, meanwhile_);
  answer_later(std::move(find.reply), {});
}

void Loop::remove_expired(const std::vector<std::uint64_t>& expired, Time now) {
  std::size_t removed = 0;
  for (const std::uint64_t run : expired) {
    if (core_.find(run) != nullptr || meanwhile_.knows(run)) continue;
    if (!retention_.remove(run)) continue;
    filling_.removals.push_back(run);
    ++removed;
  }
  retention_.found(expired.size(), removed, next_commit_, now);
}

}  // namespace reprise::runtime
