// What a Prodigy document says about the failures of its map: error_policy at the top and under map, timeout_config, agent_timeout_secs.
//
// The most specific wins: retry_config of a command, of timeout_config, of map.error_policy, of error_policy at the top.
#include "flow/reader/reading_prodigy.hpp"
#include "policy/dialect/dialects.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

constexpr std::int64_t count_max = 1'000'000;

std::string use_policy(const Field& retry, PolicyLevel level, std::string_view where, StepDraft& draft,
                       Reading& reading) {
  Step& step = draft.step;
  if (auto policy = read_policy_node(retry, Dialect::prodigy, reading)) step.policy = *std::move(policy);
  step.level = level;
  step.policy_line = retry.node->place.line;
  draft.policy_node = retry.node;
  return step.policy_source =
             std::string{where} + ".retry_config, line " + std::to_string(retry.node->place.line);
}

void read_count(text::Fields& fields, std::string_view key, std::uint32_t& count, Reading& reading) {
  const auto field = fields.find(key);
  if (!field) return;
  if (const auto number = text::read_whole(*field, {1, count_max}, reading.report))
    count = static_cast<std::uint32_t>(*number);
}

// Prodigy's own counts items; the words of native documents stand for their breaker, which counts equal failures.
void read_breaker(const Field& field, Step& step, Reading& reading) {
  const Node& node = *field.node;
  if (node.find("limit") != nullptr || node.find("tracked_classes") != nullptr) {
    if (auto rule = read_circuit_breaker(field, reading)) step.circuit_breaker = std::move(rule);
    return;
  }
  text::Fields fields{node, "circuit_breaker", reading.report};
  if (!fields.is_map()) return;
  ItemBreaker breaker;
  read_count(fields, "failure_threshold", breaker.failures, reading);
  read_count(fields, "success_threshold", breaker.successes, reading);
  read_count(fields, "half_open_requests", breaker.probes, reading);
  if (const auto timeout = fields.find("timeout"))
    breaker.open_for = read_timeout(*timeout, reading).value_or(breaker.open_for);
  fields.finish();
  step.item_breaker = breaker;
}

// `{custom: COMMAND}`: what gave up is handed to it; if it succeeds, the item is done.
void read_custom(const Node& map, Step& step, Reading& reading) {
  text::Fields fields{map, "on_item_failure", reading.report};
  const VisibleNamesGuard guard{reading, {.steps = true, .item = true, .attempt = true}};
  if (const auto custom = fields.find("custom")) {
    if (custom->node->type == NodeType::mapping) {
      text::Fields inside{*custom->node, "custom", reading.report};
      step.on_failure_command = read_template_command(inside, *custom->node, false, reading);
      inside.finish();
    } else {
      Command command;
      command.shell = read_template(*custom, reading).value_or(Template{});
      command.verb = "shell";
      command.place = place_of(*custom->node);
      step.on_failure_command = std::move(command);
    }
  } else {
    reading.report.error(map, "on_item_failure: a map has the key custom", "write {custom: \"./repair ${item.id}\"}");
  }
  fields.finish();
}

// dlq keeps the failed items, skip drops them, stop fails at the first; retry is dlq with a policy that retries.
void read_on_item_failure(const Field& field, Step& step, bool has_policy, Reading& reading) {
  if (field.node->type == NodeType::mapping) return read_custom(*field.node, step, reading);
  if (field.node->text == "custom") {
    reading.report.error(*field.node, "on_item_failure: custom needs its command",
                         "write {custom: \"./repair ${item.id}\"}");
    return;
  }
  const auto word = text::read_word(field, {"dlq", "retry", "skip", "stop"}, reading.report);
  if (word == "skip") step.on_failure = OnFailure::proceed;
  if (word == "stop") {
    step.on_failure = OnFailure::fail;
    step.tolerate_any = false;
  }
  if (word == "retry" && !has_policy) {
    step.policy = Policy{.jitter = Jitter::none, .stops_on_class = false};  // retry_config: {}
    step.policy_source = "on_item_failure: retry, line " + std::to_string(field.node->place.line);
    step.level = PolicyLevel::step;
  }
}

void read_tolerance(text::Fields& fields, Step& step, Reading& reading) {
  const bool stops = step.on_failure == OnFailure::fail;
  const auto goes_on = fields.find("continue_on_failure");
  const auto number = fields.find("max_failures");
  const auto ratio = fields.find("failure_threshold");
  if (goes_on && text::read_boolean(*goes_on, reading.report) == false) step.tolerate_any = false;
  if (number) {
    if (const auto count = text::read_whole(*number, {0, UINT32_MAX}, reading.report))
      step.tolerate.count = static_cast<std::uint32_t>(*count);
  }
  if (ratio) step.tolerate.ratio = text::read_decimal(*ratio, {.min = 0, .max = 1}, reading.report).value_or(0);
  if (number || ratio) step.tolerate_any = false;
  if (stops && (number || ratio))
    reading.report.error(*(number ? number : ratio)->node, "on_item_failure: stop tolerates no failed item",
                         "keep one of them");
  if (step.on_failure == OnFailure::proceed && step.tolerate_any) step.tolerate.ratio = 1;
}

void read_error_policy(const Field& field, PolicyLevel level, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  text::Fields fields{*field.node, "error_policy", reading.report};
  if (!fields.is_map()) return;
  const auto retry = fields.find("retry_config");
  if (retry) use_policy(*retry, level, level == PolicyLevel::run ? "error_policy" : "map.error_policy", draft, reading);
  if (const auto on_failure = fields.find("on_item_failure"))
    read_on_item_failure(*on_failure, step, retry.has_value(), reading);
  read_tolerance(fields, step, reading);
  if (const auto breaker = fields.find("circuit_breaker")) read_breaker(*breaker, step, reading);
  fields.finish({{"error_collection", not_supported}});
}

struct Limits {
  std::optional<Duration> agent;
  bool per_command = false;  // the agent's time is that of each command instead
  bool both = false;         // … and of the whole
};

std::optional<Duration> read_agent_timeout(const Field& field, Reading& reading) {
  const auto seconds = text::read_whole(field, {1, INT32_MAX}, reading.report);
  if (!seconds) return std::nullopt;
  return std::chrono::seconds{*seconds};
}

void shorten(std::optional<Duration>& limit, Duration other) {
  if (!limit || other < *limit) limit = other;
}

// command_timeouts: {claude: 300, shell: 60}
void read_command_timeouts(const Field& field, Step& step, Reading& reading) {
  text::Fields fields{*field.node, "command_timeouts", reading.report};
  if (!fields.is_map()) return;
  for (const auto& [key, value] : field.node->members) {
    const Field of_verb{key->text, value};
    const bool is_verb = key->text == "shell" || find_agent(key->text, reading) != nullptr;
    if (!is_verb) {
      reading.report.error(*key, "command_timeouts: no command is called " + quoted(key->text),
                           "its keys are those of agent_template, such as shell and claude");
      continue;
    }
    const auto limit = read_timeout(of_verb, reading);
    for (Command& command : step.commands) {
      if (limit && command.verb == key->text && !command.timeout) command.timeout = *limit;
    }
  }
}

// What happens to an item whose time is over is what happens to any other that failed.
void check_timeout_action(const Field& field, const Step& step, Reading& reading) {
  const auto word = text::read_word(field, {"dlq", "skip", "fail", "graceful_terminate"}, reading.report);
  if (!word || word == "graceful_terminate") return;  // every attempt is asked to stop before it is killed
  const OnFailure rule = *word == "dlq"    ? OnFailure::dead_letter
                         : *word == "skip" ? OnFailure::proceed
                                           : OnFailure::fail;
  if (step.on_failure == rule) return;
  reading.report.error(*field.node, "timeout_action: what is too late is a failed item like any other",
                       "write on_item_failure: " + std::string{*word == "fail" ? "stop" : *word} +
                           " under error_policy, for all of them");
}

std::string grace_hint(const Node&) { return "this is not supported: 5 seconds pass between TERM and KILL"; }
std::string monitoring_hint(const Node&) { return "this is not supported: events, why and the live view tell it anyway"; }

void read_timeout_config(const Field& field, Limits& limits, StepDraft& draft, Reading& reading) {
  text::Fields fields{*field.node, "timeout_config", reading.report};
  if (!fields.is_map()) return;
  if (const auto retry = fields.find("retry_config"))
    use_policy(*retry, PolicyLevel::step, "map.timeout_config", draft, reading);
  if (const auto limit = fields.find("agent_timeout_secs")) {
    if (limits.agent)
      reading.report.warning(*limit->node, "agent_timeout_secs stands under map too", "this one counts; keep one of them");
    limits.agent = read_agent_timeout(*limit, reading);
  }
  if (const auto timeouts = fields.find("command_timeouts")) read_command_timeouts(*timeouts, draft.step, reading);
  if (const auto policy = fields.find("timeout_policy")) {
    const auto word = text::read_word(*policy, {"per_agent", "per_command", "hybrid"}, reading.report);
    limits.per_command = word == "per_command";
    limits.both = word == "hybrid";
  }
  if (const auto action = fields.find("timeout_action")) check_timeout_action(*action, draft.step, reading);
  fields.finish({{"cleanup_grace_period_secs", grace_hint}, {"enable_monitoring", monitoring_hint}});
}

// Waits between attempts count, setup does not.
void limit_time(Policy& policy, Duration limit) {
  policy.max_elapsed = limit;
  policy.elapsed_from = ElapsedFrom::first_start;
}

}  // namespace

void read_map_policies(text::Fields& map, const std::optional<Field>& shared, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  const auto own = map.find("error_policy");
  if (shared) {
    StepDraft unused = draft;  // its mistakes are mistakes all the same
    read_error_policy(*shared, PolicyLevel::run, own ? unused : draft, reading);
    if (own)
      reading.report.warning(*shared->node, "error_policy stands under map too, and that one counts: nothing of this does",
                             "keep one of them");
  }
  if (own) read_error_policy(*own, PolicyLevel::step, draft, reading);
  Limits limits;
  if (const auto limit = map.find("agent_timeout_secs")) limits.agent = read_agent_timeout(*limit, reading);
  if (const auto timeouts = map.find("timeout_config")) read_timeout_config(*timeouts, limits, draft, reading);
  const bool of_commands = limits.per_command || limits.both;
  if (limits.agent && !limits.per_command) limit_time(step.policy, *limits.agent);
  for (Command& command : step.commands) {
    if (limits.agent && of_commands) shorten(command.timeout, *limits.agent);
  }
  step.policy.types = reading.flow.types.get();
  for (CommandPolicy& command : step.command_policies) {
    if (limits.agent && !limits.per_command) limit_time(command.policy, *limits.agent);
    command.policy.types = reading.flow.types.get();
  }
}

}  // namespace reprise::flow
