// The tables from which a seed draws: mostly small numbers, and now and then a rare thing.
#include "sim/draw.hpp"

#include <algorithm>

#include "runtime/ids.hpp"

namespace reprise::sim {
namespace {

constexpr std::size_t depth_max = 2;  // of runs that do the work of others

Duration draw_duration(World& world, Time low, Time high) { return Duration{world.span(low, high)}; }

FailureRules draw_rules(World& world) {
  FailureRules rules;
  if (world.chance(600)) rules.push_back(FailureRule::of(FailureClass::transient));
  if (world.chance(400)) rules.push_back(FailureRule::of_type("TimeoutError"));
  if (world.chance(300)) rules.push_back(FailureRule::of_exit(64, 75));
  if (world.chance(300)) rules.push_back(FailureRule::of_http_family(5));
  return rules;
}

Failure draw_failure(World& world, std::size_t kinds) {
  switch (world.below(std::min<std::size_t>(kinds, 9))) {
    case 0:
      return {.type = "ConnectionResetError", .message = "connection reset by peer"};
    case 1:
      return {.type = "RuntimeError",
              .message = "schema validation failed",
              .failure_class = FailureClass::contract_failure};
    case 2:
      return {
          .message = "throttled", .http_status = 503, .retry_after = draw_duration(world, millisecond, 20 * second)};
    case 3:
      return {.message = "2 tests failed", .failure_class = FailureClass::test_failure, .exit_code = 1};
    case 4:
      return {.type = "TimeoutError", .message = "took " + std::to_string(world.below(100)) + " ms"};
    case 5:
      return {.message = "try later", .exit_code = 75, .details = "exit"};
    case 6:
      return {.type = "ValueError", .message = "no", .failure_class = FailureClass::deterministic};
    case 7:
      return {.message = "never", .permanent = true};
    default:
      return {.message = "quota", .failure_class = FailureClass::budget_exhausted};
  }
}

OnFailure draw_on_failure(World& world) { return static_cast<OnFailure>(world.below(5)); }

FlowStep draw_step(World& world, const Program& program, const Flow& flow, std::size_t index) {
  FlowStep step{.name = "s" + std::to_string(index)};
  std::string list;
  for (const FlowStep& before : flow.steps) {
    if (!world.chance(450)) continue;
    step.needs.push_back(before.name);
    if (before.handler == "list") list = before.name;
  }
  const std::size_t verb = world.below(100);
  if (verb < 10) {
    step.wait = draw_duration(world, millisecond, 30 * second);
    return step;
  }
  step.on_failure = draw_on_failure(world);
  if (step.on_failure == OnFailure::revisit) {
    // Back to itself, or to a step it needs.
    step.revisit = step.needs.empty() || world.chance(300) ? step.name : step.needs[world.below(step.needs.size())];
    step.max_visits = static_cast<std::uint32_t>(world.between(1, 4));
  }
  if (verb < 22) {
    step.signal = world.chance(500) ? "go" : "stop";
    if (world.chance(600)) step.timeout = draw_duration(world, millisecond, 20 * second);
    return step;
  }
  step.handler = program.handlers[world.below(program.handlers.size())].name;
  if (!list.empty() && world.chance(800)) {
    step.for_each = list;
    step.max_parallel = world.chance(500) ? 1 + static_cast<std::uint32_t>(world.below(3)) : 0;
    if (world.chance(400)) step.tolerate = static_cast<std::uint32_t>(world.below(4));
  }
  if (world.chance(600)) step.retry = draw_policy(world);
  if (world.chance(200)) step.timeout = draw_duration(world, 10 * millisecond, 5 * second);
  if (world.chance(250)) {
    step.circuit_breaker = CircuitBreakerRule{.limit = 1 + static_cast<std::uint32_t>(world.below(3))};
    if (world.chance(700)) step.circuit_breaker->tracked.push_back(FailureClass::transient);
  }
  return step;
}

Flow draw_flow(World& world, const Program& program, std::size_t index) {
  Flow flow{.name = "flow" + std::to_string(index)};
  const std::size_t steps = 1 + world.below(6);
  while (flow.steps.size() < steps) flow.steps.push_back(draw_step(world, program, flow, flow.steps.size()));
  if (world.chance(250)) flow.max_parallel = 1 + static_cast<std::uint32_t>(world.below(2));
  if (world.chance(200)) flow.deadline = draw_duration(world, 100 * millisecond, 60 * second);
  if (world.chance(300)) flow.retry = draw_policy(world);
  return flow;
}

core::StepPlan draw_document_step(World& world, const Program& program, const std::string& name) {
  core::StepPlan step;
  step.name = std::make_shared<const std::string>(name);
  step.prepares = world.chance(400);
  const std::size_t verb = world.below(100);
  if (verb < 10) {
    step.kind = core::StepKind::wait;
    step.wait = world.span(millisecond, 30 * second);
    if (world.chance(300)) step.wait_until = birth + world.span(second, 60 * second);
    return step;
  }
  step.on_failure = draw_on_failure(world);
  step.max_visits = static_cast<std::uint32_t>(world.between(1, 4));
  if (verb < 18) {
    step.kind = core::StepKind::signal;
    step.signal = world.chance(500) ? "go" : "stop";
    if (world.chance(600)) step.wait = world.span(millisecond, 20 * second);
    return step;
  }
  step.handler = program.handlers[world.below(program.handlers.size())].name;
  step.policy = draw_policy(world);
  step.for_each = step.prepares && world.chance(500);
  if (step.on_failure == OnFailure::dead_letter) step.tolerate = UINT32_MAX;
  if (world.chance(300)) step.tolerate = static_cast<std::uint32_t>(world.below(3));
  if (world.chance(300)) step.tolerate_millionths = static_cast<std::uint32_t>(world.between(1, 1'000'000));
  if (world.chance(300)) step.max_parallel = 1 + static_cast<std::uint32_t>(world.below(3));
  if (world.chance(80)) step.effect = Effect::at_most_once;
  step.fallback = static_cast<core::FallbackRule>(world.below(3));
  step.handles_failure = world.chance(250);
  if (world.chance(250)) {
    step.breaker_limit = 1 + static_cast<std::uint32_t>(world.below(3));
    step.breaker_classes = 0b11111;
  }
  return step;
}

// Steps that run finally need only each other, and do not go back to others.
core::Plan draw_document(World& world, const Program& program, std::size_t index) {
  core::Plan plan{.name = "document" + std::to_string(index), .steps = {}};
  const std::size_t main_steps = 1 + world.below(5);
  const std::size_t steps = main_steps + (world.chance(500) ? 1 + world.below(2) : 0);
  for (std::uint32_t number = 0; number < steps; ++number) {
    core::StepPlan step = draw_document_step(world, program, "s" + std::to_string(number));
    step.runs_finally = number >= main_steps;
    for (auto need = static_cast<std::uint32_t>(step.runs_finally ? main_steps : 0); need < number; ++need) {
      if (world.chance(400)) step.needs.push_back(need);
    }
    step.reads = step.needs;
    step.revisit = step.needs.empty() || world.chance(300) ? number : step.needs[world.below(step.needs.size())];
    plan.steps.push_back(std::move(step));
  }
  if (world.chance(250)) plan.max_parallel = 1 + static_cast<std::uint32_t>(world.below(2));
  if (world.chance(200)) plan.deadline = world.span(100 * millisecond, 60 * second);
  plan.is_document = true;
  plan.connect();
  return plan;
}

}  // namespace

runtime::LoopSettings draw_settings(World& world) {
  runtime::LoopSettings settings;
  if (world.chance(500)) settings.memory = static_cast<std::size_t>(world.span(4000, 200'000));
  if (world.chance(600)) settings.park_after = draw_duration(world, millisecond, 5 * second);
  if (world.chance(600)) settings.journal_max = static_cast<std::size_t>(world.span(100, 20'000));
  if (world.chance(500)) {
    settings.timers_a_turn = 1 + world.below(8);
    settings.starts_a_turn = 1 + world.below(8);
    settings.rows_a_turn = 1 + world.below(4);
    settings.removals_a_turn = 1 + world.below(4);
    settings.images_to_shorten = 1 + world.below(4);
  }
  if (world.chance(100)) settings.max_open = static_cast<std::uint64_t>(world.between(5, 100));
  if (world.chance(100)) settings.keep_ended = draw_duration(world, 100 * millisecond, 20 * second);
  if (world.chance(100)) settings.keep_count = world.below(20);
  return settings;
}

Policy draw_policy(World& world) {
  Policy policy = world.chance(500) ? policy::standard : policy::aggressive;
  policy.max_attempts = static_cast<std::uint64_t>(world.between(1, 6));
  if (world.chance(50)) policy.max_attempts.reset();
  policy.backoff = static_cast<Backoff>(world.below(6));
  policy.initial = draw_duration(world, millisecond, 5 * second);
  if (world.chance(200)) policy.initial = Duration{0};
  if (policy.backoff == Backoff::list) policy.delays = {policy.initial, Duration{0}, policy.initial * 2};
  policy.jitter = static_cast<Jitter>(world.below(4));
  policy.max = draw_duration(world, 100 * millisecond, 30 * second);
  if (world.chance(200)) policy.max_elapsed = draw_duration(world, millisecond, 40 * second);
  if (world.chance(100)) policy.elapsed_from = ElapsedFrom::first_start;
  if (world.chance(250)) policy.attempt_timeout = draw_duration(world, 5 * millisecond, 5 * second);
  if (world.chance(100)) policy.retry_budget = draw_duration(world, 10 * millisecond, 20 * second);
  if (world.chance(150)) policy.only_on = draw_rules(world);
  if (world.chance(150)) policy.never_on = draw_rules(world);
  return policy;
}

Program draw_program(World& world) {
  Program program;
  for (const char* const name : {"plain", "list", "third", "fourth"}) {
    HandlerOptions options;
    if (world.chance(500)) options.retry = draw_policy(world);
    if (world.chance(200)) options.timeout = draw_duration(world, 10 * millisecond, 5 * second);
    if (world.chance(300)) options.concurrency = 1 + static_cast<std::uint32_t>(world.below(3));
    program.handlers.push_back({name, options});
  }
  for (std::size_t index = 0; index < 5; ++index) program.flows.push_back(draw_flow(world, program, index));
  for (std::size_t index = 0; index < 5; ++index) program.documents.push_back(draw_document(world, program, index));
  return program;
}

Task draw_task(World& world, const Program& program) {
  Task task;
  if (world.chance(350)) {
    task.flow = program.documents[world.below(program.documents.size())].name;
  } else if (world.chance(450)) {
    task.flow = program.flows[world.below(program.flows.size())].name;
  } else {
    task.handler = program.handlers[world.below(program.handlers.size())].name;
    if (world.chance(150)) {
      for (std::size_t left = 1 + world.below(8); left > 0; --left)
        task.items.push_back("item " + std::to_string(left));
      if (world.chance(50)) task.items.push_back(std::string(5000, 'i'));
    }
    if (world.chance(200)) task.retry = draw_policy(world);
  }
  if (task.items.empty()) task.input = draw_output(world);
  if (world.chance(300)) task.key = "key " + std::to_string(world.below(24));
  if (world.chance(250)) task.delay = draw_duration(world, millisecond, 40 * second);
  if (world.chance(300)) task.priority = static_cast<std::uint8_t>(world.below(10));
  if (world.chance(100)) task.deadline = draw_duration(world, 10 * millisecond, 60 * second);
  return task;
}

std::string draw_output(World& world) {
  if (world.chance(300)) return {};
  if (world.chance(970)) return "o" + std::to_string(world.below(1000));
  return std::string(4097 + world.below(3000), static_cast<char>('a' + world.below(26)));
}

Behaviour draw_behaviour(World& world) {
  return {.fails = static_cast<std::uint32_t>(world.between(0, 700)),
          .hangs = world.chance(300) ? static_cast<std::uint32_t>(world.between(1, 200)) : 0,
          .answers_twice = world.chance(300) ? static_cast<std::uint32_t>(world.between(1, 300)) : 0,
          .obeys = static_cast<std::uint32_t>(world.between(0, 1000)),
          .reports = world.chance(200) ? 300U : 0U,
          .hands_over = world.chance(600) ? static_cast<std::uint32_t>(world.between(50, 500)) : 0,
          .slowest = world.span(100'000, 5 * second),
          .failures = 1 + world.below(9)};
}

Act act(World& world, const Behaviour& behaviour, const exec::Job& job, bool calm) {
  Act act{.takes = world.chance(100) ? 0 : world.span(1000, behaviour.slowest)};
  if (world.chance(calm ? 150 : behaviour.fails)) act.failure = draw_failure(world, behaviour.failures);
  act.precondition = job.context != nullptr && job.context->run_input != nullptr && world.chance(50);
  if (job.handler == 1 && !world.chance(50)) {
    std::vector<std::string> elements;
    for (std::size_t left = world.below(7); left > 0; --left) elements.push_back("element " + std::to_string(left));
    if (world.chance(100)) elements.push_back(std::string(5000, 'e'));
    act.output = encode_list(elements);
  } else {
    act.output = draw_output(world);
  }
  if (world.chance(behaviour.obeys)) act.obeys = world.span(1000, second);
  const bool is_document = job.context != nullptr && job.context->run_input != nullptr;
  const bool may_hand_over = is_document && job.context->stage == core::stage::main &&
                             job.context->brought == nullptr && depth_of(*job.context->run_input) < depth_max;
  if (may_hand_over && world.chance(calm ? 50 : behaviour.hands_over)) {
    act.child = world.below(5);
    act.returns = !behaviour.is_limited && world.chance(300);
  }
  if (calm) return act;
  act.hangs = world.chance(behaviour.hangs) && (job.timeout.count() > 0 || job.deadline > 0);
  if (world.chance(behaviour.answers_twice)) act.again = world.span(1000, 10 * second);
  if (world.chance(behaviour.reports)) act.progress = 1 + static_cast<std::uint32_t>(world.below(3));
  return act;
}

Finding find_out(World& world, const Behaviour& behaviour, bool calm) {
  Finding finding{.takes = world.chance(300) ? 0 : world.span(1000, behaviour.slowest), .obeys = world.chance(800)};
  finding.skip = world.chance(200);
  if (!finding.skip && world.chance(calm ? 50 : 150)) finding.failure = draw_failure(world, behaviour.failures);
  for (std::size_t left = world.below(7); left > 0; --left)
    finding.elements.push_back("element " + std::to_string(left));
  if (world.chance(100)) finding.elements.push_back(std::string(5000, 'e'));
  return finding;
}

std::uint64_t runtime_number(const RunId& id) { return runtime::number_in(id); }
RunId runtime_id(store::Store& store, std::uint64_t number, Time created) {
  return runtime::id_of(store.secret(), number, created, store.slot());
}

}  // namespace reprise::sim
