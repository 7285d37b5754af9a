// reprise why: every decision about work that failed: what failed, which rule applied, which numbers it used, what came next.
#include <algorithm>

#include <fmt/format.h>

#include <reprise/dialect.hpp>

#include "cli/io.hpp"
#include "cli/look_commands.hpp"
#include "cli/looking.hpp"
#include "cli/store_option.hpp"
#include "observe/why.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

using observe::Explanation;
using observe::Judgement;

constexpr std::size_t items_shown = 20;

std::vector<std::string> remedies_of(const PlaceOptions& options, const Looked& looked, const Explanation& item) {
  std::vector<std::string> remedies = item.remedies;
  if (item.state != observe::WorkState::failed) return remedies;
  const runtime::StepView& step = looked.view.steps[item.step];
  const std::string which =
      "--step " + quoted_place(step.name, 0, false) + (step.has_items ? fmt::format(" --item {}", item.item) : "");
  const std::string retry = suggested(options.run.store, "retry", looked.id, which);
  remedies.push_back(
      is_open(looked.view.info.status)
          ? fmt::format("fix the cause and, when the run has ended, give it all its attempts again: {}", retry)
          : fmt::format("fix the cause and give it all its attempts again: {}", retry));
  return remedies;
}

void print_item(const PlaceOptions& options, const Looked& looked, const Explanation& item) {
  const runtime::StepView& step = looked.view.steps[item.step];
  const core::StepPlan& plan = looked.view.plan->steps[item.step];
  print(fmt::format("{}: {}\n", observe::work_name(preview(step.name, 60), item.item, step.has_items),
                    name_of(item.state)));
  for (const Judgement& judgement : item.judgements) {
    for (std::size_t at = 0; at < judgement.sentences.size(); ++at)
      print(fmt::format("{}{}\n", at == 0 ? "  " : "    ", judgement.sentences[at]));
  }
  if (!item.ending.empty()) print(fmt::format("  {}\n", item.ending));
  const std::vector<std::string> remedies = remedies_of(options, looked, item);
  if (!remedies.empty()) print("  For another outcome:\n");
  for (const std::string& remedy : remedies) print(fmt::format("    - {}\n", remedy));
  print(fmt::format("  Its policy ({}):\n", observe::level_words(plan.level)));
  const std::string explained = explain(plan.policy);
  for (std::string_view words = explained; !words.empty();) {
    const std::size_t end = std::min(words.find('\n'), words.size());
    print(fmt::format("    {}\n", words.substr(0, end)));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

text::Value judgement_value(const Judgement& judgement, const Policy& policy) {
  const Event& failed = judgement.failed;
  text::Value value = text::Value::map();
  value.set("attempt", whole(failed.attempt));
  value.set("time", observe::date_and_time(failed.time));
  value.set("error", failure_value(failed.failure.value_or(Failure{})));
  if (failed.lost) value.set("lost", true);
  if (failed.precondition) value.set("phase", "precondition");
  value.set("decision", failed.will_retry ? "retry" : "stop");
  if (failed.reason != StopReason::none) value.set("reason", word(name_of(failed.reason)));
  const auto& rules = failed.reason == StopReason::permanent ? policy.never_on : policy.only_on;
  if (failed.rule >= 0 && rules && static_cast<std::size_t>(failed.rule) < rules->size()) {
    value.set("rule", whole(static_cast<std::uint64_t>(failed.rule)));
    value.set("rule_text", (*rules)[static_cast<std::size_t>(failed.rule)].text);
  }
  if (const auto& retrying = judgement.retrying) {
    value.set("next_attempt", whole(retrying->next_attempt));
    value.set("delay_ms", text::milliseconds(retrying->delay));
    value.set("nominal_ms", text::milliseconds(retrying->range.nominal));
    value.set("min_ms", text::milliseconds(retrying->range.min));
    value.set("max_ms", text::milliseconds(retrying->range.max));
    if (retrying->floored) value.set("floored", true);
    value.set("due_at", observe::date_and_time(retrying->due));
  }
  text::Value words = text::Value::list();
  for (const std::string& sentence : judgement.sentences) words.add(sentence);
  value.set("words", std::move(words));
  return value;
}

text::Value item_value(const PlaceOptions& options, const Looked& looked, const Explanation& item) {
  const core::StepPlan& plan = looked.view.plan->steps[item.step];
  text::Value value = text::Value::map();
  value.set("step", looked.view.steps[item.step].name);
  value.set("item", whole(item.item));
  value.set("state", word(name_of(item.state)));
  value.set("attempts", whole(item.attempts));
  value.set("policy_level", word(name_of(plan.level)));
  value.set("max_attempts", plan.policy.max_attempts ? whole(*plan.policy.max_attempts) : text::Value{});
  text::Value decisions = text::Value::list();
  for (const Judgement& judgement : item.judgements) decisions.add(judgement_value(judgement, plan.policy));
  value.set("decisions", std::move(decisions));
  value.set("ending", item.ending);
  text::Value remedies = text::Value::list();
  for (const std::string& remedy : remedies_of(options, looked, item)) remedies.add(remedy);
  value.set("remedies", std::move(remedies));
  return value;
}

void print_document(const PlaceOptions& options, const Looked& looked, const observe::Explainer& explainer) {
  text::Value value = text::Value::map();
  value.set("run", to_string(looked.id));
  value.set("status", word(name_of(looked.view.info.status)));
  text::Value about = text::Value::list();
  for (const std::string& sentence : explainer.about_the_run()) about.add(sentence);
  value.set("about_the_run", std::move(about));
  text::Value items = text::Value::list();
  for (const Explanation& item : explainer.explanations()) items.add(item_value(options, looked, item));
  value.set("items", std::move(items));
  print_json(value);
}

void print_text(const PlaceOptions& options, const Looked& looked, const observe::Explainer& explainer) {
  for (const std::string& sentence : explainer.about_the_run()) print(sentence + "\n");
  const std::vector<Explanation> items = explainer.explanations();
  if (items.empty()) {
    print(fmt::format("{} never failed.\n", options.place.empty() ? "This run" : options.place));
    return;
  }
  // What failed for good first: it is what somebody who asks wants to know.
  std::size_t shown = 0;
  for (const bool for_good : {true, false}) {
    for (const Explanation& item : items) {
      const bool has_failed = item.state == observe::WorkState::failed;
      if (has_failed != for_good || shown == items_shown) continue;
      if (shown++ > 0 || !explainer.about_the_run().empty()) print("\n");
      print_item(options, looked, item);
    }
  }
  if (items.size() > items_shown) {
    print_error(fmt::format("{} more had trouble: name one (STEP[ITEM]), or take --format json.\n",
                            items.size() - items_shown));
  }
}

}  // namespace

int why(const PlaceOptions& options) {
  auto looked = look_at(options.run);
  if (!looked) return looked.error();
  const auto place = find_place(*looked, options.place);
  if (!place) return show_error(place.error());
  std::optional<observe::WantedWork> wanted;
  if (*place) wanted = {static_cast<std::uint32_t>((*place)->step), (*place)->item};
  observe::Explainer explainer{looked->view.plan, wanted};
  const auto read = looked->snapshot.each_event(looked->id, [&](const Event& event) {
    explainer.add(event);
    return true;
  });
  if (!read) return show_error(read.error());
  if (options.run.json) {
    print_document(options, *looked, explainer);
  } else {
    print_text(options, *looked, explainer);
  }
  return exit_done;
}

}  // namespace reprise::cli
