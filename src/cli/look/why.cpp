// reprise why: every decision about work that failed: what failed, which rule applied, which numbers it used, what came next.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <reprise/dialect.hpp>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "observe/why/why.hpp"
#include "observe/why/why_text.hpp"
#include "observe/words.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

using observe::Explanation;
using observe::RetryDecision;

// After a change of what was written: how to begin anew. Empty when nobody can say.
std::string new_run_of(const Looked& looked) {
  if (!looked.view.plan->is_document) return "";
  const auto input = exec::decode_run_input(looked.view.input);
  const bool has_file = input && !input->is_exec() && !input->file.starts_with('<');
  return has_file ? fmt::format("; then begin a new run: reprise run {}", shell_quoted(input->file)) : "";
}

// The commands to copy, for one item or for all of its step that failed.
void add_commands(const PlaceOptions& options, const Looked& looked, const std::string& new_run, Explanation& item,
                  bool for_all = false) {
  if (!item.remedies.empty()) item.remedies.back() += new_run;
  const runtime::StepView& step = looked.view.steps[item.step];
  const std::string& store = options.run.store;
  const bool was_stopped = item.state == observe::WorkState::canceled || item.state == observe::WorkState::waiting;
  if (was_stopped && !is_open(looked.view.info.status))
    item.remedies.push_back(fmt::format("resume the run: {}", suggested(store, "resume", looked.id)));
  if (item.state != observe::WorkState::failed) return;
  const std::string which = "--step " + quoted_place(step.name, 0, false) +
                            (step.has_items && !for_all ? fmt::format(" --item {}", item.item) : "");
  const std::string when = is_open(looked.view.info.status) ? " when the run has ended" : "";
  item.remedies.push_back(
      fmt::format("fix the cause and give {} attempts again{}: {}", for_all ? "them all their" : "it all its", when,
                  suggested(store, item.is_dead_letter ? "dead-letters retry" : "retry", looked.id, which)));
  if (item.is_dead_letter && !for_all) {
    item.remedies.push_back(fmt::format(
        "or let it go{}: {}", when,
        suggested(store, "dead-letters drop", looked.id, quoted_place(step.name, item.item, step.has_items))));
  }
}

std::string indented(std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('\n'), words.size());
    text += fmt::format("    {}\n", words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return text;
}

std::string policy_in_words(const core::StepPlan& plan, std::string_view whose) {
  std::string text =
      fmt::format("  {} ({}):\n", whose, observe::level_words(plan.level)) + indented(explain(plan.policy));
  for (const core::CommandPolicy& own : plan.command_policies)
    text += fmt::format("  {} for failures of its command {} (line {}):\n", whose, own.command, own.line) +
            indented(explain(own.policy));
  return text;
}

text::Value decision_value(const RetryDecision& decision, const Policy& policy) {
  const Event& failed = decision.failed;
  text::Value value = text::Value::map();
  value.set("attempt", whole(failed.attempt));
  value.set("time", observe::date_and_time(failed.time));
  if (decision.is_interruption) {
    value.set("interrupted", true);
  } else {
    value.set("error", failure_value(failed.failure.value_or(Failure{})));
  }
  if (failed.lost) value.set("lost", true);
  if (failed.precondition) value.set("phase", "precondition");
  value.set("decision", failed.will_retry ? "retry" : "stop");
  if (failed.reason != StopReason::none) value.set("reason", word(name_of(failed.reason)));
  const auto& rules = failed.reason == StopReason::permanent ? policy.never_on : policy.only_on;
  if (failed.rule >= 0 && rules && static_cast<std::size_t>(failed.rule) < rules->size()) {
    value.set("rule", whole(static_cast<std::uint64_t>(failed.rule)));
    value.set("rule_text", (*rules)[static_cast<std::size_t>(failed.rule)].text);
  }
  if (const auto& retrying = decision.retrying) {
    value.set("next_attempt", whole(retrying->next_attempt));
    value.set("delay_ms", text::milliseconds(retrying->delay));
    value.set("nominal_ms", text::milliseconds(retrying->range.nominal));
    value.set("min_ms", text::milliseconds(retrying->range.min));
    value.set("max_ms", text::milliseconds(retrying->range.max));
    if (retrying->floored) value.set("floored", true);
    value.set("due_at", observe::date_and_time(retrying->due));
  }
  text::Value words = text::Value::list();
  for (const std::string& sentence : decision.sentences) words.add(sentence);
  value.set("words", std::move(words));
  return value;
}

text::Value item_value(const Looked& looked, const Explanation& item) {
  const core::StepPlan plan = core::step_of_item(looked.view.plan->steps[item.step], item.item);
  text::Value value = text::Value::map();
  value.set("step", looked.view.steps[item.step].name);
  value.set("item", whole(item.item));
  value.set("state", word(name_of(item.state)));
  value.set("attempts", whole(item.attempts));
  value.set("policy_level", word(name_of(plan.level)));
  value.set("max_attempts", plan.policy.max_attempts ? whole(*plan.policy.max_attempts) : text::Value{});
  value.set("dialect", word(name_of(plan.dialect)));
  text::Value decisions = text::Value::list();
  for (const RetryDecision& decision : item.decisions) decisions.add(decision_value(decision, plan.policy));
  value.set("decisions", std::move(decisions));
  value.set("ending", item.ending);
  text::Value remedies = text::Value::list();
  for (const std::string& remedy : item.remedies) remedies.add(remedy);
  value.set("remedies", std::move(remedies));
  return value;
}

void print_document(const Looked& looked, const std::vector<std::string>& about_the_run,
                    const std::vector<Explanation>& explained) {
  text::Value value = text::Value::map();
  value.set("run", to_string(looked.id));
  value.set("status", word(name_of(looked.view.info.status)));
  text::Value about = text::Value::list();
  for (const std::string& sentence : about_the_run) about.add(sentence);
  value.set("about_the_run", std::move(about));
  text::Value items = text::Value::list();
  for (const Explanation& item : explained) items.add(item_value(looked, item));
  value.set("items", std::move(items));
  print_json(value);
}

std::string steps_with(const Looked& looked, core::StepStatus status) {
  constexpr std::size_t names_max = 3;
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const runtime::StepView& step : looked.view.steps) {
    if (step.status != status) continue;
    if (names.size() < names_max) {
      names.push_back(preview(step.name, 60));
    } else {
      ++more;
    }
  }
  if (more > 0) names.push_back(fmt::format("{} more", more));
  const std::vector<std::string_view> words(names.begin(), names.end());
  return text::join_words(words, "and");
}

std::string status_words(const Looked& looked) {
  const RunStatus status = looked.view.info.status;
  if (is_open(status)) return fmt::format("is {}", name_of(status));
  if (status != RunStatus::canceled) return std::string{name_of(status)};
  return looked.view.outcome.reason == StopReason::deadline ? "was stopped by its deadline" : "was cancelled";
}

// How the run stands, and which steps made it so.
std::string lead(const Looked& looked, bool nothing_failed) {
  const RunInfo& info = looked.view.info;
  std::string text = fmt::format("Run {} of {} ", to_string(looked.id), preview(info.name, 60));
  text += status_words(looked);
  if (info.ended) text += fmt::format(" after {}", text::rough_duration(*info.ended - info.created));
  if (nothing_failed) return text + ", and nothing in it failed.\n";
  const std::string failed = steps_with(looked, core::StepStatus::failed);
  const std::string unreachable = steps_with(looked, core::StepStatus::unreachable);
  if (!failed.empty()) text += fmt::format(": {} failed", failed);
  if (!unreachable.empty()) text += fmt::format("; not reached: {}", unreachable);
  return text + ".\n";
}

// Asked for one place, and nothing there has failed.
std::string why_nothing(const Looked& looked, const FoundPlace& place, const std::string& name) {
  switch (looked.view.steps[place.step].status) {
    case core::StepStatus::unreachable:
      return fmt::format("{} was never tried: a step that it needs has failed.\n", name);
    case core::StepStatus::skipped:
      return fmt::format("{} was skipped: its condition was not true, or nobody needed it.\n", name);
    case core::StepStatus::pending:
      return fmt::format("{} was not tried yet.\n", name);
    default:
      return fmt::format("{} never failed.\n", name);
  }
}

void print_left_out(const PlaceOptions& options, const Looked& looked, const observe::ItemsLeftOut& rest) {
  const runtime::StepView& step = looked.view.steps[rest.step];
  const std::string place = quoted_place(step.name, rest.first, step.has_items);
  print(fmt::format("\nand {} more of {} {}; ask for one: {}\n", rest.count, preview(step.name, 60),
                    rest.for_good ? "failed for good" : "had trouble",
                    suggested(options.run.store, "why", looked.id, place)));
}

// What several items of a step have in common is said once, after the last of them.
void print_in_common(const PlaceOptions& options, const Looked& looked, const std::vector<const Explanation*>& items) {
  std::vector<std::string> remedies;
  for (const Explanation* const item : items) {
    Explanation alike = *item;
    add_commands(options, looked, new_run_of(looked), alike, true);
    for (std::string& remedy : alike.remedies) {
      if (std::ranges::find(remedies, remedy) == remedies.end()) remedies.push_back(std::move(remedy));
    }
  }
  if (!remedies.empty()) print("  For another outcome:\n");
  for (const std::string& remedy : remedies) print(fmt::format("    - {}\n", remedy));
  print(policy_in_words(looked.view.plan->steps[items.front()->step], "Their policy"));
}

void print_items(const PlaceOptions& options, const Looked& looked, const std::vector<Explanation>& items) {
  const observe::ItemsToShow chosen = observe::items_to_show(items);
  std::map<std::uint32_t, std::vector<const Explanation*>> of_step;
  for (const std::size_t at : chosen.shown) of_step[items[at].step].push_back(&items[at]);
  std::string_view between = options.place.empty() ? "\n" : "";
  for (const std::size_t at : chosen.shown) {
    Explanation item = items[at];
    const std::vector<const Explanation*>& alike = of_step.at(item.step);
    const bool is_alone = alike.size() == 1;
    if (is_alone) {
      add_commands(options, looked, new_run_of(looked), item);
    } else {
      item.remedies.clear();
    }
    const runtime::StepView& step = looked.view.steps[item.step];
    print(between);
    print(observe::item_in_words(item, observe::work_name(preview(step.name, 60), item.item, step.has_items)));
    if (is_alone)
      print(policy_in_words(core::step_of_item(looked.view.plan->steps[item.step], item.item), "Its policy"));
    if (!is_alone && alike.back() == &items[at]) print_in_common(options, looked, alike);
    between = "\n";
  }
  for (const observe::ItemsLeftOut& rest : chosen.left_out) print_left_out(options, looked, rest);
}

// What the attempts left behind: for people that of the last one, which is what is to be repaired.
void add_evidence(Looked& looked, std::vector<Explanation>& items, bool of_all) {
  constexpr std::size_t bytes_max = std::size_t{64} << 20U;  // beyond that the hash stands for it
  std::size_t bytes = 0;
  for (Explanation& item : items) {
    for (RetryDecision& decision : item.decisions) {
      const bool is_wanted = of_all || &decision == &item.decisions.back();
      if (!is_wanted || !decision.failed.failure || bytes > bytes_max) continue;
      looked.reader->add_evidence(looked.id, *decision.failed.failure);
      bytes += decision.failed.failure->evidence.size();
    }
  }
}

observe::WorkSource source_of(const Looked& looked) {
  if (!looked.view.plan->is_document) return observe::WorkSource::program;
  const auto input = exec::decode_run_input(looked.view.input);
  if (!input) return observe::WorkSource::document;
  const auto program = exec::load_program(*input, exec::without_files);
  if (!program) return observe::WorkSource::document;  // it is no longer read, say because a variable is missing
  if ((*program)->input.is_exec()) return observe::WorkSource::exec;
  return (*program)->flow.dialect == Dialect::native ? observe::WorkSource::document
                                                     : observe::WorkSource::foreign_document;
}

}  // namespace

int why(const PlaceOptions& options) {
  auto looked = look_at(options.run);
  if (!looked) return looked.error();
  const auto place = find_place(*looked, options.place);
  if (!place) return show_error(place.error());
  std::optional<observe::WantedWork> wanted;
  if (*place) wanted = {static_cast<std::uint32_t>((*place)->step), (*place)->item};
  observe::Explainer explainer{looked->view.plan, wanted, source_of(*looked)};
  const auto read = looked->reader->each_event(looked->id, [&](const Event& event) {
    explainer.add(event);
    return true;
  });
  if (!read) return show_error(read.error());
  std::vector<Explanation> items = explainer.explanations();
  const std::vector<std::string> about_the_run = explainer.about_the_run();
  add_evidence(*looked, items, options.run.json);
  if (options.run.json) {
    const std::string new_run = new_run_of(*looked);
    for (Explanation& item : items) add_commands(options, *looked, new_run, item);
    print_document(*looked, about_the_run, items);
    return exit_done;
  }
  if (!*place) print(lead(*looked, std::ranges::none_of(items, &Explanation::has_failed)));
  for (const std::string& sentence : about_the_run) print(sentence + "\n");
  if (*place && !about_the_run.empty()) print("\n");
  const bool is_kept_out =
      wanted && wanted->item && items.empty() && explainer.is_kept_out(wanted->step, *wanted->item);
  if (is_kept_out) {
    print(fmt::format("{} was skipped: {}. It was never tried.\n", options.place, observe::circuit_open_words));
  } else if (*place && items.empty()) {
    print(why_nothing(*looked, **place, options.place));
  }
  print_items(options, *looked, items);
  return exit_done;
}

}  // namespace reprise::cli
