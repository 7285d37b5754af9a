// Asking, and comparing each answer with what is durable and with what was told before.
#include "sim/callers.hpp"

#include <algorithm>

#include "base/sha256.hpp"
#include "event/codec.hpp"
#include "runtime/ids.hpp"

namespace reprise::sim {

using runtime::Operation;
using runtime::Question;

namespace {

// A reply that goes to a function.
template <class Base>
class Told final : public Base {
 public:
  using Listener = std::function<void(Told&, std::expected<void, Error>)>;
  explicit Told(Listener listener) : listener_{std::move(listener)} {}
  void done(std::expected<void, Error> answer) override {
    if (answered_) throw Violation{"a caller was answered twice", 0};
    answered_ = true;
    listener_(*this, std::move(answer));
  }

 private:
  Listener listener_;
  bool answered_ = false;
};

// The error says that nothing happened. Trouble with the store says nothing.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::invalid || error.code == ErrorCode::not_found || error.code == ErrorCode::full;
}

event::Payload payload_of(std::string bytes, std::string& body) {
  if (bytes.size() <= event::payload_inline_max) return event::Payload::of(std::move(bytes));
  event::Payload payload{base::sha256(bytes), bytes.size(), true};
  body = std::move(bytes);
  return payload;
}

bool has_facts_of(const RunStory& story, const Task& task) {
  if (story.plan->is_document) return true;  // it says itself what it wants
  if (task.deadline && story.plan->deadline != task.deadline->count()) return false;
  return !task.retry || story.plan->steps[0].policy.max_attempts == task.retry->max_attempts;
}

}  // namespace

const Known* Callers::any() {
  if (order_.empty()) return nullptr;
  // The young are more interesting than the old.
  const std::size_t recent = std::min<std::size_t>(order_.size(), 20);
  const std::size_t index = world_.chance(700) ? order_.size() - 1 - world_.below(recent) : world_.below(order_.size());
  return &known_.at(order_[index]);
}

// ---- submitting ----------------------------------------

std::optional<runtime::NewRun> Callers::new_run(Task& task) {
  const core::Plan* const document = machine_.document(task.flow);
  auto plan = document != nullptr ? machine_.book()->book_document(*document) : machine_.book()->plan_for(task);
  if (!plan) return std::nullopt;
  runtime::NewRun run;
  run.plan = plan->plan;
  run.facts = std::move(plan->facts);
  run.items = static_cast<std::uint32_t>(task.items.size());
  run.input = payload_of(task.items.empty() ? task.input : encode_list(task.items), run.body);
  run.key = task.key;
  run.delay = task.delay;
  run.priority = task.priority;
  return run;
}

void Callers::submit(std::vector<Task> tasks, SubmitDone then) {
  if (!machine_.is_up()) return;
  const Time sent = world_.now();
  auto wanted = std::make_shared<std::vector<Task>>(std::move(tasks));
  auto reply = std::make_shared<Told<runtime::SubmitReply>>(
      [this, sent, wanted, then = std::move(then)](runtime::SubmitReply& told, std::expected<void, Error> answer) {
        ++answered_;
        std::vector<RunId> ids;
        if (answer) {
          told_submitted(told.runs, *wanted, sent);
          for (const runtime::NewRun& run : told.runs) ids.push_back(run.id);
        } else if (answer.error().code == ErrorCode::full && model_.open() + told.runs.size() + 2 * 256 < max_open) {
          throw Violation{"a submit was refused as too many, with " + std::to_string(model_.open()) + " open runs", 0};
        } else if (answer.error().code == ErrorCode::invalid || answer.error().code == ErrorCode::not_found) {
          throw Violation{"a good submit was refused: " + answer.error().message, 0};
        }
        if (then) then(answer, ids);
      });
  for (Task& task : *wanted) {
    auto run = new_run(task);
    if (!run) throw Violation{"a good task has no plan", 0};
    reply->runs.push_back(*std::move(run));
  }
  ++asked_;
  machine_.push(runtime::Submit{std::move(reply)});
}

void Callers::told_submitted(const std::vector<runtime::NewRun>& runs, const std::vector<Task>& tasks, Time sent) {
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const std::uint64_t number = runtime::number_in(runs[index].id);
    const RunStory* const story = model_.find(number);
    if (story == nullptr)
      throw Violation{"a submit was answered and run " + std::to_string(number) + " is not durable", number};
    if (story->key != tasks[index].key) throw Violation{"a submit was answered with the id of another run", number};
    if (story->removed && story->removed_at < sent)
      throw Violation{"a submit found a run that had been removed", number};
    const auto [at, is_new] = known_.try_emplace(number);
    if (is_new) {
      at->second.id = runs[index].id;
      at->second.number = number;
      order_.push_back(number);
      const std::string& name = tasks[index].flow.empty() ? tasks[index].handler : tasks[index].flow;
      if (tasks[index].key.empty() && story->plan->name != name)
        throw Violation{"a run was made of another plan", number};
      if (tasks[index].key.empty() && !has_facts_of(*story, tasks[index]))
        throw Violation{"a run has another deadline or policy than its task", number};
    } else {
      if (at->second.id != runs[index].id) throw Violation{"a run has two ids", number};
      if (tasks[index].key.empty()) throw Violation{"two submits were answered with the same run", number};
    }
  }
}

// ---- operating ----------------------------------------

void Callers::operate(Operation operation, const RunId& run, std::string text, std::string payload, Answered then,
                      PartOfRun part) {
  if (!machine_.is_up()) return;
  const std::uint64_t number = runtime::number_in(run);
  const auto known = known_.find(number);
  if (known != known_.end()) {
    ++known->second.operations[static_cast<std::size_t>(operation)].unknown;
    if (operation == Operation::remove) {
      known->second.removal_asked = true;
      model_.may_remove(number);
    }
  }
  auto reply = std::make_shared<Told<runtime::Reply>>(
      [this, operation, number, is_part = !part.step.empty(), then = std::move(then)](
          runtime::Reply&, std::expected<void, Error> answer) {
        ++answered_;
        told_operated(operation, number, is_part, answer);
        if (then) then(answer);
      });
  runtime::Operate input{operation, run, std::move(text), {}, {}, std::move(reply)};
  if (!part.step.empty()) {
    runtime::StepItems& items = input.choice.steps.emplace_back(runtime::StepItems{std::move(part.step), {}});
    if (part.item) items.items.push_back({*part.item, *part.item});
  }
  input.payload = payload_of(std::move(payload), input.body);
  ++asked_;
  machine_.push(std::move(input));
}

void Callers::check_exists(std::uint64_t run, const Error& error) const {
  if (error.code != ErrorCode::not_found || retention) return;
  const auto known = known_.find(run);
  if (known != known_.end() && !known->second.removal_asked) {
    throw Violation{"run " + std::to_string(run) + " was accepted and cannot be found", run};
  }
}

void Callers::told_operated(Operation operation, std::uint64_t run, bool is_part,
                            const std::expected<void, Error>& answer) {
  const auto known = known_.find(run);
  if (known == known_.end()) {
    if (answer && model_.find(run) == nullptr)
      throw Violation{"an operation on a run that does not exist was answered with success", run};
    return;
  }
  Known::Tally& tally = known->second.operations[static_cast<std::size_t>(operation)];
  if (!answer) {
    if (!is_part) check_exists(run, answer.error());  // of a part it may mean that there is no such item (any more)
    if (is_refusal(answer.error())) --tally.unknown;
    return;
  }
  --tally.unknown;
  ++tally.ok;
  const RunStory& story = *model_.find(run);
  const auto require = [&](bool recorded) {
    if (!recorded) throw Violation{"an operation was answered before it was durable", run};
  };
  switch (operation) {
    case Operation::cancel:
      return require(story.cancel_requested || story.ended || story.reopened > 0);
    case Operation::pause:
      return require(story.count(EventType::paused) > 0);
    case Operation::signal:
      return require(story.count(EventType::signaled) >= tally.ok);
    case Operation::retry_failed:
      return require(story.count(EventType::reopened) > 0);
    case Operation::remove:
      return require(story.removed);
    case Operation::drop:
      return require(story.count(EventType::dropped) >= tally.ok);
    case Operation::resume:
      return;
  }
}

void Callers::check_tallies() const {
  for (const auto& [number, known] : known_) {
    const RunStory& story = *model_.find(number);
    const auto tally = [&](Operation operation) { return known.operations[static_cast<std::size_t>(operation)]; };
    const auto at_most = [&](EventType type, std::initializer_list<Operation> operations) {
      std::uint32_t allowed = 0;
      for (const Operation operation : operations) allowed += tally(operation).ok + tally(operation).unknown;
      if (story.count(type) > allowed) {
        throw Violation{"run " + std::to_string(number) + " has more events `" + std::string{name_of(type)} +
                            "` than were asked for",
                        number};
      }
    };
    at_most(EventType::cancel_requested, {Operation::cancel});
    at_most(EventType::paused, {Operation::pause});
    at_most(EventType::signaled, {Operation::signal});
    at_most(EventType::reopened, {Operation::resume, Operation::retry_failed});
    at_most(EventType::dropped, {Operation::drop});
    if (story.count(EventType::signaled) < tally(Operation::signal).ok) throw Violation{"a signal was lost", number};
  }
}

// ---- asking ----------------------------------------

void Callers::ask(const RunId& run, Question question) {
  if (!machine_.is_up()) return;
  ++asked_;
  auto reply =
      std::make_shared<Told<runtime::AskReply>>([this, question, number = runtime::number_in(run)](
                                                    runtime::AskReply& told_reply, std::expected<void, Error> answer) {
        ++answered_;
        told(question, number, told_reply, answer);
      });
  machine_.push(runtime::Ask{question, run, std::move(reply)});
}

namespace {

// The events that come with the answer go on where the store's history ends, and none of them is too young to be told.
void check_past(const RunStory& story, const runtime::AskReply& reply) {
  event::ChunkReader reader{reply.events, reply.events_first};
  event::Record record;
  std::uint64_t next = reply.events_first;
  while (reader.next(record)) ++next;
  if (!reader.ok() || next != reply.sequence + 1)
    throw Violation{"the events that were told do not end with the last one", story.number};
  if (reply.sequence > story.sequence) throw Violation{"events were told that are not durable", story.number};
}

}  // namespace

void Callers::told(Question question, std::uint64_t run, const runtime::AskReply& reply,
                   const std::expected<void, Error>& answer) {
  if (!answer) return check_exists(run, answer.error());
  const auto known = known_.find(run);
  if (known == known_.end()) throw Violation{"a run that nobody knows was described", run};
  const RunStory& story = *model_.find(run);
  if (reply.info.key != story.key || reply.number != run) throw Violation{"a run was described as another one", run};
  const bool ended = !is_open(reply.info.status);
  if (question == Question::ended && !ended)
    throw Violation{"a caller waited for the end and was answered before it", run};
  if (question == Question::past) check_past(story, reply);
  if (!ended) return;
  const Time when = reply.info.ended ? reply.info.ended->time_since_epoch().count() : 0;
  const auto is_this = [&](const RunStory::Ending& ending) {
    return ending.status == reply.info.status && ending.when == when;
  };
  if (std::ranges::none_of(story.endings, is_this))
    throw Violation{"a caller was told of an end that is not durable", run};
  // After the clock was set back a run may end, be reopened and end again at what is the same time to it.
  if (std::ranges::count(story.endings, when, &RunStory::Ending::when) > 1) return;
  RunOutcome outcome = reply.outcome;
  if (reply.large_output) outcome.output = reply.large_output->bytes;
  const auto [at, is_new] = known->second.outcomes.try_emplace(when, outcome);
  if (!is_new && at->second != outcome) throw Violation{"a result changed after it was told", run};
}

void Callers::find_all() {
  if (!machine_.is_up()) return;
  std::vector<std::uint64_t> expected;
  for (const auto& [number, run] : known_) {
    if (!run.removal_asked && !retention) expected.push_back(number);
  }
  ++asked_;
  auto reply = std::make_shared<Told<runtime::FindReply>>(
      [this, expected = std::move(expected)](runtime::FindReply& told_reply, std::expected<void, Error> answer) {
        ++answered_;
        if (answer) told_found(told_reply, expected);
      });
  reply->query.limit = 10'000;
  machine_.push(runtime::Find{std::move(reply)});
}

void Callers::told_found(const runtime::FindReply& reply, const std::vector<std::uint64_t>& expected) {
  std::map<std::uint64_t, const RunInfo*> found;
  std::uint64_t before = UINT64_MAX;
  for (const RunInfo& info : reply.found.runs) {
    const std::uint64_t number = runtime::number_in(info.id);
    if (number >= before) throw Violation{"find() gave a run twice, or in the wrong order", number};
    before = number;
    found[number] = &info;
    const RunStory* const story = model_.find(number);
    if (story == nullptr) throw Violation{"find() gave a run that is not durable", number};
    if (info.key != story->key || info.name != story->plan->name)
      throw Violation{"find() described a run as another one", number};
  }
  for (const std::uint64_t number : expected) {
    if (!found.contains(number) && !known_.at(number).removal_asked)  // by now
      throw Violation{"run " + std::to_string(number) + " was accepted, and find() does not give it", number};
  }
}

// Pages with a filter: whatever they hold must match it.
void Callers::find_some() {
  if (!machine_.is_up()) return;
  ++asked_;
  auto reply = std::make_shared<Told<runtime::FindReply>>(
      [this](runtime::FindReply& told_reply, std::expected<void, Error> answer) {
        ++answered_;
        if (!answer) return;
        if (told_reply.found.runs.size() > told_reply.query.limit) throw Violation{"find() gave more than its limit", 0};
        for (const RunInfo& info : told_reply.found.runs) {
          if (told_reply.query.status && info.status != *told_reply.query.status)
            throw Violation{"find() gave what was not asked for", 0};
          if (told_reply.below > 0 && runtime::number_in(info.id) >= told_reply.below)
            throw Violation{"find() gave a run of another page", 0};
        }
      });
  reply->query.limit = 1 + world_.below(10);
  if (world_.chance(700)) reply->query.status = static_cast<RunStatus>(world_.below(5));
  if (world_.chance(300)) reply->below = 1 + world_.below(50);
  machine_.push(runtime::Find{std::move(reply)});
}

// Bad input gets an error. That it changes nothing the tallies and the keys show.
void Callers::ask_for_nonsense(const Program& program) {
  if (!machine_.is_up()) return;
  switch (world_.below(5)) {
    case 0: {
      RunId id;
      for (std::uint8_t& byte : id.bytes) byte = static_cast<std::uint8_t>(world_.below(256));
      return operate(static_cast<Operation>(world_.below(7)), id, "why");
    }
    case 1: {  // the number of a run that exists, in an id that does not
      const Known* const known = any();
      if (known == nullptr) return;
      RunId id = known->id;
      id.bytes[8] = static_cast<std::uint8_t>(id.bytes[8] ^ 1U);
      ++asked_;
      auto reply = std::make_shared<Told<runtime::AskReply>>([](runtime::AskReply&, std::expected<void, Error> answer) {
        if (answer) throw Violation{"an id that does not exist was answered", 0};
      });
      return machine_.push(runtime::Ask{Question::now, id, std::move(reply)});
    }
    case 2:
      if (machine_.book()->plan_for({.handler = "nobody"}))
        throw Violation{"a handler that does not exist has a plan", 0};
      return;
    case 3:
      if (machine_.book()->plan_for({.flow = "nothing"})) throw Violation{"a flow that does not exist has a plan", 0};
      return;
    default:
      Flow flow{.name = "bad",
                .steps = {{.name = "a", .handler = program.handlers[0].name, .needs = {"b"}},
                          {.name = "b", .handler = program.handlers[0].name, .needs = {"a"}}}};
      if (machine_.book()->add_flow(flow)) throw Violation{"a flow that goes in a circle was taken", 0};
  }
}

}  // namespace reprise::sim
