// reprise show: how one run stands, step by step, and what to do when it has failed.
#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/look/show_page.hpp"
#include "cli/store_option.hpp"
#include "env/wall_clock.hpp"
#include "event/attributes.hpp"
#include "observe/report/run_report.hpp"
#include "observe/words.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

using core::ItemStatus;
using observe::RunReport;
using observe::StepReport;
using observe::TroubledItem;

constexpr std::size_t failures_shown = 10;

// What was asked of the run last, by whom, as long as it is so.
bool still_holds(const Event& event, RunStatus status) {
  if (!event.request) return false;
  if (event.type == EventType::paused) return status == RunStatus::paused;
  if (event.type == EventType::cancel_requested) return status == RunStatus::canceled || is_open(status);
  return event.type == EventType::resumed || event.type == EventType::reopened;
}

std::expected<RunReport, Error> report_of(Looked& looked, std::optional<Event>& asked) {
  observe::RunReporter reporter{looked.view.plan};
  const auto read = looked.reader->each_event(looked.id, [&](const Event& event) {
    reporter.add(event);
    const bool is_change = event.type == EventType::paused || event.type == EventType::resumed ||
                           event.type == EventType::cancel_requested || event.type == EventType::reopened;
    if (is_change) asked = still_holds(event, looked.view.info.status) ? std::optional{event} : std::nullopt;
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return reporter.report();
}

std::string items_of(const StepReport& step) {
  if (!step.has_items) return "";
  std::string words = fmt::format("{} of {} done", step.succeeded, step.items);
  const auto add = [&](std::uint32_t count, std::string_view what) {
    if (count > 0) words += fmt::format(", {} {}", count, what);
  };
  add(step.failed, "failed");
  add(step.running, "running");
  add(step.waiting, "waiting");
  add(step.canceled, "cancelled");
  if (step.kept_out > 0) words += fmt::format(", {} skipped: {}", step.kept_out, observe::circuit_open_words);
  return words;
}

std::string trouble_words(const RunReport& report, const TroubledItem& item) {
  const StepReport& step = report.steps[item.step];
  std::string words = observe::work_name(preview(step.name, 60), item.item, step.has_items) + " ";
  switch (item.status) {
    case ItemStatus::failed:
      if (item.skipped) {
        words += fmt::format("skipped: {}, after {}", observe::circuit_open_words,
                             observe::counted(item.attempts, "attempt"));
        break;
      }
      words += item.attempts == 0 ? "failed before its first attempt"
                                  : "failed after " + observe::counted(item.attempts, "attempt");
      break;
    case ItemStatus::canceled:
      words += "was cancelled after " + observe::counted(item.attempts, "attempt");
      break;
    case ItemStatus::waiting:
      words += fmt::format("waits until {} after {}",
                           observe::date_and_time(std::chrono::floor<std::chrono::milliseconds>(item.due)),
                           observe::counted(item.attempts, "failed attempt"));
      break;
    default:
      words += "is being tried again after " + observe::counted(item.attempts, "failed attempt");
  }
  words += ": " + observe::what_failed(item.failure) + " (" + observe::class_words(item.failure) + ")";
  if (item.reason != StopReason::none && !item.skipped) words += "; " + std::string{observe::reason_words(item.reason)};
  if (item.dead_letter) words += "; kept as a dead letter";
  return words;
}

void print_steps(const RunReport& report) {
  std::vector<std::vector<std::string>> rows{{"STEP", "STATE", "ATTEMPTS", "RETRIES", "WAITED", "ITEMS"}};
  for (const StepReport& step : report.steps) {
    rows.push_back({preview(step.name, 60), std::string{core::name_of(step.status)}, std::to_string(step.attempts),
                    std::to_string(step.retries), step.retries > 0 ? text::rough_duration(step.waited) : "",
                    items_of(step)});
  }
  print(columns(rows));
}

void print_next(const RunOptions& options, const Looked& looked, const RunReport& report) {
  const auto say = [&](std::string_view what, std::string_view command, const std::string& arguments = "") {
    print_error(fmt::format("{:<22}{}\n", what, suggested(options.store, command, looked.id, arguments)));
  };
  std::string worst;
  for (const TroubledItem& item : report.troubled) {
    if (item.status != ItemStatus::failed || !worst.empty()) continue;
    const StepReport& step = report.steps[item.step];
    worst = quoted_place(step.name, item.item, step.has_items);
  }
  const RunStatus status = looked.view.info.status;
  if (status == RunStatus::paused || status == RunStatus::canceled || is_left_alone(looked))
    say("To resume it:", "resume");
  if (worst.empty()) return;
  say("To know why:", "why", worst);
  say("To see its output:", "logs", worst);
  if (!is_open(status)) say("To try it again:", "retry");
}

std::string cost_words(const Cost& cost) {
  std::string words = cost.tokens > 0 ? observe::counted(cost.tokens, "token") : "";
  if (cost.micros > 0)
    words += fmt::format("{}{}.{:06}", words.empty() ? "" : ", ", cost.micros / 1'000'000, cost.micros % 1'000'000);
  return words;
}

std::string_view word_of_change(EventType type) {
  return type == EventType::paused             ? "paused"
         : type == EventType::cancel_requested ? "canceled"
         : type == EventType::resumed          ? "resumed"
                                               : "reopened";
}

// by ada@host (reprise pause), 2026-11-18T10:00:00Z: maintenance
std::string change_words(const Event& asked) {
  const std::string by = observe::asker_words(asked.request);
  const std::string& why = asked.request->why;
  return (by.empty() ? "" : by.substr(1) + ", ") +
         observe::date_and_time(std::chrono::floor<std::chrono::seconds>(asked.time)) +
         (why.empty() ? "" : ": " + preview(why));
}

void print_text(const RunOptions& options, const Looked& looked, const RunReport& report, WallTime now,
                const std::optional<Event>& asked) {
  const RunInfo& info = looked.view.info;
  const auto field = [](std::string_view name, std::string_view value) {
    print(fmt::format("{:<10}{}\n", name, value));
  };
  field("run", to_string(info.id));
  field("flow", preview(info.name, 100));
  const StopReason reason = info.status == RunStatus::succeeded ? StopReason::none : looked.view.outcome.reason;
  const bool is_interrupted = info.status == RunStatus::running && is_left_alone(looked);
  field("status", reason == StopReason::none
                      ? std::string{is_interrupted ? "interrupted" : name_of(info.status)}
                      : fmt::format("{}: {}", name_of(info.status), observe::reason_words(reason)));
  field("created", observe::date_and_time(info.created));
  const Duration took = std::max(info.ended.value_or(now) - info.created, Duration{0});
  if (info.ended) {
    field("ended", fmt::format("{}, after {}", observe::date_and_time(*info.ended), text::rough_duration(took)));
  } else {
    field("since", text::rough_duration(took));
  }
  if (asked) field(word_of_change(asked->type), change_words(*asked));
  if (info.parent) field("parent", to_string(*info.parent));
  if (!info.key.empty()) field("key", preview(info.key));
  const RunAttributes& attributes = info.attributes;
  for (const auto& [name, value] : attributes.labels) field("label", preview(name + "=" + value));
  if (!attributes.queue.empty()) field("queue", preview(attributes.queue));
  if (!attributes.tenant.empty()) field("tenant", preview(attributes.tenant));
  if (attributes.max_cost) field("max cost", cost_words(*attributes.max_cost));
  if (!attributes.traceparent.empty()) field("trace", preview(attributes.traceparent));
  if (!looked.view.input.empty() && !looked.view.plan->is_document && looked.view.given_items() == 0)
    field("input", preview(looked.view.input));
  if (!looked.view.outcome.output.empty()) field("output", preview(looked.view.outcome.output));
  if (report.recoveries > 0) field("recovered", observe::counted(report.recoveries, "time"));
  print("\n");
  print_steps(report);
  if (is_left_alone(looked))
    print(
        fmt::format("\nNo process is working on it. To resume it: {}\n", suggested(options.store, "resume", info.id)));
  if (report.troubled.empty()) return;
  print("\n");
  std::size_t shown = 0;
  for (const TroubledItem& item : report.troubled) {
    if (shown++ < failures_shown) print(trouble_words(report, item) + "\n");
  }
  const std::uint64_t hidden = report.troubled.size() - std::min(shown, failures_shown) + report.without_details;
  if (hidden > 0) print(fmt::format("… and {} more; --format json lists them\n", hidden));
  print_next(options, looked, report);
}

text::Value step_value(const StepReport& step, const core::StepPlan& plan) {
  text::Value value = text::Value::map();
  value.set("step", step.name);
  value.set("state", word(core::name_of(step.status)));
  for (const auto& [name, count] :
       std::initializer_list<std::pair<const char*, std::uint64_t>>{{"items", step.items},
                                                                    {"done", step.succeeded},
                                                                    {"failed", step.failed},
                                                                    {"running", step.running},
                                                                    {"waiting", step.waiting},
                                                                    {"canceled", step.canceled},
                                                                    {"dead_letters", step.dead_letters},
                                                                    {"attempts", step.attempts},
                                                                    {"retries", step.retries},
                                                                    {"rescued", step.rescued},
                                                                    {"lost", step.lost},
                                                                    {"fallbacks", step.fallbacks},
                                                                    {"skipped", step.kept_out}}) {
    value.set(name, whole(count));
  }
  value.set("waited_ms", text::milliseconds(step.waited));
  value.set("max_attempts", plan.policy.max_attempts ? whole(*plan.policy.max_attempts) : text::Value{});
  value.set("policy_level", word(name_of(plan.level)));
  return value;
}

text::Value trouble_value(const RunReport& report, const TroubledItem& item) {
  constexpr std::string_view states[] = {"untouched", "waiting",  "running", "succeeded",
                                         "failed",    "canceled", "running"};  // what is outside runs
  text::Value value = text::Value::map();
  value.set("step", report.steps[item.step].name);
  value.set("item", whole(item.item));
  value.set("state", word(states[static_cast<std::size_t>(item.status)]));
  value.set("attempts", whole(item.attempts));
  if (item.reason != StopReason::none) value.set("reason", word(name_of(item.reason)));
  if (item.status == ItemStatus::waiting && item.due != WallTime{})
    value.set("due_at", observe::date_and_time(item.due));
  if (item.skipped) value.set("skipped", true);
  if (item.dead_letter) value.set("dead_letter", true);
  value.set("waited_ms", text::milliseconds(item.waited));
  value.set("error", failure_value(item.failure));
  return value;
}

text::Value change_value(const Event& asked) {
  text::Value value = text::Value::map();
  value.set("what", word(word_of_change(asked.type)));
  value.set("time", observe::date_and_time(asked.time));
  if (!asked.request->by.empty()) value.set("by", asked.request->by);
  if (!asked.request->why.empty()) value.set("why", asked.request->why);
  value.set("request", asked.request->id);
  return value;
}

void print_document(Looked& looked, RunReport report, const std::optional<Event>& asked) {
  const RunInfo& info = looked.view.info;
  text::Value value = text::Value::map();
  value.set("run", to_string(info.id));
  value.set("flow", info.name);
  value.set("status", word(name_of(info.status)));
  if (info.status != RunStatus::succeeded && looked.view.outcome.reason != StopReason::none)
    value.set("reason", word(name_of(looked.view.outcome.reason)));
  value.set("created", observe::date_and_time(info.created));
  if (info.ended) {
    value.set("ended", observe::date_and_time(*info.ended));
    value.set("duration_ms", text::milliseconds(std::max(*info.ended - info.created, Duration{0})));
  }
  if (info.parent) value.set("parent", to_string(*info.parent));
  if (!info.key.empty()) value.set("key", info.key);
  if (!looked.view.plan->is_document && looked.view.given_items() == 0) value.set("input", looked.view.input);
  if (info.status == RunStatus::succeeded) value.set("output", looked.view.outcome.output);
  value.set("attempts", whole(report.attempts()));
  value.set("retries", whole(report.retries()));
  value.set("recoveries", whole(report.recoveries));
  event::set_attributes(value, info.attributes);
  if (asked) value.set("asked", change_value(*asked));
  text::Value steps = text::Value::list();
  for (std::size_t step = 0; step < report.steps.size(); ++step)
    steps.add(step_value(report.steps[step], looked.view.plan->steps[step]));
  value.set("steps", std::move(steps));
  text::Value failures = text::Value::list();
  for (TroubledItem& item : report.troubled) {
    looked.reader->add_evidence(looked.id, item.failure);
    failures.add(trouble_value(report, item));
  }
  value.set("failures", std::move(failures));
  if (report.without_details > 0) value.set("failures_left_out", whole(report.without_details));
  print_json(value);
}

}  // namespace

int show(const ShowOptions& options) {
  if (options.html && options.run.json)
    return usage_error("--html is a page for people and --format json is for programs: take one of them");
  auto looked = look_at(options.run);
  if (!looked) return looked.error();
  if (options.html) return show_page(options, *looked);
  std::optional<Event> asked;
  const auto report = report_of(*looked, asked);
  if (!report) return show_error(report.error());
  if (options.run.json) {
    print_document(*looked, *report, asked);
  } else {
    print_text(options.run, *looked, *report, wall_clock_now_exactly(), asked);
  }
  return exit_done;
}

}  // namespace reprise::cli
