#include "runtime/plan_book.hpp"

#include <algorithm>
#include <limits>

#include "event/attributes.hpp"
#include "text/nearest.hpp"

namespace reprise::runtime {
namespace {

constexpr std::size_t plans_max = 1'000'000;

std::unexpected<Error> invalid(std::string message) {
  return std::unexpected{Error{ErrorCode::invalid, std::move(message)}};
}

std::string quoted(std::string_view name) { return '"' + std::string{name} + '"'; }

template <class Map>
std::vector<std::string_view> names_in(const Map& map) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

// no handler named "chrage"; did you mean "charge"?
std::string unknown(std::string_view what, std::string_view name, const std::vector<std::string_view>& known) {
  std::string message = "there is no " + std::string{what} + " named " + quoted(name);
  if (const std::string_view near = text::nearest(name, known); !near.empty()) {
    return message + "; did you mean " + quoted(near) + "?";
  }
  if (known.empty()) return message + "; none has been given to the engine yet";
  message += "; known are ";
  for (std::size_t index = 0; index < std::min<std::size_t>(known.size(), 8); ++index) {
    message += (index > 0 ? ", " : "") + quoted(known[index]);
  }
  return message;
}

std::optional<Duration> shorter(const std::optional<Duration>& left, const std::optional<Duration>& right) {
  if (!left) return right;
  return right ? std::min(*left, *right) : left;
}

// Azolla's clock starts with the task: it would be over before the first attempt.
bool begins_too_late(const Task& task, const Policy& policy) {
  return task.delay > Duration{0} && policy.elapsed_from == ElapsedFrom::submission && policy.max_elapsed &&
         task.delay >= *policy.max_elapsed;
}

std::uint32_t index_of(const Flow& flow, std::string_view name) {
  const auto found = std::ranges::find(flow.steps, name, &FlowStep::name);
  return static_cast<std::uint32_t>(found - flow.steps.begin());
}

bool has_step(const Flow& flow, std::string_view name) { return index_of(flow, name) < flow.steps.size(); }

// Is `before` the step itself, or does the step need it, directly or not?
bool comes_after(const Flow& flow, const FlowStep& step, std::string_view before) {
  std::vector<bool> seen(flow.steps.size(), false);
  std::vector<std::uint32_t> open{index_of(flow, step.name)};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (flow.steps[at].name == before) return true;
    seen[at] = true;
    for (const std::string& need : flow.steps[at].needs) {
      const std::uint32_t next = index_of(flow, need);
      if (next < flow.steps.size() && !seen[next]) open.push_back(next);
    }
  }
  return false;
}

// a -> b -> a, or nothing.
std::string cycle_in(const Flow& flow) {
  std::vector<int> state(flow.steps.size(), 0);  // 1 = on the way, 2 = done
  std::vector<std::uint32_t> way;
  std::string found;
  const auto visit = [&](const auto& self, std::uint32_t step) -> bool {
    if (state[step] == 2) return false;
    way.push_back(step);
    if (state[step] == 1) {
      for (auto at = std::ranges::find(way, step); at != way.end(); ++at) {
        found += (found.empty() ? "" : " -> ") + flow.steps[*at].name;
      }
      return true;
    }
    state[step] = 1;
    for (const std::string& need : flow.steps[step].needs) {
      if (has_step(flow, need) && self(self, index_of(flow, need))) return true;
    }
    state[step] = 2;
    way.pop_back();
    return false;
  };
  for (std::uint32_t step = 0; step < flow.steps.size(); ++step) {
    way.clear();
    if (visit(visit, step)) break;
  }
  return found;
}

RunAttributes attributes_of(const Task& task) {
  return {.labels = task.labels,
          .queue = task.queue,
          .tenant = task.tenant,
          .max_cost = task.max_cost,
          .traceparent = task.traceparent};
}

}  // namespace

PlanBook::PlanBook(PolicyDefaults defaults, core::FactsDecoder facts)
    : defaults_{std::move(defaults)}, facts_{std::move(facts)} {
  std::map<std::string, Policy, std::less<>> by_type;
  for (auto& [type, policy] : defaults_.by_type) by_type.insert_or_assign(std::string{actor_type_of(type)}, policy);
  defaults_.by_type = std::move(by_type);
}

core::StepPlan PlanBook::call_step(std::string name, const std::string& handler, PolicyLevels levels,
                                   const HandlerOptions& options, const std::optional<Duration>& timeout) const {
  core::StepPlan step;
  step.name = std::make_shared<const std::string>(std::move(name));
  step.handler = handler;
  step.effect = options.effect;
  step.actor_type = actor_type_of(options.type);
  if (const auto typed = defaults_.by_type.find(step.actor_type); typed != defaults_.by_type.end())
    levels.actor_type = &typed->second;
  const ResolvedPolicy resolved = resolve(levels, step.actor_type);
  const bool is_built_in = resolved.level == PolicyLevel::built_in;
  step.level = resolved.level;
  step.policy = is_built_in ? built_in_policy(defaults_.built_ins, step.actor_type) : *resolved.policy;
  if (is_built_in) step.dialect = defaults_.built_ins;
  step.policy.attempt_timeout = shorter(step.policy.attempt_timeout, shorter(options.timeout, timeout));
  return step;
}

// A policy's own error types are stored with the plan, so that they hold after a restart. The others have the engine's, now and then.
void PlanBook::settle_types(core::Plan& plan) const {
  const bool has_own = std::ranges::any_of(plan.steps, [](const auto& step) { return step.policy.types != nullptr; });
  if (has_own && defaults_.types != nullptr) plan.types = defaults_.types->added();
  for (core::StepPlan& step : plan.steps) {
    if (step.policy.types == nullptr) {
      step.policy.types = defaults_.types;
      continue;
    }
    for (auto& type : step.policy.types->added()) {
      if (std::ranges::find(plan.types, type) == plan.types.end()) plan.types.push_back(std::move(type));
    }
  }
  plan.adopt_types();
}

void PlanBook::restore(std::vector<BookedPlan> plans) {
  const std::lock_guard lock{mutex_};
  for (BookedPlan& plan : plans) {
    auto booked = std::make_unique<BookedPlan>(std::move(plan));
    if (by_number_.size() <= booked->number) by_number_.resize(booked->number + 1, nullptr);
    by_number_[booked->number] = booked.get();
    std::string body = booked->body;
    by_body_.emplace(std::move(body), std::move(booked));
  }
}

std::expected<const BookedPlan*, Error> PlanBook::book(core::Plan plan) {
  std::string body = encode_plan(plan);
  if (const auto known = by_body_.find(body); known != by_body_.end()) return known->second.get();
  if (by_number_.size() >= plans_max)
    return std::unexpected{Error{ErrorCode::full, "the store has a million plans already"}};
  plan.connect();
  auto booked = std::make_unique<BookedPlan>();
  booked->number = static_cast<std::uint32_t>(by_number_.size());
  booked->plan = std::make_shared<const core::Plan>(std::move(plan));
  booked->body = body;
  by_number_.push_back(booked.get());
  return by_body_.emplace(std::move(body), std::move(booked)).first->second.get();
}

const BookedPlan* PlanBook::plan(std::uint32_t number) const {
  const std::lock_guard lock{mutex_};
  return number < by_number_.size() ? by_number_[number] : nullptr;
}

std::expected<void, Error> PlanBook::add_handler(const std::string& name, HandlerOptions options) {
  if (name.empty() || name.size() > 200) return invalid("the name of a handler has 1 to 200 characters");
  const std::lock_guard lock{mutex_};
  if (functions_.contains(name)) return invalid("there is a function named " + quoted(name) + " already");
  const auto plan = book(task_plan(name, options));
  if (!plan) return std::unexpected{plan.error()};
  handlers_[name] = {std::move(options), *plan};
  return {};
}

std::expected<std::string, Error> PlanBook::add_function(const std::string& name, std::uint32_t version) {
  if (name.empty() || name.size() > 200) return invalid("the name of a function has 1 to 200 characters");
  const std::lock_guard lock{mutex_};
  if (handlers_.contains(name)) return invalid("there is a handler named " + quoted(name) + " already");
  const std::string queue = "function " + name + '@' + std::to_string(version);
  core::Plan plan;
  plan.name = name;
  plan.is_function = true;
  core::StepPlan& step = plan.steps.emplace_back();
  step.name = std::make_shared<const std::string>(name);
  step.handler = queue;
  step.policy = policy::none;
  settle_types(plan);
  const auto booked = book(std::move(plan));
  if (!booked) return std::unexpected{booked.error()};
  KnownFunction& known = functions_[name];
  if (known.plan == nullptr || version >= known.version) known = {version, *booked};
  return queue;
}

std::expected<const BookedPlan*, Error> PlanBook::plan_of_command(const exec::Command& command) {
  using event::OperationKind;
  const std::lock_guard lock{mutex_};
  core::Plan plan;
  switch (command.kind) {
    case OperationKind::call:
    case OperationKind::undo: {
      const auto found = handlers_.find(command.name);
      if (found == handlers_.end()) return invalid(unknown("handler", command.name, names_in(handlers_)));
      if (!command.retry && !command.timeout) return found->second.plan;
      HandlerOptions options = found->second.options;
      if (command.retry) options.retry = command.retry;
      options.timeout = shorter(options.timeout, command.timeout);
      plan = task_plan(command.name, options);
      break;
    }
    case OperationKind::run:
      plan = task_plan(std::string{closure_queue}, {.retry = command.retry, .timeout = command.timeout});
      break;
    case OperationKind::child:
      return invalid("a function begins no runs of its own");
    case OperationKind::sleep:
    case OperationKind::mark:
    case OperationKind::signal:
    case OperationKind::promise: {
      plan.name = name_of(command.kind);
      core::StepPlan& step = plan.steps.emplace_back();
      step.name = std::make_shared<const std::string>(plan.name);
      const bool waits_for_time = command.kind == OperationKind::sleep || command.kind == OperationKind::mark;
      step.kind = waits_for_time ? core::StepKind::wait : core::StepKind::signal;
      break;
    }
  }
  return book(std::move(plan));
}

core::Plan PlanBook::task_plan(const std::string& handler, const HandlerOptions& options) const {
  const PolicyLevels levels{.step = options.retry ? &*options.retry : nullptr,
                            .run = defaults_.retry ? &*defaults_.retry : nullptr};
  core::Plan plan;
  plan.name = handler;
  plan.steps.push_back(call_step(handler, handler, levels, options, {}));
  settle_types(plan);
  return plan;
}

std::expected<PlannedTask, Error> PlanBook::with_facts(const BookedPlan* plan, const Task& task,
                                                       const HandlerOptions& options) {
  if (begins_too_late(task, task.retry ? *task.retry : plan->plan->steps.front().policy))
    return invalid("the delay of the task is not shorter than the time its policy gives it (stop.max_delay)");
  core::RunFacts facts;
  if (task.deadline) facts.deadline = std::max<std::int64_t>(1, task.deadline->count());
  if (task.retry) {
    Policy policy = *task.retry;
    policy.attempt_timeout = shorter(policy.attempt_timeout, options.timeout);
    if (policy.types != nullptr) facts.types = policy.types->added();
    facts.policy = std::make_shared<const Policy>(std::move(policy));
  }
  return record(plan, facts, attributes_of(task));
}

std::expected<PlannedTask, Error> PlanBook::record(const BookedPlan* plan, const core::RunFacts& facts,
                                                   RunAttributes attributes) {
  if (auto settled = event::settle_attributes(attributes); !settled) return invalid(settled.error());
  const std::string bytes = encode_facts(facts, event::encode_attributes(attributes));
  if (bytes.empty()) return PlannedTask{plan};
  // Read back as the next process will read it: what could not be read then is refused now.
  auto read = facts_.read(bytes);
  if (read == nullptr)
    return invalid("the policy of this task cannot be recorded: one of its rules has no RE2 pattern");
  return PlannedTask{plan, std::move(read)};
}

std::expected<PlannedTask, Error> PlanBook::plan_for(const Task& task) {
  if (task.handler.empty() == task.flow.empty()) return invalid("a task names either a handler or a flow");
  const std::lock_guard lock{mutex_};
  if (!task.flow.empty()) {
    if (!task.items.empty()) return invalid("a flow takes one input; a step with for_each has items");
    if (task.retry) return invalid("the policies of a flow are those of its steps");
    const auto found = flows_.find(task.flow);
    if (found == flows_.end()) return invalid(unknown("flow", task.flow, names_in(flows_)));
    return with_facts(found->second, task, {});
  }
  if (!task.items.empty() && !task.input.empty()) return invalid("a task has either an input or items");
  if (const auto function = functions_.find(task.handler); function != functions_.end()) {
    if (!task.items.empty()) return invalid("a function takes one input");
    if (task.retry) return invalid("a function is not retried: the policies are those of what it calls");
    return with_facts(function->second.plan, task, {});
  }
  const auto found = handlers_.find(task.handler);
  if (found == handlers_.end()) return invalid(unknown("handler", task.handler, names_in(handlers_)));
  return with_facts(found->second.plan, task, found->second.options);
}

std::expected<EffectivePolicy, Error> PlanBook::effective_policy(std::string_view handler) const {
  const std::lock_guard lock{mutex_};
  const auto found = handlers_.find(handler);
  if (found == handlers_.end()) return invalid(unknown("handler", handler, names_in(handlers_)));
  const core::StepPlan& step = found->second.plan->plan->steps.front();
  return EffectivePolicy{step.policy, step.level};
}

std::expected<PlannedTask, Error> PlanBook::book_document(core::Plan plan, RunAttributes attributes) {
  const std::lock_guard lock{mutex_};
  const auto booked = book(std::move(plan));
  if (!booked) return std::unexpected{booked.error()};
  return record(*booked, {}, std::move(attributes));
}

// ---- flows ----------------------------------------

std::string PlanBook::mistakes_in(const Flow& flow) const {
  std::string mistakes;
  const auto say = [&](const std::string& step, std::string text) {
    mistakes += (mistakes.empty() ? "" : "\n") + (step.empty() ? "" : "step " + quoted(step) + ": ") + std::move(text);
  };
  if (flow.name.empty() || flow.name.size() > 200) say("", "the name of a flow has 1 to 200 characters");
  if (flow.steps.empty()) say("", "a flow has at least one step");
  std::vector<std::string_view> names;
  for (const FlowStep& step : flow.steps) names.push_back(step.name);
  for (const FlowStep& step : flow.steps) {
    if (step.name.empty()) say("", "a step has a name");
    if (std::ranges::count(names, step.name) > 1) say(step.name, "another step has the same name");
    const int verbs = (step.handler.empty() ? 0 : 1) + (step.wait ? 1 : 0) + (step.signal.empty() ? 0 : 1);
    if (verbs != 1) say(step.name, "exactly one of handler, wait and signal says what a step does");
    if (!step.handler.empty() && !handlers_.contains(step.handler))
      say(step.name, unknown("handler", step.handler, names_in(handlers_)));
    if (step.wait && step.wait->count() < 0) say(step.name, "a wait is not negative");
    for (const std::string& need : step.needs) {
      if (!has_step(flow, need)) say(step.name, unknown("step", need, names));
    }
    if (!step.for_each.empty() && std::ranges::find(step.needs, step.for_each) == step.needs.end()) {
      say(step.name, "for_each names a step that this one needs");
    }
    if (!step.for_each.empty() && step.handler.empty()) say(step.name, "for_each goes with a handler");
    if ((step.on_failure == OnFailure::revisit) != !step.revisit.empty())
      say(step.name, "on_failure revisit names the step in `revisit`");
    if (!step.revisit.empty() && !has_step(flow, step.revisit)) {
      say(step.name, unknown("step", step.revisit, names));
    } else if (!step.revisit.empty() && !comes_after(flow, step, step.revisit)) {
      say(step.name, "revisit names the step itself or one that it needs, directly or not; " + quoted(step.revisit) +
                         " is neither");
    }
    if (step.max_visits == 0) say(step.name, "max_visits is at least 1");
    if (step.circuit_breaker && step.circuit_breaker->limit == 0)
      say(step.name, "the limit of a circuit breaker is at least 1");
  }
  if (const std::string cycle = cycle_in(flow); !cycle.empty()) say("", "steps need each other in a circle: " + cycle);
  return mistakes;
}

core::StepPlan PlanBook::flow_step(const Flow& flow, const FlowStep& step) const {
  const HandlerOptions none;
  const auto handler = handlers_.find(step.handler);
  const HandlerOptions& options = handler != handlers_.end() ? handler->second.options : none;
  const Policy* own = options.retry ? &*options.retry : nullptr;
  if (step.retry) own = &*step.retry;
  const Policy* run = defaults_.retry ? &*defaults_.retry : nullptr;
  if (flow.retry) run = &*flow.retry;
  core::StepPlan plan = call_step(step.name, step.handler, {.step = own, .run = run}, options, step.timeout);
  if (step.wait) {
    plan.kind = core::StepKind::wait;
    plan.wait = step.wait->count();
    plan.actor_type.clear();
  } else if (!step.signal.empty()) {
    plan.kind = core::StepKind::signal;
    plan.signal = step.signal;
    plan.wait = step.timeout.value_or(Duration{0}).count();
    plan.actor_type.clear();
  }
  for (const std::string& need : step.needs) plan.needs.push_back(index_of(flow, need));
  plan.reads = plan.needs;
  plan.for_each = !step.for_each.empty();
  if (plan.for_each) plan.list_step = index_of(flow, step.for_each);
  plan.max_parallel = step.max_parallel;
  const bool keeps_letters = step.on_failure == OnFailure::dead_letter;
  plan.tolerate = step.tolerate.value_or(keeps_letters ? std::numeric_limits<std::uint32_t>::max() : 0);
  plan.on_failure = step.on_failure;
  if (!step.revisit.empty()) plan.revisit = index_of(flow, step.revisit);
  plan.max_visits = step.max_visits;
  if (step.circuit_breaker) {
    plan.breaker_limit = step.circuit_breaker->limit;
    for (const FailureClass tracked : step.circuit_breaker->tracked) {
      plan.breaker_classes = static_cast<std::uint8_t>(plan.breaker_classes | 1U << static_cast<unsigned>(tracked));
    }
  }
  return plan;
}

std::expected<void, Error> PlanBook::add_flow(const Flow& flow) {
  const std::lock_guard lock{mutex_};
  if (const std::string mistakes = mistakes_in(flow); !mistakes.empty()) return invalid(mistakes);
  core::Plan plan;
  plan.name = flow.name;
  if (flow.deadline) plan.deadline = std::max<std::int64_t>(1, flow.deadline->count());
  plan.max_parallel = flow.max_parallel;
  for (const FlowStep& step : flow.steps) plan.steps.push_back(flow_step(flow, step));
  settle_types(plan);
  const auto booked = book(std::move(plan));
  if (!booked) return std::unexpected{booked.error()};
  flows_[flow.name] = *booked;
  return {};
}

}  // namespace reprise::runtime
