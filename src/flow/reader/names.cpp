// The names in expressions, looked up before anything runs: parameters, secrets, steps and their fields, and what is visible where.
#include <algorithm>
#include <unordered_map>

#include "flow/reader/reading.hpp"

namespace reprise::flow {
namespace {

using Words = std::vector<std::string_view>;

class NameCheck {
 public:
  explicit NameCheck(Reading& reading) : reading_{reading}, ancestors_{reading.drafts} {
    for (std::size_t at = 0; at < reading.drafts.size(); ++at) steps_.emplace(reading.drafts[at].step.id, at);
    for (const Parameter& parameter : reading.flow.params) params_.push_back(parameter.name);
    for (const Secret& secret : reading.flow.secrets) secrets_.push_back(secret.name);
  }

  void check(const Use& use) {
    for (const Reference& reference : use.references) {
      if (reading_.report.is_full()) return;
      if (!reference.path.empty()) check(use, reference);
    }
  }

 private:
  void error(const Use& use, const Reference& reference, std::string message, std::string help = {}) {
    if (use.has_places) return error_inside(*use.node, reference.offset, std::move(message), std::move(help), reading_);
    reading_.report.error(*use.node, std::move(message), std::move(help));
  }

  void check(const Use& use, const Reference& reference) {
    const std::string& root = reference.path.front();
    if (root == "params") {
      check_member(use, reference, "parameter", params_);
    } else if (root == "secrets") {
      check_member(use, reference, "secret", secrets_);
    } else if (root == "env") {
      if (reference.path.size() < 2) error(use, reference, "env alone is no value", "write env.NAME");
    } else if (root == "run") {
      check_run(use, reference);
    } else if (root == "steps") {
      check_step(use, reference);
    } else {
      check_local(use, reference, root);
    }
  }

  void check_member(const Use& use, const Reference& reference, std::string_view what, const Words& known) {
    const std::string& root = reference.path.front();
    if (reference.path.size() < 2) {
      return error(use, reference, root + " alone is no value", "write " + root + ".NAME");
    }
    const std::string& name = reference.path[1];
    if (std::ranges::find(known, name) != known.end()) return;
    const std::string help =
        known.empty() ? "the document has no " + root + ": add them at its top" : suggestion(name, known);
    error(use, reference, "there is no " + std::string{what} + " " + quoted(name), help);
  }

  void check_run(const Use& use, const Reference& reference) {
    Words known{"id", "name"};
    if (use.visible.run_status) known.push_back("status");
    const std::string name = reference.path.size() < 2 ? "" : reference.path[1];
    if (std::ranges::find(known, name) != known.end()) return;
    if (name == "status") return error(use, reference, "run.status is known under finally only", "move the step there");
    error(use, reference, name.empty() ? "run alone is no value" : "run has no " + quoted(name),
          suggestion(name, known));
  }

  // item, index, attempt, last_error, prompt: there only in some places.
  void check_local(const Use& use, const Reference& reference, const std::string& root) {
    if (root == "item" || root == "index") {
      if (use.visible.item) return;
      const bool has_items = use.step != no_step && reading_.drafts[use.step].step.for_each.has_value();
      return error(use, reference, root + " is not known here",
                   has_items ? "if and for_each itself are looked at once for the whole step"
                             : "only a step with for_each has it");
    }
    if (root == "attempt" || root == "last_error") {
      if (use.visible.attempt) return;
      return error(use, reference, root + " is not known here", "only what is tried again has it");
    }
    if (root == "prompt") {
      if (use.visible.prompt) return;
      return error(use, reference, "prompt is not known here", "only an agent has it");
    }
    unknown_root(use, reference, root);
  }

  void unknown_root(const Use& use, const Reference& reference, const std::string& root) {
    if (reading_.map_names && root == "map") return error(use, reference, "map alone is no value", "write map.results");
    if (std::ranges::find(params_, root) != params_.end()) {
      return error(use, reference, "there is no name " + quoted(root), "write params." + root);
    }
    if (use.visible.steps && steps_.contains(root)) {
      return error(use, reference, "there is no name " + quoted(root), "write steps." + root);
    }
    Words known{"params", "env", "secrets", "run"};
    if (use.visible.steps) known.push_back("steps");
    if (use.visible.item) known.insert(known.end(), {"item", "index"});
    if (use.visible.attempt) known.insert(known.end(), {"attempt", "last_error"});
    if (use.visible.prompt) known.push_back("prompt");
    const bool looks_like_variable = std::ranges::none_of(root, [](char c) { return c >= 'a' && c <= 'z'; });
    std::string help = suggestion(root, known);
    if (looks_like_variable) {
      help = "write env." + root + ", or $" + root + " for a variable of the shell";
    } else if (!help.starts_with("did you mean")) {
      help = "a variable of the shell is written $" + root + " or $${" + root + "}; " + help;
    }
    error(use, reference, "there is no name " + quoted(root), std::move(help));
  }

  void check_step(const Use& use, const Reference& reference) {
    if (!use.visible.steps)
      return error(use, reference, "results of steps are not known here", "only steps can use them");
    if (reference.path.size() < 2) return error(use, reference, "steps alone is no value", "write steps.ID.output");
    const std::string& id = reference.path[1];
    const auto target = steps_.find(id);
    if (target == steps_.end()) return unknown_step(use, reference, id);
    check_order(use, reference, target->second);
    constexpr std::string_view fields[] = {"output", "results", "outcomes", "outputs", "succeeded",
                                           "failed", "total",   "failures", "status"};
    const Words known(std::begin(fields), std::end(fields));
    if (reference.path.size() < 3) {
      error(use, reference, "steps." + id + " alone is no value", "write steps." + id + ".output");
    } else if (std::ranges::find(known, reference.path[2]) == known.end()) {
      error(use, reference, "a step has no " + quoted(reference.path[2]), suggestion(reference.path[2], known));
    }
    if (use.step == no_step) return;
    std::vector<std::string>& reads = reading_.drafts[use.step].step.reads;
    if (std::ranges::find(reads, id) == reads.end()) reads.push_back(id);
  }

  void unknown_step(const Use& use, const Reference& reference, const std::string& id) {
    Words known;
    for (const StepDraft& draft : reading_.drafts) {
      known.push_back(draft.step.id);
      if (draft.step.id.starts_with(id + ".")) {  // a dot begins a field of what stands before it
        return error(use, reference, "there is no step " + quoted(id), "write steps['" + draft.step.id + "']");
      }
    }
    error(use, reference, "there is no step " + quoted(id), suggestion(id, known));
  }

  void check_order(const Use& use, const Reference& reference, std::size_t target) {
    const StepDraft& source = reading_.drafts[target];
    if (use.step == no_step) return;
    const StepDraft& user = reading_.drafts[use.step];
    if (target == use.step)
      return error(use, reference, "the step " + quoted(user.step.id) + " cannot use its own results");
    if (user.is_final && !source.is_final) return;
    if (ancestors_.comes_before(target, use.step)) return;
    if (source.is_final && !user.is_final) {
      return error(use, reference, quoted(source.step.id) + " is under finally, which runs when all else is over");
    }
    error(use, reference, quoted(user.step.id) + " does not wait for the step " + quoted(source.step.id),
          "add " + source.step.id + " to needs of " + user.step.id);
  }

  Reading& reading_;
  Ancestors ancestors_;
  std::unordered_map<std::string_view, std::size_t> steps_;
  Words params_;
  Words secrets_;
};

}  // namespace

void check_names(Reading& reading) {
  NameCheck names{reading};
  for (const Use& use : reading.uses) names.check(use);
}

}  // namespace reprise::flow
