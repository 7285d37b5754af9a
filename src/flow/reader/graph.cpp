// How steps depend on each other: what needs, goals and goto may name, circles, and the order in which steps are planned.
#include <algorithm>
#include <unordered_map>

#include "flow/reader/reading.hpp"

namespace reprise::flow {
namespace {

using text::Node;

using Index = std::unordered_map<std::string_view, std::size_t>;

Index index_of(const std::vector<StepDraft>& drafts) {
  Index index;
  for (std::size_t at = 0; at < drafts.size(); ++at) {
    if (!drafts[at].step.id.empty()) index.emplace(drafts[at].step.id, at);
  }
  return index;
}

std::vector<std::string_view> ids_of(const std::vector<StepDraft>& drafts, bool finals) {
  std::vector<std::string_view> ids;
  for (const StepDraft& draft : drafts) {
    if (draft.is_final == finals && !draft.step.id.empty()) ids.push_back(draft.step.id);
  }
  return ids;
}

void check_ids(Reading& reading, const Index& index) {
  for (const StepDraft& draft : reading.drafts) {
    if (draft.step.id.empty()) continue;
    const StepDraft& first = reading.drafts[index.at(draft.step.id)];
    if (&first != &draft && draft.id_node != nullptr) {
      reading.report.error(
          *draft.id_node,
          "the step " + quoted(draft.step.id) + " is there already, on line " + std::to_string(first.step.place.line),
          "take another id");
    }
  }
}

void unknown_step(const Node& node, std::string_view key, bool finals, Reading& reading) {
  if (reading.report.is_full()) return;
  reading.report.error(node, std::string{key} + ": there is no step " + quoted(node.text),
                       suggestion(node.text, ids_of(reading.drafts, finals)));
}

void check_needs(Reading& reading, const Index& index) {
  for (StepDraft& draft : reading.drafts) {
    for (const Node* need : draft.needs_nodes) {
      const auto target = index.find(need->text);
      if (target == index.end()) {
        unknown_step(*need, "needs", draft.is_final, reading);
      } else if (&reading.drafts[target->second] == &draft) {
        reading.report.error(*need, "needs: the step " + quoted(need->text) + " needs itself", "remove it");
      } else if (reading.drafts[target->second].is_final != draft.is_final) {
        reading.report.error(
            *need,
            draft.is_final ? "needs: " + quoted(need->text) + " is not under finally"
                           : "needs: " + quoted(need->text) + " is under finally, which runs when all else is over",
            draft.is_final ? "steps under finally run after all the others anyway" : "");
      }
    }
  }
}

// A list of steps for each step, as indices: what it needs. Names that are not there have been reported.
std::vector<std::vector<std::size_t>> edges_of(const std::vector<StepDraft>& drafts) {
  const Index index = index_of(drafts);
  std::vector<std::vector<std::size_t>> edges(drafts.size());
  for (std::size_t at = 0; at < drafts.size(); ++at) {
    for (const std::string& need : drafts[at].step.needs) {
      const auto target = index.find(need);
      if (target != index.end() && target->second != at) edges[at].push_back(target->second);
    }
  }
  return edges;
}

enum class Mark : std::uint8_t { unseen, open, done };

// Walks down `needs` without recursion; whatever leads back to an open step closes a circle.
class Walk {
 public:
  explicit Walk(std::vector<std::vector<std::size_t>> edges)
      : edges_{std::move(edges)}, marks_(edges_.size(), Mark::unseen) {}

  template <class OnCircle>
  void from(std::size_t start, std::vector<std::size_t>& order, const OnCircle& on_circle) {
    if (marks_[start] != Mark::unseen) return;
    push(start);
    while (!path_.empty()) {
      auto& [step, next] = path_.back();
      if (next == edges_[step].size()) {
        marks_[step] = Mark::done;
        order.push_back(step);
        path_.pop_back();
        continue;
      }
      const std::size_t target = edges_[step][next++];
      if (marks_[target] == Mark::unseen) {
        push(target);
      } else if (marks_[target] == Mark::open && circles_++ < circles_max) {
        on_circle(circle_from(target));
      }
    }
  }

  std::size_t size() const noexcept { return edges_.size(); }
  const std::vector<std::size_t>& needs_of(std::size_t step) const noexcept { return edges_[step]; }

 private:
  struct Open {
    std::size_t step;
    std::size_t next;
  };

  void push(std::size_t step) {
    marks_[step] = Mark::open;
    path_.push_back({step, 0});
  }

  std::vector<std::size_t> circle_from(std::size_t first) const {
    std::vector<std::size_t> circle;
    auto at = std::ranges::find(path_, first, &Open::step);
    for (; at != path_.end(); ++at) circle.push_back(at->step);
    return circle;
  }

  static constexpr std::size_t circles_max = 100;  // nobody reads more of them

  std::size_t circles_ = 0;
  std::vector<std::vector<std::size_t>> edges_;
  std::vector<Mark> marks_;
  std::vector<Open> path_;
};

void check_circles(Reading& reading) {
  Walk walk{edges_of(reading.drafts)};
  std::vector<std::size_t> order;
  const auto report = [&](const std::vector<std::size_t>& circle) {
    constexpr std::size_t shown_max = 20;
    if (reading.report.is_full()) return;
    std::string path;
    for (std::size_t at = 0; at < circle.size(); ++at) {
      if (at == shown_max) path += "… → ";
      if (at >= shown_max) continue;
      const Step& step = reading.drafts[circle[at]].step;
      path += step.id + " (line " + std::to_string(step.place.line) + ") → ";
    }
    const StepDraft& first = reading.drafts[circle.front()];
    const std::string& next = reading.drafts[circle[1 % circle.size()]].step.id;
    const auto need = std::ranges::find(first.needs_nodes, next, [](const Node* node) { return node->text; });
    reading.report.error(need != first.needs_nodes.end() ? **need : *first.node,
                         "steps need each other in a circle: " + path + first.step.id,
                         "remove one of the needs; to go back after a failure write on_failure: {goto: step}");
  };
  for (std::size_t step = 0; step < walk.size(); ++step) walk.from(step, order, report);
}

void check_gotos(Reading& reading, const Index& index) {
  const Ancestors ancestors{reading.drafts};
  for (std::size_t at = 0; at < reading.drafts.size(); ++at) {
    const StepDraft& draft = reading.drafts[at];
    if (draft.goto_node == nullptr || draft.step.goto_step.empty()) continue;
    const auto target = index.find(draft.step.goto_step);
    if (target == index.end()) {
      unknown_step(*draft.goto_node, "goto", draft.is_final, reading);
    } else if (target->second != at && !ancestors.comes_before(target->second, at)) {
      reading.report.error(*draft.goto_node,
                           "goto: " + quoted(draft.step.goto_step) + " does not come before " + quoted(draft.step.id),
                           "it is possible to go back to the step itself or to one it needs, directly or not");
    }
  }
}

void check_goals(Reading& reading, const Index& index) {
  for (const Node* goal : reading.goal_nodes) {
    const auto target = index.find(goal->text);
    if (target == index.end()) {
      unknown_step(*goal, "goals", false, reading);
    } else if (reading.drafts[target->second].is_final) {
      reading.report.error(*goal, "goals: " + quoted(goal->text) + " is under finally, which runs in any case",
                           "remove it");
    }
  }
}

void warn_about_unneeded(Reading& reading) {
  if (reading.goal_nodes.empty() || reading.report.has_errors()) return;
  Walk walk{edges_of(reading.drafts)};
  const Index index = index_of(reading.drafts);
  std::vector<std::size_t> planned;
  for (const Node* goal : reading.goal_nodes) walk.from(index.at(goal->text), planned, [](const auto&) {});
  std::vector<bool> is_planned(reading.drafts.size(), false);
  for (const std::size_t step : planned) is_planned[step] = true;
  for (std::size_t at = 0; at < reading.drafts.size(); ++at) {
    const StepDraft& draft = reading.drafts[at];
    if (!is_planned[at] && !draft.is_final)
      reading.report.warning(*draft.node, "no goal needs the step " + quoted(draft.step.id) + ": it will not run",
                             "name it in goals, or remove it");
  }
}

}  // namespace

Ancestors::Ancestors(const std::vector<StepDraft>& drafts)
    : words_{(drafts.size() + 63) / 64}, bits_(words_ * drafts.size()) {
  Walk walk{edges_of(drafts)};
  std::vector<std::size_t> order;
  for (std::size_t step = 0; step < walk.size(); ++step) walk.from(step, order, [](const auto&) {});
  for (const std::size_t step : order) {
    for (const std::size_t need : walk.needs_of(step)) {
      for (std::size_t word = 0; word < words_; ++word) bits_[step * words_ + word] |= bits_[need * words_ + word];
      bits_[step * words_ + need / 64] |= std::uint64_t{1} << (need % 64);
    }
  }
}

bool Ancestors::comes_before(std::size_t earlier, std::size_t later) const noexcept {
  return (bits_[later * words_ + earlier / 64] >> (earlier % 64) & 1U) != 0;
}

void check_graph(Reading& reading) {
  const Index index = index_of(reading.drafts);
  check_ids(reading, index);
  check_needs(reading, index);
  check_circles(reading);
  check_gotos(reading, index);
  check_goals(reading, index);
  warn_about_unneeded(reading);
}

std::vector<const Step*> planned_steps(const FlowDocument& flow) {
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t at = 0; at < flow.steps.size(); ++at) index.emplace(flow.steps[at].id, at);
  std::vector<std::vector<std::size_t>> edges(flow.steps.size());
  for (std::size_t at = 0; at < flow.steps.size(); ++at) {
    for (const std::string& need : flow.steps[at].needs) {
      if (const auto target = index.find(need); target != index.end()) edges[at].push_back(target->second);
    }
  }
  Walk walk{std::move(edges)};
  std::vector<std::size_t> order;
  const auto ignore = [](const auto&) {};  // read_flow() refuses circles
  if (flow.goals.empty()) {
    for (std::size_t at = 0; at < flow.steps.size(); ++at) walk.from(at, order, ignore);
  }
  for (const std::string& goal : flow.goals) {
    if (const auto target = index.find(goal); target != index.end()) walk.from(target->second, order, ignore);
  }
  std::vector<const Step*> steps;
  for (const std::size_t at : order) steps.push_back(&flow.steps[at]);
  return steps;
}

}  // namespace reprise::flow
