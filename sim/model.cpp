// The second reading of every event, and what it must not find.
#include "sim/model.hpp"

#include <algorithm>

#include <reprise/classify.hpp>

#include "event/codec.hpp"
#include "runtime/ids.hpp"

namespace reprise::sim {

using event::Record;
using Status = ItemStory::Status;

namespace {

std::string words(const Record& record) {
  return std::string{name_of(record.type)} + " (step " + std::to_string(record.step) + ", item " +
         std::to_string(record.item) + ", attempt " + std::to_string(record.attempt) + ")";
}

// Since the run was made or reopened, without the time it was paused.
Time active_time(const RunStory& story, Time now) {
  return now - story.epoch - (story.paused_until(now) - story.paused_before_epoch);
}

}  // namespace

void Model::fail(const RunStory& story, const std::string& what) const {
  throw Violation{"run " + std::to_string(story.number) + ": " + what, story.number};
}

const RunStory* Model::find(std::uint64_t run) const {
  const auto found = stories_.find(run);
  return found != stories_.end() ? &found->second : nullptr;
}

// ---- commits ----------------------------------------

void Model::durable(const store::Commit& commit) {
  if (commit.id != last_commit_ + 1) {
    throw Violation{"commit " + std::to_string(commit.id) + " was written after commit " + std::to_string(last_commit_),
                    0};
  }
  last_commit_ = commit.id;
  for (const store::NewPlan& plan : commit.plans) {
    auto decoded = core::decode_plan(commit.at(plan.body), compile_, nullptr);
    if (!decoded) throw Violation{"a plan was written that cannot be read: " + decoded.error().message, 0};
    shadow_.add_plan(plan.number, std::make_shared<const core::Plan>(*std::move(decoded)));
  }
  // A run that is removed gives its key free for one that is made in the same commit.
  for (const std::uint64_t run : commit.removals) {
    const RunStory* const story = find(run);
    if (story == nullptr) continue;
    if (const auto key = keys_.find(story->key); key != keys_.end() && key->second == run) keys_.erase(key);
  }
  event::FrameReader frame{commit.at(commit.frame)};
  event::FramePart part;
  while (commit.frame.size > 0 && frame.next(part)) {
    if (part.run != 0) take(part.run, part.first_sequence, part.chunk);
  }
  if (commit.frame.size > 0 && !frame.ok()) throw Violation{"a frame was written that cannot be read", 0};
  for (const store::Image& image : commit.images) {
    take(image.run, image.first_sequence, commit.at(image.events));
    const RunStory* const story = find(image.run);
    if (story == nullptr)
      throw Violation{"run " + std::to_string(image.run) + " has an image and no events", image.run};
    if (commit.at(image.state) != state_of(image.run))
      fail(*story, "its image is not what a replay of its events gives");
    if (is_open(image.status) == story->ended) fail(*story, "its row and its events disagree on whether it has ended");
    if (commit.at(image.key) != story->key) fail(*story, "its row has another key than its first event");
  }
  for (const store::NewKey& key : commit.keys) {
    const RunStory* const story = find(key.run);
    if (story == nullptr || story->key != commit.at(key.key))
      throw Violation{"a key was recorded for the wrong run", key.run};
  }
  check_children();
  check_claims();
  for (const std::uint64_t run : commit.removals) remove(run);
}

// A child's end and what its parent makes of it are in one commit, and so is the cancel of both.
void Model::check_children() {
  for (const std::uint64_t number : std::exchange(ended_now_, {})) {
    const RunStory& child = stories_.at(number);
    const core::Run& run = *shadow_.find(number);
    if (!child.ended || run.facts == nullptr || !run.facts->parent) continue;
    const core::Parent& place = *run.facts->parent;
    const RunStory* const parent = find(runtime::number_in(place.run));
    if (parent == nullptr) fail(child, "works for a run that does not exist");
    const auto& items = parent->steps.at(place.step).items;
    if (place.item < items.size() && items[place.item].outside && items[place.item].child == number)
      fail(*parent, "run " + std::to_string(number) + ", which it waits for, has ended, and nobody has told it");
  }
  for (const std::uint64_t number : std::exchange(canceled_now_, {})) {
    for (const StepStory& step : stories_.at(number).steps) {
      for (const ItemStory& item : step.items) {
        const RunStory* const child = item.outside ? find(item.child) : nullptr;
        if (child != nullptr && !child->ended && !child->cancel_requested)
          fail(*child, "the run it works for was cancelled, and it was not");
      }
    }
  }
}

void Model::check_claims() {
  for (const Claim& claim : std::exchange(claims_, {})) {
    const RunStory& parent = stories_.at(claim.parent);
    const core::Run* const child = shadow_.find(claim.child);
    if (child == nullptr || child->status != claim.status)
      fail(parent, "an attempt ended as run " + std::to_string(claim.child) + " did not");
    if (claim.status != RunStatus::succeeded) continue;
    const event::Payload* const output = core::output_of(*child);
    if ((output != nullptr ? *output : event::Payload{}) != claim.output)
      fail(parent, "an attempt has another result than run " + std::to_string(claim.child));
  }
}

void Model::take(std::uint64_t run, std::uint64_t first_sequence, std::string_view chunk) {
  if (chunk.empty()) return;
  RunStory& story = stories_[run];
  story.number = run;
  if (story.removed) fail(story, "it was removed, and has new events");
  core::Run* shadow = shadow_.find(run);
  if (shadow == nullptr) shadow = &shadow_.add(run);
  if (!shadow_.replay(*shadow, chunk, first_sequence)) fail(story, "its events do not fit together");
  event::ChunkReader reader{chunk, first_sequence};
  Record record;
  while (reader.next(record)) {
    if (record.sequence <= story.sequence) continue;
    if (record.sequence != story.sequence + 1) {
      fail(story, "event " + std::to_string(record.sequence) + " follows event " + std::to_string(story.sequence));
    }
    read(story, record);
  }
  if (!reader.ok()) fail(story, "its events cannot be read");
  if (story.reserved > 0) check_clocks(story);
}

// What is only reserved has not begun, and so has no clock.
void Model::check_clocks(const RunStory& story) const {
  const core::Run& run = *shadow_.find(story.number);
  for (std::uint32_t step = 0; step < story.steps.size(); ++step) {
    for (std::uint32_t index = 0; index < story.steps[step].items.size(); ++index) {
      if (story.steps[step].items[index].status != Status::reserved) continue;
      if (run.steps[step].touched(index)->first_started != 0)
        fail(story, "the clock of an attempt runs that is only reserved");
    }
  }
}

void Model::remove(std::uint64_t run) {
  const auto found = stories_.find(run);
  if (found == stories_.end()) throw Violation{"run " + std::to_string(run) + " was removed and never existed", run};
  RunStory& story = found->second;
  if (story.removed) return;
  if (!story.ended) fail(story, "it was removed before it had ended");
  if (!retention_ && !removable_.contains(run)) fail(story, "it was removed and nobody had asked for it");
  story.removed = true;
  story.removed_at = world_.now();
  if (const auto key = keys_.find(story.key); key != keys_.end() && key->second == run) keys_.erase(key);
}

// ---- events ----------------------------------------

ItemStory& Model::item_of(RunStory& story, const Record& record) {
  if (record.step >= story.steps.size()) fail(story, words(record) + ": there is no such step");
  auto& items = story.steps[record.step].items;
  if (items.size() <= record.item) items.resize(record.item + 1);
  return items[record.item];
}

void Model::read(RunStory& story, const Record& record) {
  ++events_;
  if ((story.sequence == 0) != (record.type == EventType::submitted))
    fail(story, words(record) + ": `submitted` comes first, and once");
  if (story.ended && record.type != EventType::reopened && record.type != EventType::dropped)
    fail(story, words(record) + " after `ended`");
  if (record.time < story.last_time) fail(story, words(record) + ": its time lies before the event before it");
  story.sequence = record.sequence;
  story.previous_time = std::exchange(story.last_time, record.time);
  const bool by_deadline = record.type == EventType::cancel_requested && record.reason == StopReason::deadline;
  const bool by_step = record.type == EventType::cancel_requested && record.text.starts_with("step \"");
  if (!by_deadline && !by_step) ++story.counts[static_cast<std::size_t>(record.type)];
  switch (record.type) {
    case EventType::submitted:
      return submitted(story, record);
    case EventType::reserved:
      return reserved(story, record);
    case EventType::started:
      return started(story, record);
    case EventType::completed:
      return completed(story, record);
    case EventType::failed:
      return failed(story, record);
    case EventType::retrying:
      return retrying(story, record);
    case EventType::interrupted:
      return interrupted(story, record);
    case EventType::revisited:
      return revisited(story, record);
    case EventType::reopened:
      return reopened(story, record);
    case EventType::ended:
      return ended(story, record);
    case EventType::cancel_requested:
      if (story.cancel_requested) fail(story, "cancelled twice");
      if (by_deadline && active_time(story, record.time) < story.plan->deadline)
        fail(story, "cancelled before its deadline");
      story.cancel_requested = true;
      canceled_now_.push_back(story.number);
      story.paused_at = 0;  // the wait it had left is over
      return;
    case EventType::paused:
      if (story.paused_at != 0 || story.cancel_requested) fail(story, "paused while it was paused or being cancelled");
      story.paused_at = record.time;
      return;
    case EventType::resumed:
      if (story.paused_at == 0) fail(story, "resumed without having been paused");
      story.paused_total += record.time - story.paused_at;
      story.paused_at = 0;
      return;
    case EventType::prepared:
      story.steps.at(record.step).prepared = true;
      if (record.items == 0) story.steps.at(record.step).last_end = record.time;  // nothing to do is done
      return;
    case EventType::signaled:
      story.signals.emplace_back(record.text);
      return;
    case EventType::skipped:
    case EventType::unreachable:
      return closed(story, record);
    case EventType::dead_lettered:
    case EventType::dropped:
      return dead_letter(story, record);
    case EventType::fallback:
      return fallback(story, record);
    case EventType::finishing:
      return finishing(story, record);
    case EventType::handed_over:
      return handed_over(story, record);
    case EventType::handed_back:
      return handed_back(story, record);
    case EventType::extended:
      if (!item_of(story, record).outside) fail(story, words(record) + " of an item that is not outside");
      return;
    case EventType::progress:
      if (item_of(story, record).status != Status::running)
        fail(story, words(record) + " of an item that is not running");
      return;
    default:
      return;
  }
}

void Model::closed(RunStory& story, const Record& record) {
  StepStory& step = story.steps.at(record.step);
  if (record.attempt > 0) {
    ItemStory& item = item_of(story, record);
    if (record.type != EventType::skipped || !step.circuit_open)
      fail(story, words(record) + " of an item without a cause");
    if (item.status != Status::waiting || item.stage != core::stage::main)
      fail(story, words(record) + " of an item that does not wait for an attempt");
    item.status = Status::failed;
    step.last_end = record.time;
    return;
  }
  const auto is_touched = [](const ItemStory& item) { return item.status != Status::untouched; };
  if (step.closed || step.running + step.reserved > 0 || std::ranges::any_of(step.items, is_touched))
    fail(story, words(record) + " of a step that had begun");
  step.closed = true;
}

void Model::dead_letter(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  const bool is_kept = record.type == EventType::dead_lettered;
  if (item.status != Status::failed) fail(story, words(record) + " of an item that has not failed");
  if (item.dead_letter == is_kept) fail(story, words(record) + ": twice, or dropped without having been kept");
  item.dead_letter = is_kept;
}

void Model::fallback(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (item.status != Status::failing) fail(story, words(record) + " does not follow `failed`");
  const bool is_known =
      record.stage == core::stage::fallback ? plan.fallback != core::FallbackRule::none : plan.handles_failure;
  if (!is_known) fail(story, words(record) + ": the plan has no such way");
  if (record.stage <= item.stage) fail(story, words(record) + ": this way was tried already");
  item.lost_in_a_row = 0;
  item.stage = record.stage;
  item.status = Status::waiting;
}

void Model::finishing(RunStory& story, const Record& record) {
  if (story.finishing || story.cancel_requested) fail(story, words(record) + " twice, or of a cancelled run");
  if (story.plan->finally_steps == 0) fail(story, words(record) + " of a plan without such steps");
  if (story.running + story.reserved > 0) fail(story, words(record) + " while an attempt is running");
  story.finishing = true;
}

void Model::submitted(RunStory& story, const Record& record) {
  const core::NumberedPlan* const plan = shadow_.plan(record.plan);
  if (plan == nullptr) fail(story, "submitted with a plan that was not recorded");
  story.plan = core::own_plan(*shadow_.find(story.number));
  story.key = record.text;
  story.created = record.time;
  story.epoch = record.time;
  story.due = record.due;
  story.steps.resize(story.plan->steps.size());
  ++open_;
  if (story.key.empty()) return;
  const auto [at, is_new] = keys_.try_emplace(story.key, story.number);
  if (!is_new) fail(story, "has the key of run " + std::to_string(at->second) + ", which still exists");
  const core::Run& run = *shadow_.find(story.number);
  const bool is_child =
      run.facts != nullptr && run.facts->parent;  // its key is derived from its parent, which has one shard
  if (!is_child && is_key_elsewhere && is_key_elsewhere(story.key))
    fail(story, "has the key of a run in another shard, which still exists");
}

// Never early: a retry's delay, a submit's delay. The time a run was paused does not count.
void Model::check_time(const RunStory& story, const ItemStory& item, const Record& record) const {
  if (item.status == Status::waiting) {
    const Time waited = record.time - item.since - (story.paused_until(record.time) - item.paused_then);
    if (waited < item.delay) {
      fail(story, words(record) + " is " + std::to_string(item.delay - waited) + " ns early: the wait was " +
                      std::to_string(item.delay));
    }
  }
  if (story.due > 0) {
    const Time waited = record.time - story.created - (story.reopened == 0 ? story.paused_until(record.time) : 0);
    if (waited < story.due - story.created)
      fail(story, words(record) + ": submitted with a delay, and started before it was over");
  }
  const Time active = active_time(story, record.time);
  if (story.plan->deadline > 0 && active >= story.plan->deadline + slack_)
    fail(story, words(record) + " after the run's deadline");
  const Policy& policy = story.plan->steps[record.step].policy;
  // Of flows with more steps, and of runs that began anew before their delay was over, only the engine knows when an item was created.
  const bool is_plain =
      story.plan->steps.size() == 1 && story.steps[0].visits == 1 && (story.reopened == 0 || story.due <= story.epoch);
  if (is_plain && record.attempt > item.earlier + 1 && item.stage == core::stage::main && policy.max_elapsed &&
      policy.elapsed_from == ElapsedFrom::creation) {
    const Time base = std::max<Time>(0, story.due - story.epoch);
    if (active - base >= policy.max_elapsed->count() + slack_) fail(story, words(record) + " after max_elapsed");
  }
}

// May an attempt begin now, or be recorded ahead of a place?
void Model::check_begin(const RunStory& story, const ItemStory& item, const Record& record) const {
  const StepStory& step = story.steps[record.step];
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (story.paused_at != 0) fail(story, words(record) + " while the run is paused");
  if (story.cancel_requested) fail(story, words(record) + " of a run that was cancelled");
  if (step.closed) fail(story, words(record) + " of a step that was skipped");
  if (step.circuit_open && item.stage == core::stage::main)
    fail(story, words(record) + " although the circuit is open");
  if ((plan.for_each || plan.prepares) && !step.prepared)
    fail(story, words(record) + " of a step whose items were never counted");
  if (plan.runs_finally != story.finishing) fail(story, words(record) + ": its time has not come, or is over");
  if (record.attempt != item.attempt + 1)
    fail(story, words(record) + " follows attempt " + std::to_string(item.attempt));
  if (plan.policy.max_attempts && item.stage == core::stage::main &&
      record.attempt - item.earlier - item.unused > std::max<std::uint64_t>(1, *plan.policy.max_attempts)) {
    fail(story, words(record) + ": max_attempts is " + std::to_string(*plan.policy.max_attempts));
  }
  for (const std::uint32_t need : plan.needs) {
    if (story.reopened > 0) break;  // what had failed in several steps is tried again at once
    if (story.steps[need].running > 0) fail(story, words(record) + ": a step it needs is still running");
    if (story.steps[need].last_end == 0) fail(story, words(record) + ": a step it needs has never ended");
  }
  check_time(story, item, record);
}

void Model::reserved(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  StepStory& step = story.steps[record.step];
  if (record.withdrawn) {
    if (item.status != Status::reserved) fail(story, words(record) + " taken back, and was not there");
    if (sent_[story.number][item.token].began) fail(story, words(record) + " taken back, and had begun");
    item.begin_anew(item.attempt - 1);
    --step.reserved;
    --story.reserved;
    return;
  }
  if (item.status != Status::untouched) fail(story, words(record) + " of an item that was touched");
  if (story.plan->steps[record.step].effect == Effect::at_most_once)
    fail(story, words(record) + ": it would not be known whether it was done");
  check_begin(story, item, record);
  item.status = Status::reserved;
  item.attempt = record.attempt;
  item.token = static_cast<std::uint32_t>(record.sequence);
  item.life = life_;
  ++step.reserved;
  ++story.reserved;
}

void Model::started(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  StepStory& step = story.steps[record.step];
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (item.status == Status::reserved) {
    // It may have begun before it could be taken back: whatever has happened since is no reason not to tell.
    const std::optional<Time> began = sent_[story.number][item.token].began;
    if (!began || item.life != life_ || record.attempt != item.attempt)
      fail(story, words(record) + " and has not begun");
    if (record.time != std::max(*began, story.previous_time)) fail(story, words(record) + " at another time");
    --step.reserved;
    --story.reserved;
  } else {
    if (item.status != Status::untouched && item.status != Status::waiting)
      fail(story, words(record) + ": the item is running, or has ended");
    check_begin(story, item, record);
    item.attempt = record.attempt;
    item.token = static_cast<std::uint32_t>(record.sequence);
    item.life = life_;
  }
  item.status = Status::running;
  ++step.running;
  ++story.running;
  if (plan.max_parallel > 0 && step.running > plan.max_parallel)
    fail(story, words(record) + ": the step's max_parallel is exceeded");
  if (story.plan->max_parallel > 0 && story.running > story.plan->max_parallel) {
    fail(story, words(record) + ": the flow's max_parallel is exceeded");
  }
}

void Model::handed_over(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  if (item.status != Status::running || record.attempt != item.attempt)
    fail(story, words(record) + " of an attempt that is not running");
  if (!item.outside && !sent_[story.number][item.token].handed)
    fail(story, words(record) + " and the executor has not done so");
  item.outside = true;
  item.child = runtime::number_in(record.other);
}

void Model::handed_back(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  if (item.status != Status::running || !item.outside) fail(story, words(record) + " of an item that is not outside");
  item.outside = false;
  item.life = life_;
}

void Model::completed(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  StepStory& step = story.steps[record.step];
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (plan.kind == core::StepKind::call) {
    if (item.status != Status::running) fail(story, words(record) + " of an item that is not running");
    if (record.attempt != item.attempt)
      fail(story, words(record) + ": the running attempt is " + std::to_string(item.attempt));
    const auto& sent = sent_[story.number][item.token].outputs;
    if (item.outside) {
      claims_.push_back({story.number, item.child, RunStatus::succeeded, event::Payload::of(record.payload)});
    } else if (std::ranges::none_of(sent,
                                    [&](const event::Payload& output) { return output.view() == record.payload; })) {
      fail(story, words(record) + " with a result that this attempt did not give");
    }
    --step.running;
    --story.running;
  } else if (item.status != Status::untouched) {
    fail(story, words(record) + " of a wait that was over already");
  }
  if (plan.kind == core::StepKind::wait) {
    Time begun = std::max(story.created, story.reopened == 0 ? story.due : 0);
    for (const std::uint32_t need : plan.needs)
      begun = std::max(begun, story.reopened == 0 ? story.steps[need].last_end : 0);
    const Time over = plan.wait_until != 0 ? plan.wait_until : begun + plan.wait;
    if (record.time < over) fail(story, words(record) + ": the wait is not over yet");
  }
  if (plan.kind == core::StepKind::signal) {
    const auto signal = std::ranges::find(story.signals, plan.signal);
    if (signal == story.signals.end()) fail(story, words(record) + ": nobody has sent this signal");
    story.signals.erase(signal);
  }
  item.status = Status::succeeded;
  item.outside = false;
  step.last_end = record.time;
  std::erase_if(story.breakers, [&](const auto& entry) { return entry.first.first == record.step; });
}

void Model::count_failure(RunStory& story, const Record& record) {
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (plan.breaker_limit == 0 || record.failure == nullptr) return;
  if (record.lost || record.cut || record.reason == StopReason::canceled) return;  // not the work's own failure
  if ((plan.breaker_classes >> static_cast<unsigned>(record.failure_class) & 1U) == 0) return;
  const std::uint64_t print = fingerprint(*plan.name, record.failure_class, *record.failure);
  const std::uint32_t count = ++story.breakers[{record.step, print}];
  if (item_of(story, record).stage != core::stage::main) return;  // not a matter of the policy any more
  StepStory& step = story.steps[record.step];
  if (record.precondition || record.reason == StopReason::unclear) return;
  if (count >= plan.breaker_limit && record.reason != StopReason::circuit_open)
    fail(story, words(record) + ": the breaker should have opened");
  if (count < plan.breaker_limit && record.reason == StopReason::circuit_open && !step.circuit_open)
    fail(story, words(record) + ": the breaker opened too soon");
}

void Model::failed(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  StepStory& step = story.steps[record.step];
  const core::StepPlan& plan = story.plan->steps[record.step];
  if (record.failure == nullptr) fail(story, words(record) + " without a failure");
  const bool has_other_way = plan.handles_failure || plan.fallback == core::FallbackRule::gave_up;
  if (record.precondition && item.status != Status::running) {
    if (item.status != Status::untouched)
      fail(story, words(record) + ": a precondition comes before the first attempt");
  } else if (plan.kind == core::StepKind::signal) {
    if (item.status != Status::untouched) fail(story, words(record) + " of a wait that was over already");
  } else if (item.status == Status::reserved) {
    if (!record.lost || item.life == life_) fail(story, words(record) + " of an attempt that was only reserved");
    if (!record.will_retry && !story.cancel_requested && !step.circuit_open && !plan.policy.max_elapsed)
      fail(story, words(record) + ": what may never have begun is given up");
    --step.reserved;
    --story.reserved;
    ++story.lost;
    ++item.unused;
  } else if (item.status == Status::running) {
    if (record.attempt != item.attempt && !record.precondition)
      fail(story, words(record) + ": the running attempt is " + std::to_string(item.attempt));
    --step.running;
    --story.running;
    const auto& sent = sent_[story.number][item.token].failures;
    if (record.lost) {
      if (item.life == life_ || item.outside)
        fail(story, words(record) + ": called lost, but the engine that started it is still there");
      ++story.lost;
      judge_loss(story, item, record);
    } else if (item.outside && record.failure->message.starts_with("the flow failed: ")) {
      claims_.push_back({story.number, item.child, RunStatus::failed, {}});
    } else if (sent_[story.number][item.token].handed && record.failure->type == "ValueError") {
      // The child was refused: there are too many runs, or nothing of it can be tried again.
    } else if (sent_[story.number][item.token].handed && record.failure->type == "CanceledError") {
      if (item.outside && !story.cancel_requested)
        claims_.push_back({story.number, item.child, RunStatus::canceled, {}});
    } else if (record.reason == StopReason::unclear && plan.effect == Effect::at_most_once) {
      // It was stopped, and may have been done: a person has to find out.
    } else if (std::ranges::find(sent, *record.failure) == sent.end()) {
      fail(story, words(record) + " with a failure that this attempt did not give");
    }
  } else if (item.status != Status::waiting || (record.will_retry && !has_other_way) ||
             record.reason != StopReason::deadline) {
    fail(story, words(record) + " of an item that is not running");
  }
  if (record.precondition && record.will_retry) fail(story, words(record) + ": a precondition is not tried again");
  if (record.will_retry && story.cancel_requested)
    fail(story, words(record) + ": will be tried again, but the run was cancelled");
  const bool had_begun = item.status == Status::running;
  if (had_begun || record.precondition) count_failure(story, record);
  if (record.reason == StopReason::circuit_open) step.circuit_open = true;
  if (had_begun && !record.lost) item.lost_in_a_row = 0;
  if (had_begun && !record.lost && record.reason == StopReason::canceled) ++item.unused;
  item.since = record.time;
  item.paused_then = story.paused_until(record.time);
  item.delay = 0;
  item.lost = record.lost;
  item.outside = false;
  item.floor = record.failure->retry_after.value_or(Duration{0}).count();
  item.status = record.will_retry                       ? Status::failing
                : record.reason == StopReason::canceled ? Status::canceled
                                                        : Status::failed;
  step.last_end = record.time;
}

// So many in a row are made again, whatever the policy would say about a failure; the next one is not.
void Model::judge_loss(const RunStory& story, ItemStory& item, const Record& record) const {
  const core::StepPlan& plan = story.plan->steps[record.step];
  ++item.unused;
  ++item.lost_in_a_row;
  const bool is_over = item.lost_in_a_row > plan.policy.worker_lost_max.value_or(worker_lost_default);
  const bool may_be_late = plan.policy.max_elapsed && record.reason == StopReason::deadline;
  if (plan.effect == Effect::at_most_once) {
    if (record.reason != StopReason::unclear) fail(story, words(record) + ": lost, and it may have been done");
  } else if (story.cancel_requested || may_be_late) {
    if (record.will_retry && record.reason == StopReason::none)
      fail(story, words(record) + ": lost, and made again too late");
  } else if (is_over != (record.reason == StopReason::lost)) {
    fail(story,
         words(record) + ": loss " + std::to_string(item.lost_in_a_row) + " in a row is not judged by its limit");
  }
}

namespace {

// The delays that the next wait of an item may have.
DelayRange range_of(const Policy& policy, const ItemStory& item) {
  if (item.lost) return item.lost_in_a_row > 1 ? delay_range(policy, item.lost_in_a_row - 1) : DelayRange{};
  DelayRange range = delay_range(policy, item.used(), Duration{item.previous_delay});
  if (!policy.honor_retry_after) return range;
  range.min = std::max(range.min, Duration{item.floor});
  range.max = std::max(range.max, Duration{item.floor});
  return range;
}

}  // namespace

void Model::retrying(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  if (item.status != Status::failing) fail(story, words(record) + " does not follow `failed`");
  if (record.attempt != item.attempt + 1) fail(story, words(record) + " names the wrong attempt");
  const Policy& policy = story.plan->steps[record.step].policy;
  if (item.stage != core::stage::main && !item.lost) fail(story, words(record) + ": only the main way is retried");
  if (policy.max_attempts && !item.lost && item.used() >= *policy.max_attempts)
    fail(story, words(record) + ": max_attempts is " + std::to_string(*policy.max_attempts));
  const DelayRange range = range_of(policy, item);
  if (range.min.count() != record.delay_min || range.max.count() != record.delay_max)
    fail(story, words(record) + ": its range is not that of this retry");
  if (record.delay < record.delay_min || (!record.floored && record.delay > record.delay_max)) {
    fail(story, words(record) + ": the delay lies outside its range");
  }
  if (record.due != item.since + record.delay)
    fail(story, words(record) + ": due is not the failure's time and the delay");
  item.status = Status::waiting;
  item.delay = record.delay;
  if (!item.lost) item.previous_delay = record.delay;
}

void Model::interrupted(RunStory& story, const Record& record) {
  ItemStory& item = item_of(story, record);
  if (item.outside && !story.cancel_requested) fail(story, words(record) + " of an attempt that is not here");
  item.outside = false;
  if (item.status == Status::running) {
    --story.steps[record.step].running;
    --story.running;
    ++item.unused;
  } else if (item.status != Status::waiting || !story.cancel_requested) {
    fail(story, words(record) + " of an item that does nothing");
  }
  if (item.status == Status::running) {
    item.since = record.time;
    item.paused_then = story.paused_until(record.time);
    item.delay = 0;
  }
  item.status = story.cancel_requested ? Status::canceled : Status::waiting;
}

void Model::revisited(RunStory& story, const Record& record) {
  StepStory& target = story.steps.at(record.step);
  if (++target.visits > story.plan->steps[record.step].max_visits)
    fail(story, words(record) + ": max_visits is exceeded");
  for (const std::uint32_t step : core::steps_from(*story.plan, record.step)) {
    StepStory& again = story.steps[step];
    story.running -= again.running;
    story.reserved -= again.reserved;
    again.running = 0;
    again.reserved = 0;
    for (ItemStory& item : again.items) item.begin_anew(item.attempt);
    again.closed = false;
    again.last_end = 0;
    again.prepared = false;
  }
}

void Model::reopened(RunStory& story, const Record& record) {
  if (!story.ended) fail(story, "reopened without having ended");
  story.ended = false;
  story.status = RunStatus::running;
  ++open_;
  ++story.reopened;
  story.cancel_requested = false;
  story.paused_at = 0;
  story.epoch = record.time;
  story.paused_before_epoch = story.paused_total;
  story.finishing = false;
  for (std::uint32_t index = 0; index < story.steps.size(); ++index) {
    StepStory& step = story.steps[index];
    if (story.plan->steps[index].runs_finally) {
      for (ItemStory& item : step.items) item.begin_anew(item.attempt);
      step = {.items = std::move(step.items)};
    } else if (reopen_step(story, index, step, record)) {
      std::erase_if(story.breakers, [&](const auto& entry) { return entry.first.first == index; });
    }
  }
}

// True: what had failed in it is tried again.
bool Model::reopen_step(const RunStory& story, std::uint32_t index, StepStory& step, const Record& record) const {
  const core::StepPlan& plan = story.plan->steps[index];
  bool retries = false;
  if (!record.resumes) {
    if (step.closed) step.prepared = false;
    step.closed = false;
  }
  for (std::uint32_t number = 0; number < step.items.size(); ++number) {
    ItemStory& item = step.items[number];
    const bool is_chosen =
        !record.resumes &&
        (record.from_step == 0 || (record.from_step == index + 1 && (record.items == 0 || record.items == number + 1)));
    const bool goes_on = item.status == Status::canceled;  // with its attempts, and with what is left of its wait
    if (!goes_on && (item.status != Status::failed || !is_chosen)) continue;
    const bool is_asked_again = plan.for_each ? !step.prepared : plan.prepares && item.attempt == item.earlier;
    if (is_asked_again) step.prepared = false;
    const std::uint32_t attempts = goes_on && !is_asked_again ? 0 : item.attempt;
    retries |= !goes_on;
    if (!goes_on) step.circuit_open = false;
    if (!goes_on || is_asked_again) item = {};
    item.attempt = std::max(item.attempt, attempts);
    item.earlier = std::max(item.earlier, attempts);
    if (plan.kind != core::StepKind::call || is_asked_again) continue;  // it begins anew
    item.status = Status::waiting;
    if (goes_on && item.delay > 0) continue;
    item.since = record.time;
    item.paused_then = story.paused_total;
  }
  return retries;
}

void Model::ended(RunStory& story, const Record& record) {
  if (story.running + story.reserved > 0) fail(story, "ended while an attempt is running");
  if (is_open(record.status)) fail(story, "ended and still open");
  if (record.status == RunStatus::canceled && !story.cancel_requested)
    fail(story, "ended as cancelled, and nobody had asked for it");
  if (record.status != RunStatus::canceled && story.plan->finally_steps > 0 && !story.finishing)
    fail(story, "ended without those of its steps that run in any case");
  for (const StepStory& step : story.steps) {
    for (const ItemStory& item : step.items) {
      if (item.status == Status::failing) fail(story, "ended with an item that was to be tried again");
    }
  }
  story.ended = true;
  ended_now_.push_back(story.number);
  story.status = record.status;
  story.endings.push_back({record.status, record.time});
  --open_;
}

// ---- the executor ----------------------------------------

void Model::begun(const exec::Job& job, Time wall) {
  const RunStory* const story = find(job.id.run);
  if (story == nullptr)
    throw Violation{"an attempt of run " + std::to_string(job.id.run) + " began before the run was durable",
                    job.id.run};
  bool found = false;
  if (job.id.token <= story->sequence && job.id.step < story->steps.size()) {
    const auto& items = story->steps[job.id.step].items;
    found = job.id.item < items.size() && items[job.id.item].token == job.id.token;
    if (found && items[job.id.item].attempt != job.attempt)
      fail(*story, "the executor was told a wrong attempt number");
    // It may be over already: a step that was sent back, or a run that was reopened, forgets the attempts it had.
    if (!found) {
      for_each_event(story->number, [&](const Record& record) {
        found = found || (record.sequence == job.id.token && record.attempt == job.attempt &&
                          (record.type == EventType::started || record.type == EventType::reserved));
      });
    }
  }
  sent_[job.id.run][job.id.token].began = wall;
  if (!found) {
    fail(*story, "attempt " + std::to_string(job.attempt) + " of step " + std::to_string(job.id.step) + ", item " +
                     std::to_string(job.id.item) + " began before its `started` was durable");
  }
}

void Model::asked(const exec::Preparation& preparation) const {
  const RunStory* const story = find(preparation.id.run);
  if (story == nullptr)
    throw Violation{"a step of run " + std::to_string(preparation.id.run) + " was prepared before the run was durable",
                    preparation.id.run};
  if (!story->plan->steps[preparation.id.step].prepares)
    fail(*story, "the executor was asked for a step that needs nothing");
  if (preparation.context == nullptr || preparation.context->run_input == nullptr)
    fail(*story, "the executor was asked without the run's input");
}

bool Model::is_list(const event::AttemptId& step) const { return find(step.run)->plan->steps[step.step].for_each; }

void Model::sent(const event::AttemptId& id, const event::PayloadView& output) {
  sent_[id.run][id.token].outputs.push_back(event::Payload::of(output));
}
void Model::handed(const event::AttemptId& id) { sent_[id.run][id.token].handed = true; }
void Model::sent(const event::AttemptId& id, const Failure& failure) {
  sent_[id.run][id.token].failures.push_back(failure);
}

void Model::published(std::uint64_t run, std::uint64_t chunk_first, std::uint64_t new_first,
                      std::string_view chunk) const {
  const RunStory* const story = find(run);
  if (story == nullptr)
    throw Violation{"events of run " + std::to_string(run) + " were published before they were durable", run};
  event::ChunkReader reader{chunk, chunk_first};
  Record record;
  std::uint64_t last = 0;
  while (reader.next(record)) last = record.sequence;
  if (!reader.ok()) fail(*story, "what was published cannot be read");
  if (last > story->sequence) fail(*story, "event " + std::to_string(last) + " was published before it was durable");
  if (new_first < chunk_first || new_first > last) fail(*story, "what was published holds nothing new");
}

// ---- comparing ----------------------------------------

std::string Model::state_of(std::uint64_t run) const {
  std::string state;
  if (const core::Run* const shadow = shadow_.find(run); shadow != nullptr && shadow->plan != nullptr)
    core::encode_state(*shadow, state);
  return state;
}

void Model::compare(runtime::Loop& loop) const {
  if (loop.outstanding() > 0 || loop.has_news()) return;
  std::string live, shadow;
  loop.core().for_each_run([&](const core::Run& run) {
    const RunStory* const story = find(run.number);
    if (story == nullptr)
      throw Violation{"run " + std::to_string(run.number) + " is in memory and not in the store", run.number};
    live.clear();
    shadow.clear();
    core::encode_state(run, live);
    core::encode_state(*shadow_.find(run.number), shadow);
    if (live != shadow) fail(*story, "its state in memory is not what a replay of its events gives");
    if (run.queued > 1'000'000) fail(*story, "the count of its places in queues fell below zero");
    if (run.preparing > 1'000'000) fail(*story, "the count of its lists to prepare fell below zero");
    if (run.running != story->running) fail(*story, "its count of running attempts is wrong");
    if (run.reserved != story->reserved) fail(*story, "its count of reserved attempts is wrong");
  });
}

void Model::check_books(runtime::Loop& loop) const {
  if (loop.outstanding() > 0 || loop.has_news() || loop.is_loading()) return;
  const EngineStats stats = loop.stats();
  if (stats.open != open_) {
    throw Violation{
        "the engine counts " + std::to_string(stats.open) + " open runs, and there are " + std::to_string(open_), 0};
  }
  std::size_t bytes = 0;
  std::uint64_t running = 0;
  loop.core().for_each_run([&](const core::Run& run) {
    bytes += run.accounted;
    running += run.running - run.outside;
    if (run.has_ended()) fail(*find(run.number), "has ended, is durable, and still takes memory");
  });
  if (bytes != stats.resident_bytes) {
    throw Violation{"the engine counts " + std::to_string(stats.resident_bytes) +
                        " bytes in memory, and its runs take " + std::to_string(bytes),
                    0};
  }
  if (running != stats.running) {
    throw Violation{"the engine counts " + std::to_string(stats.running) + " running attempts, and there are " +
                        std::to_string(running),
                    0};
  }
}

// Whatever runs is outside, without a limit of time, and its child waits for ever.
bool Model::waits_for_children_only(const RunStory& story) const {
  for (std::uint32_t step = 0; step < story.steps.size(); ++step) {
    for (std::uint32_t index = 0; index < story.steps[step].items.size(); ++index) {
      const ItemStory& item = story.steps[step].items[index];
      if (item.status == Status::reserved) return false;
      if (item.status != Status::running) continue;
      const RunStory* const child = item.outside ? find(item.child) : nullptr;
      if (child == nullptr || child->ended || !waits_for_ever(*child)) return false;
      if (shadow_.find(story.number)->steps[step].touched(index)->due != 0) return false;
    }
  }
  return true;
}

// Are there attempts of this step, and is there no room for more?
bool Model::is_held_up(const RunStory& story, std::uint32_t step) const {
  const core::Run& run = *shadow_.find(story.number);
  const core::StepState& state = run.steps[step];
  const std::uint32_t limit = run.plan->plan->max_parallel;
  const bool is_full = (run.step_plan(step).max_parallel > 0 && state.running >= run.step_plan(step).max_parallel) ||
                       (limit > 0 && story.running >= limit);
  const auto waits = [](const ItemStory& item) { return item.status == Status::waiting; };
  const bool has_more = state.has_untouched() || std::ranges::any_of(story.steps[step].items, waits);
  return has_more ? is_full || core::is_doomed(run, step) : state.running > 0;
}

bool Model::waits_for_ever(const RunStory& story) const {
  const core::Run* const run = shadow_.find(story.number);
  if (run == nullptr || !waits_for_children_only(story)) return false;
  if (story.paused_at != 0) return true;
  if (story.plan->deadline > 0) return false;
  bool waits = false;
  for (std::uint32_t step = 0; step < run->step_count(); ++step) {
    const core::StepStatus status = run->steps[step].status;
    if (status == core::StepStatus::preparing) return false;
    if (status != core::StepStatus::active) continue;
    const core::StepPlan& plan = story.plan->steps[step];
    if (plan.kind == core::StepKind::call) {
      if (!is_held_up(story, step)) return false;
      waits = true;
      continue;
    }
    if (plan.kind != core::StepKind::signal || plan.wait > 0) return false;
    if (std::ranges::find(story.signals, plan.signal) != story.signals.end()) return false;
    waits = true;
  }
  return waits;
}

std::string Model::wanted_signal(const RunStory& story) const {
  const core::Run* const run = shadow_.find(story.number);
  for (std::uint32_t step = 0; run != nullptr && step < run->step_count(); ++step) {
    const core::StepPlan& plan = story.plan->steps[step];
    if (run->steps[step].status == core::StepStatus::active && plan.kind == core::StepKind::signal) return plan.signal;
  }
  return {};
}

void Model::for_each_event(std::uint64_t run, const std::function<void(const Record&)>& visit) const {
  const core::Run* const shadow = shadow_.find(run);
  if (shadow == nullptr || shadow->events.empty()) return;
  event::ChunkReader reader{shadow->events, 1};
  Record record;
  while (reader.next(record)) visit(record);
}

std::string Model::tell(std::uint64_t run, std::size_t last) const {
  std::vector<std::string> lines;
  for_each_event(run, [&](const Record& record) {
    std::string line = "  " + std::to_string(record.sequence) + "  +" + std::to_string((record.time - birth) / 1000) +
                       "us  " + words(record);
    if (record.type == EventType::failed) {
      line += record.will_retry ? " will retry" : " for good: " + std::string{name_of(record.reason)};
      if (record.lost) line += ", lost";
      if (record.failure != nullptr) line += ", " + record.failure->type + ": " + record.failure->message;
    }
    if (record.type == EventType::retrying) line += " due +" + std::to_string((record.due - birth) / 1000) + "us";
    if (record.type == EventType::ended) line += " " + std::string{name_of(record.status)};
    if (record.type == EventType::revisited) line += " from step " + std::to_string(record.from_step);
    if (!record.text.empty()) line += " \"" + std::string{record.text} + "\"";
    lines.push_back(std::move(line));
  });
  std::string text;
  const std::size_t first = lines.size() > last ? lines.size() - last : 0;
  if (first > 0) text += "  ... " + std::to_string(first) + " before these\n";
  for (std::size_t index = first; index < lines.size(); ++index) text += lines[index] + '\n';
  return text;
}

void Model::compare_history(store::Store& store) const {
  for (const auto& [number, story] : stories_) {
    const auto row = store.read_run(number);
    if (!row) continue;
    if (story.removed) {
      if (*row) fail(story, "was removed, and has a row");
      continue;
    }
    if (!*row) continue;  // all of it is in the journal
    std::uint64_t next = 1;
    std::string watched, stored;
    for_each_event(number, [&](const Record& record) { event::put_event(watched, record, 0); });
    const auto read = store.read_history(number, [&](std::uint64_t first, std::string_view chunk) {
      if (first != next) fail(story, "its history in the store has a gap before event " + std::to_string(first));
      event::ChunkReader reader{chunk, first};
      Record record;
      while (reader.next(record)) {
        event::put_event(stored, record, 0);
        ++next;
      }
      if (!reader.ok()) fail(story, "its history in the store cannot be read");
      return true;
    });
    if (!read) continue;
    if (!watched.starts_with(stored)) fail(story, "its history in the store is not what was recorded");
    if (story.ended && next != story.sequence + 1)
      fail(story, "has ended, and its history in the store is not complete");
  }
}

}  // namespace reprise::sim
