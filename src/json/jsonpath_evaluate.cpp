#include "json/jsonpath_evaluate.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json_number.hpp"
#include "text/utf8.hpp"

namespace reprise::json::jsonpath {
namespace {

using Nodes = std::vector<const Json*>;

constexpr std::size_t text_bytes_per_step =
    64;  // comparing or matching this much takes about as long as looking at a node
constexpr std::size_t steps_per_compilation = 1000;
constexpr std::size_t patterns_kept_max = 64;

std::string_view view(const boost::json::string& text) noexcept { return {text.data(), text.size()}; }

std::int64_t characters_in(std::string_view text) noexcept {
  std::int64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(text::first_character(text).bytes, 1));
  return count;
}

const Json* member(const Json& node, const std::string& name) noexcept {
  const auto* map = if_map(node);
  return map == nullptr ? nullptr : map->if_contains(name);
}

const Json* element(const Json& node, std::int64_t index) noexcept {
  const auto* list = node.if_array();
  if (list == nullptr) return nullptr;
  const auto size = static_cast<std::int64_t>(list->size());
  const std::int64_t at = index < 0 ? index + size : index;
  return at < 0 || at >= size ? nullptr : &(*list)[static_cast<std::size_t>(at)];
}

// The nodes that a singular query's selector leads to; there is at most one.
const Json* follow(const Json& node, const Selector& selector) noexcept {
  if (const auto* name = std::get_if<NameSelector>(&selector)) return member(node, name->name);
  if (const auto* index = std::get_if<IndexSelector>(&selector)) return element(node, index->index);
  return nullptr;
}

std::string in_words(std::size_t count) {
  constexpr std::size_t million = 1'000'000;
  return count % million == 0 ? std::to_string(count / million) + " million" : std::to_string(count);
}

class Evaluation {
 public:
  Evaluation(const Json& root, EvaluationLimits limits)
      : root_{root}, selected_nodes_max_{limits.selected_nodes_max}, steps_left_{limits.steps_max} {}

  Nodes select(const Query& query, const Json& current) {
    Nodes nodes{query.absolute ? &root_ : &current};
    for (const Segment& segment : query.segments) {
      Nodes next;
      for (const Json* node : nodes) {
        if (segment.descendant) {
          select_below(*node, segment, next);
        } else {
          select_here(*node, segment, next);
        }
        if (spent()) return {};
      }
      nodes = std::move(next);
    }
    return nodes;
  }

  bool spent() const noexcept { return out_of_steps_ || out_of_nodes_; }
  bool out_of_nodes() const noexcept { return out_of_nodes_; }

 private:
  bool charge(std::size_t steps) noexcept {
    if (steps > steps_left_) out_of_steps_ = true;
    steps_left_ -= std::min(steps, steps_left_);
    return !spent();
  }

  void add(Nodes& out, const Json& node) {
    if (out.size() >= selected_nodes_max_) {
      out_of_nodes_ = true;
    } else if (charge(1)) {
      out.push_back(&node);
    }
  }

  void select_here(const Json& node, const Segment& segment, Nodes& out) {
    for (const Selector& selector : segment.selectors) {
      if (!charge(1)) return;
      std::visit([&](const auto& form) { apply(form, node, out); }, selector);
    }
  }

  void select_below(const Json& node, const Segment& segment, Nodes& out) {
    select_here(node, segment, out);
    for_each_child(node, [&](const Json& child) {
      if (child.is_structured()) select_below(child, segment, out);  // nothing is selected within other values
    });
  }

  // Stops when the bounds are reached.
  template <typename Visit>
  void for_each_child(const Json& node, Visit visit) {
    if (const auto* list = node.if_array()) {
      for (const Json& child : *list) {
        if (!charge(1)) return;
        visit(child);
      }
    } else if (const auto* map = if_map(node)) {
      for (const auto& each : *map) {
        if (!charge(1)) return;
        visit(each.value());
      }
    }
  }

  void apply(const NameSelector& selector, const Json& node, Nodes& out) {
    if (const Json* found = member(node, selector.name)) add(out, *found);
  }
  void apply(const IndexSelector& selector, const Json& node, Nodes& out) {
    if (const Json* found = element(node, selector.index)) add(out, *found);
  }
  void apply(const WildcardSelector&, const Json& node, Nodes& out) {
    for_each_child(node, [&](const Json& child) { add(out, child); });
  }
  void apply(const FilterSelector& selector, const Json& node, Nodes& out) {
    for_each_child(node, [&](const Json& child) {
      if (holds(*selector.condition, child)) add(out, child);
    });
  }
  void apply(const SliceSelector& slice, const Json& node, Nodes& out) {
    const auto* list = node.if_array();
    if (list == nullptr || slice.step == 0) return;
    const auto size = static_cast<std::int64_t>(list->size());
    const bool forward = slice.step > 0;
    const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t otherwise) {
      const std::int64_t at = given ? (*given < 0 ? *given + size : *given) : otherwise;
      return forward ? std::clamp<std::int64_t>(at, 0, size) : std::clamp<std::int64_t>(at, -1, size - 1);
    };
    const std::int64_t first = bound(slice.start, forward ? 0 : size - 1);
    const std::int64_t end = slice.end || forward ? bound(slice.end, size) : -1;
    for (std::int64_t at = first; forward ? at < end : at > end; at += slice.step) {
      if (spent()) return;
      add(out, (*list)[static_cast<std::size_t>(at)]);
    }
  }

  bool holds(const Logical& logical, const Json& current) {
    return charge(1) && std::visit([&](const auto& form) { return holds_form(form, current); }, logical.form);
  }
  bool holds_form(const AnyOf& any, const Json& current) {
    return std::ranges::any_of(any.terms, [&](const Logical& term) { return holds(term, current); });
  }
  bool holds_form(const AllOf& all, const Json& current) {
    return std::ranges::all_of(all.terms, [&](const Logical& term) { return holds(term, current); });
  }
  bool holds_form(const Not& negation, const Json& current) { return !holds(*negation.term, current); }
  bool holds_form(const Exists& test, const Json& current) {
    return test.query.is_singular() ? find(test.query, current) != nullptr : !select(test.query, current).empty();
  }
  bool holds_form(const Holds& test, const Json& current) { return matches(*test.call, current); }
  bool holds_form(const Compare& test, const Json& current) {
    Json left_scratch;
    Json right_scratch;
    const Json* left = value_of(test.left, current, left_scratch);
    const Json* right = value_of(test.right, current, right_scratch);
    switch (test.comparison) {
      case Comparison::equal:
        return same(left, right);
      case Comparison::not_equal:
        return !same(left, right);
      case Comparison::less:
        return less(left, right);
      case Comparison::less_equal:
        return less(left, right) || same(left, right);
      case Comparison::greater:
        return less(right, left);
      case Comparison::greater_equal:
        return less(right, left) || same(left, right);
    }
    return false;
  }

  // nullptr stands for the RFC's Nothing, which equals only itself.
  bool same(const Json* left, const Json* right) {
    if (left == nullptr || right == nullptr) return left == right;
    if (left->is_structured() && left->kind() == right->kind() && !charge_size(*left)) return false;
    return charge(1) && equal(*left, *right);
  }

  bool less(const Json* left, const Json* right) {
    if (left == nullptr || right == nullptr) return false;
    if (is_number(*left) && is_number(*right)) return compare_numbers(*left, *right) == std::partial_ordering::less;
    if (!left->is_string() || !right->is_string()) return false;
    charge(left->get_string().size() / text_bytes_per_step);
    return view(left->get_string()) <
           view(right->get_string());  // the order of bytes in UTF-8 is that of the characters
  }

  bool charge_size(const Json& value) {
    if (const auto* text = value.if_string()) return charge(text->size() / text_bytes_per_step);
    for_each_child(value, [&](const Json& child) { charge_size(child); });
    return !spent();
  }

  const Json* find(const Query& query, const Json& current) {
    const Json* node = query.absolute ? &root_ : &current;
    for (const Segment& segment : query.segments) {
      if (node == nullptr || !charge(1)) return nullptr;
      node = follow(*node, segment.selectors.front());
    }
    return node;
  }

  const Json* value_of(const Operand& operand, const Json& current, Json& scratch) {
    if (const auto* literal = std::get_if<Json>(&operand)) return literal;
    if (const auto* query = std::get_if<Query>(&operand)) return find(*query, current);
    return call(*std::get<std::shared_ptr<const Call>>(operand), current, scratch);
  }

  const Json* call(const Call& call, const Json& current, Json& scratch) {
    if (call.function == Function::length) return length(value_of(call.arguments.front(), current, scratch), scratch);
    const Nodes nodes = select(std::get<Query>(call.arguments.front()), current);
    if (call.function == Function::value) return nodes.size() == 1 ? nodes.front() : nullptr;
    scratch = static_cast<std::int64_t>(nodes.size());
    return &scratch;
  }

  const Json* length(const Json* value, Json& scratch) {
    if (value == nullptr) return nullptr;
    std::int64_t count = 0;
    if (const auto* text = value->if_string()) {
      charge(text->size() / text_bytes_per_step);
      count = characters_in(view(*text));
    } else if (const auto* list = value->if_array()) {
      count = static_cast<std::int64_t>(list->size());
    } else if (const auto* map = if_map(*value)) {
      count = static_cast<std::int64_t>(map->size());
    } else {
      return nullptr;
    }
    scratch = count;
    return &scratch;
  }

  bool matches(const Call& call, const Json& current) {
    Json text_scratch;
    const Json* text = value_of(call.arguments[0], current, text_scratch);
    if (text == nullptr || !text->is_string()) return false;
    const Pattern pattern = call.pattern ? *call.pattern : pattern_of(call, current);
    if (!pattern || !charge(1 + text->get_string().size() / text_bytes_per_step)) return false;
    return pattern->matches(view(text->get_string()));
  }

  // An expression that is computed, most often the same for all nodes.
  Pattern pattern_of(const Call& call, const Json& current) {
    Json scratch;
    const Json* expression = value_of(call.arguments[1], current, scratch);
    if (expression == nullptr || !expression->is_string()) return nullptr;
    const auto anchoring = call.function == Function::match ? Anchoring::whole : Anchoring::anywhere;
    const std::pair key{anchoring, std::string{view(expression->get_string())}};
    if (const auto known = patterns_.find(key); known != patterns_.end()) return known->second;
    if (!charge(steps_per_compilation)) return nullptr;
    if (patterns_.size() >= patterns_kept_max) patterns_.clear();
    return patterns_[key] = compile_i_regexp(key.second, anchoring).value_or(nullptr);
  }

  const Json& root_;
  std::size_t selected_nodes_max_;
  std::size_t steps_left_;
  bool out_of_steps_ = false;
  bool out_of_nodes_ = false;
  std::map<std::pair<Anchoring, std::string>, Pattern> patterns_;
};

}  // namespace

std::expected<std::vector<const Json*>, std::string> evaluate(const Query& query, const Json& root,
                                                              EvaluationLimits limits) {
  Evaluation evaluation{root, limits};
  Nodes nodes = evaluation.select(query, root);
  if (!evaluation.spent()) return nodes;
  if (evaluation.out_of_nodes())
    return std::unexpected("the query selects more than " + in_words(limits.selected_nodes_max) +
                           " nodes; narrow it down");
  return std::unexpected("the query looks at more than " + in_words(limits.steps_max) +
                         " nodes; use fewer .. and nested filters");
}

}  // namespace reprise::json::jsonpath
