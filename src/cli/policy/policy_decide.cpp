// reprise policy decide: one failed attempt on standard input, one decision on standard output.
#include "cli/io.hpp"
#include "cli/policy/failure_fields.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <reprise/env.hpp>

#include "text/duration.hpp"
#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

struct Question {
  History history;
  Failure failure;
};

// What ended the attempt, if that was not its own failure: at most one of these keys.
void read_end(text::Fields& fields, History& history, text::Report& report) {
  std::optional<std::string_view> said;
  const auto ends = [&](const text::Field& field, AttemptEnd end) {
    if (said)
      report.error(*field.node, fmt::format("{}: {} is given too, and an attempt ends in one way", field.key, *said),
                   "keep one of interrupted, lost, cut and timed_out");
    said = field.key;
    history.end = end;
  };
  const auto read_flag = [&](const char* key, AttemptEnd end) {
    const auto field = fields.find_given(key);
    if (field && text::read_boolean(*field, report).value_or(false)) ends(*field, end);
  };
  read_flag("interrupted", AttemptEnd::interrupted);
  if (const auto field = fields.find_given("lost")) {
    const auto losses = text::read_whole(*field, {0, std::numeric_limits<std::uint32_t>::max()}, report);
    if (losses.value_or(0) > 0) {
      ends(*field, AttemptEnd::lost);
      history.lost_in_a_row = static_cast<std::uint32_t>(*losses);
    }
  }
  if (const auto field = fields.find_given("cut")) {
    if (text::read_word(*field, {"deadline"}, report)) ends(*field, AttemptEnd::deadline);
  }
  read_flag("timed_out", AttemptEnd::timed_out);
  if (const auto field = fields.find_given("effect")) {
    if (const auto word = text::read_word(*field, {"keyed", "idempotent", "at_most_once"}, report))
      history.effect = effect_named(*word).value_or(Effect::keyed);
  }
}

std::expected<Question, int> read_question() {
  const auto document = read_input_document();
  if (!document) return std::unexpected(document.error());
  text::Report report{*document};
  Question question;
  text::Fields fields{document->root(), "", report};
  if (const auto field = fields.find_given("attempt")) {
    question.history.attempt =
        static_cast<std::uint64_t>(text::read_whole(*field, {1, std::int64_t{1} << 32}, report).value_or(1));
  } else if (fields.is_map()) {
    report.error(document->root(), "attempt is missing",
                 "attempt is the number of the one that has just failed, from 1");
  }
  if (const auto field = fields.find_given("used")) {
    const std::int64_t used = text::read_whole(*field, {0, std::int64_t{1} << 32}, report).value_or(1);
    question.history.attempt = static_cast<std::uint64_t>(std::max<std::int64_t>(used, 1));
  }
  read_end(fields, question.history, report);
  const auto read_into = [&](const char* key, Duration& target) {
    if (const auto field = fields.find_given(key)) target = read_milliseconds(*field, report).value_or(Duration{0});
  };
  read_into("elapsed_ms", question.history.elapsed);
  read_into("waited_ms", question.history.waited);
  read_into("previous_delay_ms", question.history.previous_delay);
  if (const auto field = fields.find_given("circuit_open"))
    question.history.circuit_open = text::read_boolean(*field, report).value_or(false);
  if (const auto field = fields.find_given("canceled"))
    question.history.canceled = text::read_boolean(*field, report).value_or(false);
  if (const auto field = fields.find_given("failure")) {
    text::Fields inside{*field->node, "failure", report};
    read_failure_fields(inside, question.failure, report);
    if (inside.is_map()) inside.finish();
  }
  if (fields.is_map()) fields.finish();
  if (report.has_errors()) {
    print_error(render(report.take()));
    return std::unexpected(exit_invalid);
  }
  return question;
}

// Why it is retried: the entry that named it, or what the policy retries by default; what was not its own failure is made again.
std::string retry_reason(const Policy& policy, const Question& question, const Decision& decision) {
  if (question.history.end == AttemptEnd::interrupted) return "interrupted";
  if (question.history.end == AttemptEnd::lost) return "lost";
  if (decision.rule >= 0 && policy.only_on) return (*policy.only_on)[static_cast<std::size_t>(decision.rule)].text;
  if (policy.needs_verdict) return "not_completed";
  if (policy.only_on) return "failed_check";
  return policy.stops_on_class ? std::string{name_of(decision.failure_class)} : "every_error";
}

std::string retry_sentence(const Decision& decision, const std::string& reason) {
  const DelayRange& range = decision.range;
  const std::string between =
      range.min == range.max
          ? ""
          : fmt::format("; between {} and {}", text::format_duration(range.min), text::format_duration(range.max));
  return fmt::format("retry in {} ({}{}{})", text::rough_duration(decision.delay), reason, between,
                     decision.floored ? "; as asked for by Retry-After" : "");
}

std::string stop_detail(const Policy& policy, const Question& question, const Decision& decision) {
  switch (decision.reason) {
    case StopReason::permanent:
      if (decision.rule >= 0)
        return fmt::format("{} is never retried", (*policy.never_on)[static_cast<std::size_t>(decision.rule)].text);
      return question.failure.permanent.value_or(false)
                 ? "the handler said so"
                 : fmt::format("its class is {}", name_of(decision.failure_class));
    case StopReason::not_listed:
      return "nothing in the list of what to retry matches";
    case StopReason::no_verdict:
      return "the handler did not report \"not completed\"";
    case StopReason::attempts:
      return fmt::format("{} of {} attempts are used", question.history.attempt, *policy.max_attempts);
    case StopReason::deadline:
      if (question.history.end == AttemptEnd::deadline) return "the limit of the work item ended the attempt";
      return fmt::format("{} elapsed and a wait of {} reach the limit of {}",
                         text::rough_duration(question.history.elapsed), text::rough_duration(decision.delay),
                         text::format_duration(*policy.max_elapsed));
    case StopReason::budget:
      return fmt::format("{} waited and a wait of {} pass the budget of {}",
                         text::rough_duration(question.history.waited), text::rough_duration(decision.delay),
                         text::format_duration(*policy.retry_budget));
    case StopReason::circuit_open:
      return "the circuit breaker is open";
    case StopReason::canceled:
      return "canceled work is not retried";
    case StopReason::lost:
      return fmt::format("loss {} in a row, and {} are made again", question.history.lost_in_a_row,
                         policy.worker_lost_max.value_or(worker_lost_default));
    case StopReason::unclear:
      return "nobody knows whether the work was done, and it must be done at most once";
    case StopReason::max_visits:  // only a flow has visits
    case StopReason::none:
      break;
  }
  return {};
}

}  // namespace

int policy_decide(const PolicyDecideOptions& options) {
  if (options.policy.file == "-")
    return usage_error("policy decide: standard input holds the failure, so the policy must be a file");
  const auto policy = load_policy(options.policy, Warnings::hide);
  if (!policy) return policy.error();
  auto question = read_question();
  if (!question) return question.error();
  Random random{options.seed ? *options.seed : system_env().random_seed()};
  question->history.skips_lists = question->failure.failed_check && options.policy.from == Dialect::rh_agents;
  const Decision decision = decide(*policy, question->history, question->failure, random);
  const std::string reason =
      decision.retry ? retry_reason(*policy, *question, decision) : std::string{name_of(decision.reason)};
  const std::string detail = decision.retry ? "" : stop_detail(*policy, *question, decision);
  if (!options.json) {
    print(text::safe_to_show(decision.retry ? retry_sentence(decision, reason)
                                            : fmt::format("stop: {} ({})", reason, detail)) +
          "\n");
    return exit_done;
  }
  text::Value answer = text::Value::map();
  answer.set("decision", decision.retry ? "retry" : "stop");
  answer.set("reason", reason);
  if (decision.retry) {
    answer.set("min_ms", text::milliseconds(decision.range.min));
    answer.set("max_ms", text::milliseconds(decision.range.max));
    answer.set("delay_ms", text::milliseconds(decision.delay));
  } else {
    answer.set("detail", detail);
  }
  print(text::to_json(answer) + "\n");
  return exit_done;
}

}  // namespace reprise::cli
