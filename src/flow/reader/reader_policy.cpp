// Which retry policy a step has: its own in any of six dialects, or the most specific one above it (docs/reference/policy.md).
//
// Step, then the defaults for its actor type, then the default of the document, then what is built in. Built in is `standard`, or what the
// written `type:` of the step or its agent has; a document of another system gets what that system does when nothing is said.
#include <algorithm>
#include <array>

#include "flow/reader/reading.hpp"
#include "policy/dialect/dialects.hpp"
#include "text/nearest.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

std::string line_of(const Node& node) { return "line " + std::to_string(node.place.line); }

// Policies of documents that were written for native ones or Wave, whose keys have the same name.
Dialect dialect_of_retry(const Reading& reading) {
  return reading.written_dialect == Dialect::wave ? Dialect::wave : Dialect::native;
}

constexpr std::string_view rh_agents_keys[] = {"backoff_strategy",   "backoff_multiplier", "retry_on_exceptions",
                                               "exclude_exceptions", "retry_timeout",      "enabled"};
constexpr std::string_view prodigy_keys[] = {"attempts", "backoff", "jitter_factor", "retry_budget", "retry_on"};

const Node* first_of(const Node& map, std::span<const std::string_view> keys) {
  const auto found = std::ranges::find_if(
      map.members, [&](const Node::Member& member) { return std::ranges::find(keys, member.key->text) != keys.end(); });
  return found != map.members.end() ? found->key : nullptr;
}

// Two systems call their policy retry_config. Their keys and the form of their durations tell them apart.
std::optional<Dialect> dialect_of_retry_config(const Node& map, Reading& reading) {
  if (reading.written_dialect == Dialect::rh_agents || reading.written_dialect == Dialect::prodigy)
    return reading.written_dialect;
  const Node* rh = first_of(map, rh_agents_keys);
  const Node* prodigy = first_of(map, prodigy_keys);
  for (const char* key : {"initial_delay", "max_delay"}) {
    const Node* delay = map.find(key);
    if (delay == nullptr) continue;
    if (delay->type == NodeType::string && prodigy == nullptr) prodigy = delay;
    if (delay->type != NodeType::string && rh == nullptr) rh = delay;
  }
  if (rh != nullptr && prodigy != nullptr) {
    reading.report.error(*prodigy,
                         "retry_config: " + quoted(rh->text) + " is rh_agents' and " + quoted(prodigy->text) +
                             " is prodigy's: two dialects in one policy",
                         "keep to one; dialect: rh_agents or dialect: prodigy at the top decides");
    return std::nullopt;
  }
  if (rh != nullptr) return Dialect::rh_agents;
  if (prodigy != nullptr) return Dialect::prodigy;
  reading.report.error(map, "retry_config: this may be rh_agents' or prodigy's, and they differ",
                       "write dialect: rh_agents or dialect: prodigy at the top of the document");
  return std::nullopt;
}

struct OwnPolicy {
  Field field;
  std::optional<Dialect> dialect;  // nullopt: a mistake that is reported
};

// An expression in place of a policy: each item brings its own.
bool is_expression(const Field& field) {
  return field.node->type == NodeType::string && field.node->text.starts_with("${") && field.node->text.ends_with('}');
}

std::optional<Dialect> dialect_of_expression(const Field& field, Reading& reading) {
  if (field.key == "retry") return dialect_of_retry(reading);
  if (field.key == "retry_policy") return Dialect::azolla;
  const bool is_known = reading.written_dialect == Dialect::rh_agents || reading.written_dialect == Dialect::prodigy;
  if (field.key == "retry_config" && is_known) return reading.written_dialect;
  const bool is_argyll = field.key == "work_config";
  reading.report.error(
      *field.node,
      std::string{field.key} + (is_argyll ? ": expected a map, found an expression"
                                          : ": this may become rh_agents' or prodigy's, and they differ"),
      is_argyll ? "retry, retry_policy and retry_config may come from an item"
                : "write dialect: rh_agents or dialect: prodigy at the top of the document");
  return std::nullopt;
}

// What an item does not have is null there: it has no policy.
JsonTemplate policy_of_item(const Node& node, Reading& reading) {
  JsonTemplate read = read_json_template(node, reading);
  const auto* const text = std::get_if<Template>(&read.value);
  if (text == nullptr) return read;  // reported
  if (!text->is_single_expression()) {
    reading.report.error(node, "a policy from an expression is one expression and nothing around it",
                         "such as ${item.retry}");
    return read;
  }
  const std::string inside = node.text.substr(2, node.text.size() - 3);
  if (auto forgiving = parse_template("${default(" + inside + ", null)}")) read.value = *std::move(forgiving);
  return read;
}

// The keys of all dialects that may stand on a step; one of them at most.
std::optional<OwnPolicy> find_own_policy(text::Fields& fields, Reading& reading) {
  std::vector<Field> found;
  for (const char* key : {"retry", "retry_policy", "retry_config", "work_config"}) {
    if (const auto field = fields.find(key)) found.push_back(*field);
  }
  if (found.empty()) return std::nullopt;
  const Field& first = found.front();
  if (found.size() > 1) {
    reading.report.error(*found[1].node,
                         std::string{found[1].key} + ": " + std::string{first.key} +
                             " is given too: a step has one policy, in one dialect",
                         "keep one of them");
    return OwnPolicy{first, std::nullopt};
  }
  if (is_expression(first)) return OwnPolicy{first, dialect_of_expression(first, reading)};
  if (first.key == "retry") return OwnPolicy{first, dialect_of_retry(reading)};
  if (first.node->type != NodeType::mapping) {
    text::Fields not_a_map{*first.node, first.key, reading.report};
    return OwnPolicy{first, std::nullopt};
  }
  if (first.key == "retry_policy") return OwnPolicy{first, Dialect::azolla};
  if (first.key == "work_config") return OwnPolicy{first, Dialect::argyll};
  return OwnPolicy{first, dialect_of_retry_config(*first.node, reading)};
}

// What a map in `policies` builds on, when that is another one of them.
const Node::Member* base_of(const Node& policies, const Node& definition) {
  const Node* name = definition.type == NodeType::string ? &definition : definition.find("policy");
  if (name == nullptr || name->type != NodeType::string) return nullptr;
  const auto base =
      std::ranges::find_if(policies.members, [&](const auto& member) { return member.key->text == name->text; });
  return base != policies.members.end() ? &*base : nullptr;
}

// Reads a chain of policies that build on each other, the lowest first.
void read_chain(const Node& policies, const Node::Member& first, Reading& reading) {
  std::vector<const Node::Member*> chain;
  for (const Node::Member* at = &first; at != nullptr && !reading.policies.named.contains(at->key->text);
       at = base_of(policies, *at->value)) {
    const auto again = std::ranges::find(chain, at);
    if (again != chain.end()) {
      std::string path;
      for (auto link = again; link != chain.end(); ++link)
        path += (*link)->key->text + " (" + line_of(*(*link)->key) + ") → ";
      reading.report.error(*at->key, "policies build on each other in a circle: " + path + at->key->text,
                           "one of them must start from none, standard, aggressive or patient");
      for (const Node::Member* link : chain) reading.policies.named.emplace(link->key->text, policy::standard);
      return;
    }
    chain.push_back(at);
  }
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    const Node::Member& member = **link;
    const auto policy = read_policy_node({member.key->text, member.value}, Dialect::native, reading);
    reading.policies.named.emplace(member.key->text, policy.value_or(policy::standard));
  }
}

std::optional<PolicyChoice> read_choice(const Field& field, Dialect dialect, std::string name, Reading& reading) {
  auto policy = read_policy_node(field, dialect, reading);
  if (!policy) return std::nullopt;
  const Node* enabled = dialect == Dialect::rh_agents ? field.node->find("enabled") : nullptr;
  return PolicyChoice{*std::move(policy), dialect, std::move(name) + ", " + line_of(*field.node),
                      enabled != nullptr ? enabled->place.line : field.node->place.line,
                      enabled != nullptr && enabled->text == "false"};
}

void add_by_type(const Node& key, const Field& field, Dialect dialect, std::string_view group, Reading& reading) {
  const std::string type{actor_type_of(key.text)};
  auto choice = read_choice(field, dialect, std::string{group} + "." + key.text, reading);
  if (!choice) return;
  if (!reading.policies.by_type.emplace(type, *std::move(choice)).second) {
    reading.report.error(key, std::string{group} + ": the type " + quoted(type) + " has a policy already",
                         "keep one of them");
  }
}

void set_run_policy(const Field& field, std::optional<PolicyChoice> choice, Reading& reading) {
  if (reading.policies.run) {
    reading.report.error(
        *field.node,
        std::string{field.key} + ": " + reading.policies.run->source + ", says already what every step does",
        "keep one of them");
  } else {
    reading.policies.run = std::move(choice);
  }
}

void choose(StepDraft& draft, const ResolvedPolicy& resolved, const PolicyChoice* choice) {
  draft.step.policy = *resolved.policy;
  draft.step.level = resolved.level;
  if (choice == nullptr) return;
  draft.step.dialect = choice->dialect;
  draft.step.policy_source = choice->source;
  draft.step.policy_line = choice->line;
  draft.step.retries_are_off = choice->is_off;
}

// Nobody said anything.
void choose_built_in(StepDraft& draft, bool type_is_written, const Reading& reading) {
  const Dialect dialect = reading.written_dialect.value_or(Dialect::native);
  const bool is_rh_agents = dialect == Dialect::rh_agents;
  draft.step.level = PolicyLevel::built_in;
  draft.step.dialect = dialect;
  if (type_is_written || is_rh_agents) {
    draft.step.dialect = is_rh_agents ? Dialect::rh_agents : Dialect::native;
    draft.step.policy = built_in_policy(draft.step.dialect, draft.step.type);
    draft.step.policy_source = "built-in for " + draft.step.type;
    draft.step.retries_are_off = is_rh_agents && draft.step.type == "agent";  // agents handle their own logic
    return;
  }
  draft.step.policy = dialect::default_policy(dialect);
  draft.step.policy_source =
      dialect == Dialect::native ? "standard, nothing is said" : "default of " + std::string{name_of(dialect)};
}

}  // namespace

std::optional<Policy> read_policy_node(const Field& field, Dialect dialect, Reading& reading) {
  const bool is_name = field.node->type == NodeType::string && dialect == Dialect::native;
  if (!is_name && field.node->type != NodeType::mapping) {
    const bool word = field.node->type == NodeType::string;
    reading.report.error(*field.node,
                         std::string{field.key} + ": expected " +
                             (dialect == Dialect::native ? "the name of a policy or a map" : "a map") + ", found " +
                             text::describe(*field.node),
                         field.node->type == NodeType::integer
                             ? "write {max_attempts: " + field.node->text + "}, which counts the first run too"
                         : word ? "write {policy: " + field.node->text + "}"
                                : "such as aggressive, or {max_attempts: 5}");
    return std::nullopt;
  }
  Policy policy = dialect::read_policy_in(*field.node, dialect, reading.policies.named, reading.report);
  policy.types = reading.flow.types.get();
  if (!is_name) reading.reviews.push_back({policy, dialect, field.node});
  return policy;
}

void read_named_policies(const Field& field, Reading& reading) {
  text::Fields fields{*field.node, "policies", reading.report};
  if (reading.written_dialect == Dialect::wave || reading.written_dialect == Dialect::prodigy) {
    reading.report.error(*field.node, "policies: only native documents have named policies",
                         "remove dialect, or write each policy where it is used");
    return;
  }
  if (field.node->members.size() > entries_max)
    return reading.report.error(*field.node, "policies: more than " + std::to_string(entries_max));
  for (const Node::Member& member : field.node->members) {
    if (policy::named(member.key->text) != nullptr) {
      reading.report.error(*member.key, "policies: " + quoted(member.key->text) + " is built in", "take another name");
    } else if (!is_step_id(member.key->text)) {
      reading.report.error(*member.key, "policies: " + quoted(member.key->text) + " cannot be a name",
                           "letters, digits, _, . and -");
    } else {
      read_chain(*field.node, member, reading);
    }
  }
}

void read_defaults(const Field& field, Reading& reading) {
  text::Fields fields{*field.node, "defaults", reading.report};
  if (!fields.is_map()) return;
  const Dialect dialect = dialect_of_retry(reading);
  if (const auto retry = fields.find("retry"))
    set_run_policy(*retry, read_choice(*retry, dialect, "defaults.retry", reading), reading);
  if (const auto retry = fields.find("retry_policy"))
    set_run_policy(*retry, read_choice(*retry, Dialect::azolla, "defaults.retry_policy", reading), reading);
  if (const auto by_type = fields.find("by_type")) {
    const text::Fields types{*by_type->node, "by_type", reading.report};
    for (const auto& [key, value] : by_type->node->members)
      add_by_type(*key, {key->text, value}, dialect, "defaults.by_type", reading);
  }
  fields.finish({{"run", [](const Node&) { return std::string{"steps say themselves what they run"}; }},
                 {"retries", [](const Node&) { return std::string{"write retry: {max_attempts: …}"}; }},
                 {"timeout", [](const Node&) { return std::string{"write retry: {attempt_timeout: …}"}; }}});
}

void read_rh_defaults(text::Fields& fields, Reading& reading) {
  if (const auto field = fields.find("default_retry_config")) {
    set_run_policy(*field, read_choice(*field, Dialect::rh_agents, "default_retry_config", reading), reading);
  }
  if (const auto field = fields.find("retry_config_by_actor_type")) {
    const text::Fields types{*field->node, field->key, reading.report};
    for (const auto& [key, value] : field->node->members) {
      add_by_type(*key, {key->text, value}, Dialect::rh_agents, "retry_config_by_actor_type", reading);
      reading.policies.rh_types.push_back(key);
    }
  }
}

void read_azolla_default(text::Fields& fields, Reading& reading) {
  if (const auto field = fields.find("retry_policy"))
    set_run_policy(*field, read_choice(*field, Dialect::azolla, "retry_policy", reading), reading);
}

void check_actor_types(Reading& reading) {
  std::vector<std::string_view> known{"tool_call", "llm_call", "agent_call", "tool", "llm", "agent"};
  for (const StepDraft& draft : reading.drafts) known.push_back(draft.step.type);
  for (const Node* key : reading.policies.rh_types) {
    if (std::ranges::find(known, actor_type_of(key->text)) != known.end()) continue;
    reading.report.error(*key, "retry_config_by_actor_type: no step has the type " + quoted(key->text),
                         suggestion(key->text, known));
  }
}

std::string read_actor_type(const Field& field, Reading& reading) {
  const auto word = read_plain_text(field, "an actor type such as tool, llm or agent", reading);
  return std::string{actor_type_of(word.value_or(""))};
}

std::shared_ptr<TypeTree> read_types(const Field& field, Reading& reading) {
  const text::Fields fields{*field.node, "types", reading.report};
  auto tree = std::make_shared<TypeTree>();
  const Node& map = *field.node;
  const auto is_type_name = [](const Node& node) { return node.type == NodeType::string && is_identifier(node.text); };
  std::size_t added = 0;
  for (const auto& [key, value] : map.members) {
    if (!is_type_name(*key) || !is_type_name(*value)) {
      const Node& wrong = is_type_name(*key) ? *value : *key;
      reading.report.error(wrong, "types: expected the name of an error type, found " + text::describe(wrong),
                           "such as {QuotaError: RuntimeError}");
      continue;
    }
    tree->add(key->text, value->text);
    ++added;
  }
  if (map.members.size() > entries_max) reading.report.error(map, "types: more than " + std::to_string(entries_max));
  if (added != map.members.size() || added > entries_max) return tree;
  for (const auto& [key, value] : map.members) {
    std::string_view above = value->text;
    for (std::size_t steps = 0; steps <= added + 32 && above != "Exception" && above != key->text; ++steps)
      above = tree->parent_of(above);
    if (above == key->text)
      reading.report.error(*key, "types: " + quoted(key->text) + " is its own ancestor",
                           "give it a parent outside of the circle");
  }
  return tree;
}

void read_step_policy(text::Fields& fields, StepDraft& draft, bool type_is_written, Reading& reading) {
  Step& step = draft.step;
  const auto own = find_own_policy(fields, reading);
  std::optional<PolicyChoice> choice;
  if (own && is_expression(own->field)) {
    if (!own->dialect) return;  // reported
    const VisibleNamesGuard once{
        reading, {.steps = true, .item = reading.visible.item, .run_status = reading.visible.run_status}};
    step.item_policy = {policy_of_item(*own->field.node, reading), *own->dialect, std::string{own->field.key}};
  } else if (own) {
    draft.policy_node = own->field.node;
    if (own->dialect) {
      choice = read_choice(own->field, *own->dialect, "step " + quoted(step.id), reading);
    }
    if (!choice) return;  // reported; nothing above the step may stand in for it
  }
  const auto typed = reading.policies.by_type.find(step.type);
  const PolicyChoice* by_type = typed != reading.policies.by_type.end() ? &typed->second : nullptr;
  const PolicyChoice* run = reading.policies.run ? &*reading.policies.run : nullptr;
  const ResolvedPolicy resolved = resolve({.step = choice ? &choice->policy : nullptr,
                                           .actor_type = by_type != nullptr ? &by_type->policy : nullptr,
                                           .run = run != nullptr ? &run->policy : nullptr},
                                          step.type);
  if (resolved.level == PolicyLevel::built_in) {
    choose_built_in(draft, type_is_written, reading);
  } else {
    choose(draft, resolved,
           resolved.level == PolicyLevel::step         ? &*choice
           : resolved.level == PolicyLevel::actor_type ? by_type
                                                       : run);
  }
  step.policy.types = reading.flow.types.get();
  step.needs_verdict = step.policy.needs_verdict;
}

void review_policies(Reading& reading) {
  for (const Review& review : reading.reviews)
    dialect::warn_about(review.policy, review.dialect, *review.node, reading.report);
}

}  // namespace reprise::flow
