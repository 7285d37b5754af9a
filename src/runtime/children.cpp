// Attempts that go on as runs of their own: sub-flows.
//
// The parent's item is `outside` meanwhile, so it takes no place in the executor, and the child says in its `submitted` event whose work it
// does. The child and the parent's `handed_over` are recorded in one commit, and so are the child's end and what follows from it in the
// parent, whether that is in memory or not: after a crash there is both or neither. A commit waits while a run that it needs for this
// cannot be read.
#include <algorithm>
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "runtime/parentage.hpp"

namespace reprise::runtime {
namespace {

Failure canceled() {
  return {.type = "CanceledError", .message = "canceled while it ran", .failure_class = FailureClass::canceled};
}

Failure refused(std::string message) {
  return {.type = "ValueError",
          .message = std::move(message),
          .failure_class = FailureClass::deterministic,
          .kind = FailureKind::invalid_input};
}

Failure failure_of(const core::Run& child) {
  Failure failure = core::outcome_of(child).failure;
  failure.message = "the flow failed: " + failure.message;
  return failure;
}

}  // namespace

// ---- handing over ----------------------------------------

// In the order in which they came.
void Loop::take(HandOver&& over, Time now) {
  hand_overs_.push_back(std::move(over));
  retry_hand_overs(now);
}

void Loop::retry_hand_overs(Time now) {
  if (hand_overs_.empty() || trouble_ || now < read_again_) return;
  want_children();
  while (!hand_overs_.empty() && now >= read_again_ && hand_over(hand_overs_.front(), now)) {
    core_.settle_unless_open(hand_overs_.front().id);
    hand_overs_.pop_front();
  }
}

// The keys of many are one look-up.
void Loop::want_children() {
  constexpr std::size_t at_once = 4096;
  for (std::size_t index = 0; index < std::min(hand_overs_.size(), at_once); ++index)
    static_cast<void>(id_of_key(hand_overs_[index].child.key));
}

// False: something has to be read first, or cannot be read now.
bool Loop::hand_over(HandOver& over, Time now) {
  const core::Run* const parent = core_.run_of(over.id);
  if (parent == nullptr) return true;  // the attempt is over: nobody needs the child
  if (!starting_) {
    core_.interrupted(over.id, now);
    return true;
  }
  if (parent->cancel_requested) {
    core_.failed(over.id, canceled(), false, now);
    return true;
  }
  const auto known = id_of_key(over.child.key);
  if (!known) return false;
  const auto looked = *known && **known ? load(***known) : Looked<Loaded>{Loaded{}};
  if (!looked) return false;
  const auto& found = *looked;
  if (!*known || !found) {
    reading_failed(*known ? found.error() : known->error(), now);
    return false;
  }
  if (found->run != nullptr) {
    const bool are_known = are_children_known(*found->run);
    if (are_known) hand_over_to(*found->run, over, now);
    unload(*found);
    return are_known;
  }
  if (const auto admitted = admit(1); !admitted) {
    core_.failed(over.id, refused(admitted.error().message), false, now);
    return true;
  }
  core::RunFacts facts = over.child.facts != nullptr ? *over.child.facts : core::RunFacts{};
  facts.parent = core::Parent{id(parent->number, parent->created), over.id.step, over.id.item, over.id.token};
  facts.bytes = core::encode_facts(facts);
  over.child.facts = std::make_unique<const core::RunFacts>(std::move(facts));
  accept(over.child, std::nullopt, now);
  record_hand_over(over, over.child.id, false, now);
  return true;
}

void Loop::record_hand_over(const HandOver& over, const RunId& child, bool reopens, Time now) {
  core_.handed_over(over.id,
                    {.run = child,
                     .due = over.time_left > Duration{0} ? core::later(now, over.time_left.count()) : 0,
                     .overdue = over.overdue.get(),
                     .returns = over.returns,
                     .reopens = reopens},
                    now);
}

// An earlier attempt had it begun. What failed in there is tried again, and what was stopped goes on.
void Loop::hand_over_to(core::Run& child, const HandOver& over, Time now) {
  if (!child.live) adopt(child, now);
  core_.allow(child.number, now);
  allow_children(child, true, now);
  const bool is_being_canceled = !child.has_ended() && child.cancel_requested;
  if (const auto begun = begin_again(child, now); !begun) {
    core_.failed(over.id, refused(begun.error().message), false, now);
    return;
  }
  record_hand_over(over, id(child.number, child.created), is_being_canceled, now);
  if (child.has_ended()) end_attempt(over.id, child, now);
}

// What has succeeded stays as it is, and what runs goes on.
std::expected<void, Error> Loop::begin_again(core::Run& child, Time now) {
  std::expected<void, Error> begun;
  if (child.status == RunStatus::failed) begun = core_.retry_failed(child, {}, now);
  if (child.status == RunStatus::canceled || child.status == RunStatus::paused) begun = core_.resume(child, now);
  count_if_open(child);
  return begun;
}

// ---- the end of a child ----------------------------------------

bool Loop::has_children_to_settle() const noexcept {
  return !core_.effects().recalls.empty() || !core_.effects().ended.empty();
}

// False: a run has to be read first, or could not be read, and the commit has to wait for it.
bool Loop::settle_children(Time now) {
  if (is_held_back_ && now < read_again_) return false;
  core::Effects& effects = core_.effects();
  const auto settle = [&](auto& wanted, auto&& handle) {
    auto todo = std::exchange(wanted, {});
    std::erase_if(todo, handle);
    wanted.insert(wanted.begin(), todo.begin(), todo.end());
    return todo.empty();
  };
  // One may lead to the next: the end of a child ends its parent, which is a child itself.
  bool all = true;
  while (all && has_children_to_settle()) {
    all = settle(effects.recalls, [&](const core::Recall& recall) { return call_back(recall, now); });
    all &= settle(effects.ended, [&](std::uint64_t child) { return tell_parent(child, now); });
  }
  is_held_back_ = !all;
  return all;
}

bool Loop::tell_parent(std::uint64_t number, Time now) {
  core::Run* const child = core_.find(number);
  if (child == nullptr || !child->has_ended()) return true;  // reopened since
  const auto place = parent_of(*child);
  if (!place) return true;
  const auto looked = load(place->run);
  if (!looked) return false;
  const auto& found = *looked;
  if (!found && found.error().code == ErrorCode::store_damaged) return true;  // there is nobody to tell
  if (!found) {
    reading_failed(found.error(), now);
    return false;
  }
  if (found->run == nullptr) return true;
  tell(*found->run, *place, *child, now);
  unload(*found);
  return true;
}

void Loop::tell(core::Run& parent, const ParentPlace& place, core::Run& child, Time now) {
  if (parent.has_ended()) return;
  if (!parent.live) adopt(parent, now);
  const std::uint32_t step = step_in(parent, place);
  const core::Outside* const outside = step < parent.step_count() ? parent.outside_of(step, place.item) : nullptr;
  if (outside == nullptr || outside->run != id(child.number, child.created)) return;  // it waits for something else now
  const core::Item& item = *parent.steps[step].touched(place.item);
  const event::AttemptId attempt{parent.number, step, place.item, item.token};
  if (!outside->reopens || child.status == RunStatus::succeeded || parent.cancel_requested)
    return end_attempt(attempt, child, now);
  // It was stopped for the sake of an earlier attempt.
  core_.handed_over(attempt, {.run = outside->run, .due = item.due, .returns = outside->returns}, now);
  if (const auto begun = begin_again(child, now); !begun)
    core_.failed(attempt, refused(begun.error().message), false, now);
}

void Loop::end_attempt(const event::AttemptId& attempt, const core::Run& child, Time now) {
  const core::Run& parent = *core_.find(attempt.run);
  if (child.status == RunStatus::canceled || parent.cancel_requested) {
    core_.failed(attempt, canceled(), false, now);
  } else if (child.status == RunStatus::failed) {
    const Failure failure = failure_of(child);
    put_evidence(parent.number, failure);
    core_.failed(attempt, failure, false, now);
  } else {
    const Payload* const output = core::output_of(child);
    auto brought = std::make_shared<const Payload>(output != nullptr ? *output : Payload{});
    if (brought->hashed)
      put_payload(parent.number, *brought, {});  // the store has the bytes; now the parent needs them too
    if (parent.outside_of(attempt.step, attempt.item)->returns) {
      core_.handed_back(attempt, std::move(brought), now);
    } else {
      core_.succeeded(attempt, brought->view(), now);
    }
  }
}

// ---- stopping it ----------------------------------------

bool Loop::call_back(const core::Recall& recall, Time now) {
  if (recall.run == RunId{}) {  // whoever has accepted it is not asked: what it reports counts no more
    if (judging_.contains(key_of(recall.id))) core_.effects().cancels.push_back(recall.id);
    core_.failed(recall.id, canceled(), false, now);
    return true;
  }
  const auto looked = load(recall.run);
  if (!looked) return false;
  const auto& found = *looked;
  if (!found && found.error().code != ErrorCode::store_damaged) {
    reading_failed(found.error(), now);
    return false;
  }
  if (!found || found->run == nullptr) {
    core_.failed(recall.id, canceled(), false, now);  // its end would never come
    return true;
  }
  core::Run& child = *found->run;
  if (!child.live) adopt(child, now);
  if (!child.has_ended()) static_cast<void>(core_.cancel(child, "the flow it belongs to was cancelled", now));
  unload(*found);
  return true;
}

// ---- going on after a restart ----------------------------------------

bool Loop::take(Allow&& allow, Time now) {
  const auto looked = load(allow.run);
  if (!looked) return false;
  const auto& found = *looked;
  if (!found && found.error().code != ErrorCode::store_damaged) {
    reading_failed(found.error(), now);
    tries_again_ = true;
    return false;
  }
  if (!found || found->run == nullptr) return true;
  core::Run& run = *found->run;
  if (!are_children_known(run)) {
    unload(*found);
    return false;
  }
  if (!run.live && !run.has_ended()) take_in(run, now);
  core_.allow(run.number, now);
  listen_again(run);
  allow_children(run, allow.resumes, now);
  if (run.has_ended()) unload(*found);
  return true;
}

// What works for it, and for that in turn, is in memory or has been read.
bool Loop::are_children_known(const core::Run& run) {
  if (run.extra == nullptr) return true;
  bool are_known = true;
  const auto outside = run.extra->outside;
  for (const auto& [place, where] : outside) {
    if (where.run == RunId{}) continue;
    const auto looked = load(where.run);
    are_known &= looked.has_value();
    if (!looked || !*looked || (*looked)->run == nullptr) continue;
    are_known &= are_children_known(*(*looked)->run);
    unload(**looked);
  }
  return are_known;
}

// Those that are not in memory are let in when they are due, as ever.
void Loop::allow_children(const core::Run& run, bool resumes, Time now) {
  if (run.extra == nullptr) return;
  const auto outside = run.extra->outside;
  for (const auto& [place, where] : outside) {
    if (where.run == RunId{}) continue;
    const auto looked = load(where.run);
    if (!looked || !*looked || (*looked)->run == nullptr) continue;
    core::Run& child = *(*looked)->run;
    core_.allow(child.number, now);
    listen_again(child);
    allow_children(child, resumes, now);
    if (resumes && child.paused_at != 0) {
      if (!child.live) adopt(child, now);
      static_cast<void>(core_.resume(child, now));
    }
    unload(**looked);
  }
}

}  // namespace reprise::runtime
