// Plans as bytes and back, policies included: what a run was submitted with is what it keeps, whatever the program says later.
#include "core/plan.hpp"

#include <algorithm>
#include <bit>

#include "core/item_policies.hpp"
#include "event/codec.hpp"

namespace reprise::core {

using event::ByteReader;
using event::put_byte;
using event::put_bytes;
using event::put_signed;
using event::put_varint;

namespace {

// 1: without what documents need. 2: without rules, effects, the limit of losses and notes. 3: what was over is never run again because
// what it needs has been healed.
constexpr std::uint8_t plan_version = 4;

enum class PlanKind : std::uint8_t { flow, document, function };

// Notes are what a step may have beyond its fixed fields: (tag, length, bytes), tags rising, and only those that say something. A reader
// passes over tags that it does not know. To add one: the next free number here and in docs/formats/store.md, a line in put_step_notes()
// and one in read_step_notes(). What a reader must not overlook needs a new plan_version instead.
enum class StepNote : std::uint32_t {
  actor_type = 1,
  dialect = 2,
  policy_line = 3,
  switched_off = 4,
  item_breaker = 5,
  command_policy = 6  // once for each
};

void put_note(std::string& notes, StepNote tag, std::string_view bytes) {
  put_varint(notes, static_cast<std::uint32_t>(tag));
  put_bytes(notes, bytes);
}
void put_note(std::string& notes, StepNote tag, std::uint64_t number) {
  std::string bytes;
  put_varint(bytes, number);
  put_note(notes, tag, std::string_view{bytes});
}

namespace step_bit {
constexpr unsigned prepares = 1U << 0U;
constexpr unsigned handles_failure = 1U << 1U;
constexpr unsigned runs_finally = 1U << 2U;
constexpr unsigned goal = 1U << 3U;
constexpr unsigned runs_again = 1U << 4U;
constexpr unsigned needs_success = 1U << 5U;
}  // namespace step_bit

void put_optional(std::string& out, const std::optional<Duration>& value) {
  put_byte(out, value ? 1 : 0);
  if (value) put_signed(out, value->count());
}

std::optional<Duration> read_optional(ByteReader& in) {
  if (in.byte() == 0) return std::nullopt;
  return Duration{in.signed_varint()};
}

void put_double(std::string& out, double value) { put_varint(out, std::bit_cast<std::uint64_t>(value)); }
double read_double(ByteReader& in) { return std::bit_cast<double>(in.varint()); }

void put_rules(std::string& out, const std::optional<FailureRules>& rules) {
  put_byte(out, rules ? 1 : 0);
  if (!rules) return;
  put_varint(out, rules->size());
  for (const FailureRule& rule : *rules) {
    put_byte(out, static_cast<unsigned>(rule.what));
    put_bytes(out, rule.text);
    put_signed(out, rule.low);
    put_signed(out, rule.high);
  }
}

FailureRule read_rule(ByteReader& in, const PatternCompiler& compile) {
  FailureRule rule;
  rule.what = static_cast<FailureRule::What>(in.byte());
  rule.text = in.bytes();
  rule.low = static_cast<int>(in.signed_varint());
  rule.high = static_cast<int>(in.signed_varint());
  if (rule.what > FailureRule::What::category) in.fail();
  if (rule.what == FailureRule::What::message && in.ok()) {
    std::string_view expression = rule.text;
    if (expression.size() >= 2) expression = expression.substr(1, expression.size() - 2);  // between the slashes
    if (compile) rule.pattern = compile(expression);
    if (rule.pattern == nullptr) in.fail();
  }
  return rule;
}

std::optional<FailureRules> read_rules(ByteReader& in, const PatternCompiler& compile) {
  if (in.byte() == 0) return std::nullopt;
  FailureRules rules;
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) rules.push_back(read_rule(in, compile));
  return rules;
}

void put_policy(std::string& out, const Policy& policy) {
  put_byte(out, policy.max_attempts ? 1 : 0);
  if (policy.max_attempts) put_varint(out, *policy.max_attempts);
  put_optional(out, policy.max_elapsed);
  put_byte(out, static_cast<unsigned>(policy.elapsed_from));
  put_optional(out, policy.attempt_timeout);
  put_optional(out, policy.retry_budget);
  put_byte(out, static_cast<unsigned>(policy.backoff));
  put_signed(out, policy.initial.count());
  put_optional(out, policy.increment);
  put_double(out, policy.factor);
  put_varint(out, policy.delays.size());
  for (const Duration delay : policy.delays) put_signed(out, delay.count());
  put_optional(out, policy.max);
  put_byte(out, static_cast<unsigned>(policy.jitter));
  put_double(out, policy.jitter_ratio);
  put_byte(out, policy.honor_retry_after ? 1 : 0);
  put_rules(out, policy.only_on);
  put_rules(out, policy.never_on);
  put_byte(out, static_cast<unsigned>(policy.match));
  put_byte(out, policy.stops_on_class ? 1 : 0);
  put_byte(out, policy.needs_verdict ? 1 : 0);
  put_varint(out, policy.parallelism);
  put_varint(out, policy.worker_lost_max ? std::uint64_t{*policy.worker_lost_max} + 1 : 0);
}

template <class Enum>
Enum read_enum(ByteReader& in, Enum last) {
  const std::uint8_t value = in.byte();
  if (value > static_cast<std::uint8_t>(last)) in.fail();
  return static_cast<Enum>(value);
}

Policy read_policy(ByteReader& in, std::uint8_t version, const PatternCompiler& compile, const TypeTree* types) {
  Policy policy;
  policy.max_attempts.reset();
  if (in.byte() != 0) policy.max_attempts = in.varint();
  policy.max_elapsed = read_optional(in);
  policy.elapsed_from = read_enum(in, ElapsedFrom::submission);
  policy.attempt_timeout = read_optional(in);
  policy.retry_budget = read_optional(in);
  policy.backoff = read_enum(in, Backoff::decorrelated);
  policy.initial = Duration{in.signed_varint()};
  policy.increment = read_optional(in);
  policy.factor = read_double(in);
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) policy.delays.emplace_back(in.signed_varint());
  policy.max = read_optional(in);
  policy.jitter = read_enum(in, Jitter::ratio);
  policy.jitter_ratio = read_double(in);
  policy.honor_retry_after = in.byte() != 0;
  policy.only_on = read_rules(in, compile);
  policy.never_on = read_rules(in, compile);
  policy.match = read_enum(in, Matching::exact);
  policy.stops_on_class = in.byte() != 0;
  policy.needs_verdict = in.byte() != 0;
  policy.parallelism = in.varint32();
  if (version > 2) {
    const std::uint64_t losses = in.varint();
    if (losses > std::uint64_t{1} << 32U) in.fail();
    if (losses > 0) policy.worker_lost_max = static_cast<std::uint32_t>(losses - 1);
  }
  policy.types = types;
  return policy;
}

void put_step_notes(std::string& out, const StepPlan& step) {
  std::string notes;
  if (!step.actor_type.empty()) put_note(notes, StepNote::actor_type, step.actor_type);
  if (step.dialect != Dialect::native) put_note(notes, StepNote::dialect, static_cast<std::uint64_t>(step.dialect));
  if (step.policy_line > 0) put_note(notes, StepNote::policy_line, step.policy_line);
  if (step.switched_off) put_note(notes, StepNote::switched_off, "");
  if (step.item_breaker.failures > 0) {
    std::string bytes;
    put_varint(bytes, step.item_breaker.failures);
    put_varint(bytes, step.item_breaker.successes);
    put_varint(bytes, step.item_breaker.probes);
    put_signed(bytes, step.item_breaker.open_for);
    put_note(notes, StepNote::item_breaker, std::string_view{bytes});
  }
  for (const CommandPolicy& own : step.command_policies) {
    std::string bytes;
    put_varint(bytes, own.command);
    put_varint(bytes, own.line);
    put_policy(bytes, own.policy);
    put_note(notes, StepNote::command_policy, std::string_view{bytes});
  }
  put_bytes(out, notes);
}

void put_step(std::string& out, const StepPlan& step) {
  put_bytes(out, *step.name);
  put_byte(out, static_cast<unsigned>(step.kind));
  put_bytes(out, step.handler);
  put_bytes(out, step.signal);
  put_signed(out, step.wait);
  put_varint(out, step.needs.size());
  for (const std::uint32_t need : step.needs) put_varint(out, need);
  put_byte(out, step.for_each ? 1 : 0);
  put_varint(out, step.list_step);
  put_varint(out, step.max_parallel);
  put_varint(out, step.tolerate);
  put_byte(out, static_cast<unsigned>(step.on_failure));
  put_varint(out, step.revisit);
  put_varint(out, step.max_visits);
  put_varint(out, step.breaker_limit);
  put_byte(out, step.breaker_classes);
  put_byte(out, static_cast<unsigned>(step.level));
  put_policy(out, step.policy);
  put_byte(out, (step.prepares ? step_bit::prepares : 0U) | (step.handles_failure ? step_bit::handles_failure : 0U) |
                    (step.runs_finally ? step_bit::runs_finally : 0U) | (step.is_goal ? step_bit::goal : 0U) |
                    (step.runs_again ? step_bit::runs_again : 0U) |
                    (step.needs_success ? step_bit::needs_success : 0U));
  put_byte(out, static_cast<unsigned>(step.fallback));
  put_signed(out, step.wait_until);
  put_varint(out, step.tolerate_millionths);
  put_varint(out, step.reads.size());
  for (const std::uint32_t read : step.reads) put_varint(out, read);
  put_byte(out, static_cast<unsigned>(step.effect));
  put_step_notes(out, step);
}

ItemBreaker read_item_breaker(ByteReader& in) {
  ItemBreaker breaker{.failures = in.varint32(), .successes = in.varint32(), .probes = in.varint32()};
  breaker.open_for = in.signed_varint();
  if (breaker.successes == 0 || breaker.probes == 0 || breaker.open_for < 0) in.fail();
  return breaker;
}

CommandPolicy read_command_policy(ByteReader& in, std::uint8_t version, const PatternCompiler& compile,
                                  const TypeTree* types) {
  CommandPolicy own{.command = in.varint32(), .line = in.varint32()};
  own.policy = read_policy(in, version, compile, types);
  return own;
}

void read_step_notes(ByteReader& in, std::uint8_t version, const PatternCompiler& compile, const TypeTree* types,
                     StepPlan& step) {
  ByteReader notes{in.bytes()};
  while (notes.ok() && !notes.at_end()) {
    const auto tag = static_cast<StepNote>(notes.varint32());
    ByteReader note{notes.bytes()};
    switch (tag) {
      case StepNote::actor_type:
        step.actor_type = note.rest();
        break;
      case StepNote::dialect:
        step.dialect = read_enum(note, Dialect::prodigy);
        break;
      case StepNote::policy_line:
        step.policy_line = note.varint32();
        break;
      case StepNote::switched_off:
        step.switched_off = true;
        break;
      case StepNote::item_breaker:
        step.item_breaker = read_item_breaker(note);
        break;
      case StepNote::command_policy:
        step.command_policies.push_back(read_command_policy(note, version, compile, types));
        break;
    }
    if (!note.ok()) notes.fail();
  }
  if (!notes.ok()) in.fail();
}

StepPlan read_step(ByteReader& in, std::uint8_t version, const PatternCompiler& compile, const TypeTree* types) {
  StepPlan step;
  step.name = std::make_shared<const std::string>(in.bytes());
  step.kind = read_enum(in, StepKind::signal);
  step.handler = in.bytes();
  step.signal = in.bytes();
  step.wait = in.signed_varint();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) step.needs.push_back(in.varint32());
  step.for_each = in.byte() != 0;
  step.list_step = in.varint32();
  step.max_parallel = in.varint32();
  step.tolerate = in.varint32();
  step.on_failure = read_enum(in, OnFailure::revisit);
  step.revisit = in.varint32();
  step.max_visits = in.varint32();
  step.breaker_limit = in.varint32();
  step.breaker_classes = in.byte();
  step.level = read_enum(in, PolicyLevel::built_in);
  step.policy = read_policy(in, version, compile, types);
  if (version == 1) {
    step.reads = step.needs;
    return step;
  }
  const unsigned bits = in.byte();
  step.prepares = (bits & step_bit::prepares) != 0;
  step.handles_failure = (bits & step_bit::handles_failure) != 0;
  step.runs_finally = (bits & step_bit::runs_finally) != 0;
  step.is_goal = (bits & step_bit::goal) != 0;
  step.runs_again = (bits & step_bit::runs_again) != 0;
  step.needs_success = (bits & step_bit::needs_success) != 0;
  step.fallback = read_enum(in, FallbackRule::gave_up);
  step.wait_until = in.signed_varint();
  step.tolerate_millionths = in.varint32();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) step.reads.push_back(in.varint32());
  if (version > 2) step.effect = read_enum(in, Effect::at_most_once);
  if (version > 2) read_step_notes(in, version, compile, types, step);
  return step;
}

void read_document_part(ByteReader& in, Plan& plan) {
  const auto kind = read_enum(in, PlanKind::function);
  plan.is_document = kind == PlanKind::document;
  plan.is_function = kind == PlanKind::function;
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    std::string type{in.bytes()};
    plan.types.emplace_back(std::move(type), in.bytes());
  }
  plan.adopt_types();
}

bool refers_to_steps_that_exist(const Plan& plan) {
  const auto exists = [&](std::uint32_t step) { return step < plan.steps.size(); };
  return std::ranges::all_of(plan.steps, [&](const StepPlan& step) {
    return std::ranges::all_of(step.needs, exists) && std::ranges::all_of(step.reads, exists) &&
           exists(step.list_step) && exists(step.revisit);
  });
}

}  // namespace

bool StepPlan::fails_run() const noexcept {
  return is_goal || (on_failure != OnFailure::proceed && on_failure != OnFailure::skip);
}

const CommandPolicy* StepPlan::policy_of_command(std::uint32_t command) const noexcept {
  const auto found = std::ranges::find(command_policies, command, &CommandPolicy::command);
  return command == 0 || found == command_policies.end() ? nullptr : &*found;
}

void Plan::connect() {
  finally_steps = 0;
  for (StepPlan& step : steps) {
    step.dependants.clear();
    finally_steps += step.runs_finally ? 1 : 0;
  }
  for (std::uint32_t index = 0; index < steps.size(); ++index) {
    for (const std::uint32_t need : steps[index].needs) steps[need].dependants.push_back(index);
  }
}

StepPlan step_of_item(const StepPlan& step, std::uint32_t item) {
  StepPlan own = step;
  const Policy* const policy = step.item_policies != nullptr ? step.item_policies->of(item) : nullptr;
  if (policy == nullptr) return own;
  own.policy = *policy;
  own.level = PolicyLevel::work_item;
  own.policy_line = 0;
  own.switched_off = false;
  return own;
}

StepPlan step_of_command(const StepPlan& step, std::uint32_t command) {
  StepPlan own = step;
  if (const CommandPolicy* const policy = step.policy_of_command(command)) {
    own.policy = policy->policy;
    own.level = PolicyLevel::step;
    own.policy_line = policy->line;
  }
  return own;
}

std::vector<event::StepLabel> step_labels(const Plan& plan) {
  std::vector<event::StepLabel> labels;
  for (const StepPlan& step : plan.steps)
    labels.push_back({*step.name, step.actor_type, step.dependants, step.runs_finally});
  return labels;
}

std::string encode_plan(const Plan& plan) {
  std::string out;
  put_byte(out, plan_version);
  put_bytes(out, plan.name);
  put_signed(out, plan.deadline);
  put_varint(out, plan.max_parallel);
  put_varint(out, plan.steps.size());
  for (const StepPlan& step : plan.steps) put_step(out, step);
  put_byte(out, static_cast<unsigned>(plan.is_function ? PlanKind::function : plan.is_document ? PlanKind::document : PlanKind::flow));
  put_varint(out, plan.types.size());
  for (const auto& [type, parent] : plan.types) {
    put_bytes(out, type);
    put_bytes(out, parent);
  }
  put_byte(out, static_cast<unsigned>(plan.rules));
  return out;
}

void Plan::adopt_types() {
  if (types.empty()) return;
  auto tree = std::make_shared<TypeTree>();
  for (const auto& [type, parent] : types) tree->add(type, parent);
  type_tree = std::move(tree);
  for (StepPlan& step : steps) {
    step.policy.types = type_tree.get();
    for (CommandPolicy& own : step.command_policies) own.policy.types = type_tree.get();
  }
}

std::string encode_policy(const Policy& policy) {
  std::string out;
  put_byte(out, plan_version);
  put_policy(out, policy);
  return out;
}

std::optional<Policy> decode_policy(std::string_view bytes, const PatternCompiler& compile, const TypeTree* types) {
  ByteReader in{bytes};
  const std::uint8_t version = in.byte();
  if (version == 0 || version > plan_version) return std::nullopt;
  Policy policy = read_policy(in, version, compile, types);
  if (!in.ok()) return std::nullopt;
  return policy;
}

std::expected<Plan, Error> decode_plan(std::string_view bytes, const PatternCompiler& compile, const TypeTree* types) {
  ByteReader in{bytes};
  const std::uint8_t version = in.byte();
  if (version > plan_version) {
    return std::unexpected{Error{ErrorCode::store_newer, "a plan was written by a newer version of Reprise"}};
  }
  if (version == 0) in.fail();
  Plan plan;
  plan.name = in.bytes();
  plan.deadline = in.signed_varint();
  plan.max_parallel = in.varint32();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left)
    plan.steps.push_back(read_step(in, version, compile, types));
  if (version > 1) read_document_part(in, plan);
  plan.rules = version > 2 ? read_enum(in, Rules::visits_go_on) : Rules::all_ends_alike;
  if (plan.rules < Rules::all_ends_alike) in.fail();
  if (!in.ok() || plan.steps.empty() || !refers_to_steps_that_exist(plan) || (plan.is_function && plan.steps.size() != 1)) {
    return std::unexpected{Error{ErrorCode::store_damaged, "a stored plan cannot be read"}};
  }
  plan.connect();
  return plan;
}

}  // namespace reprise::core
