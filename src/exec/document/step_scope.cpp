#include "exec/document/step_scope.hpp"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/hex.hpp"
#include "exec/function/list.hpp"
#include "exec/secrets/sealing.hpp"
#include "flow/item_label.hpp"

namespace reprise::exec {

using json::Json;

namespace {

Json lines_of(std::string_view text) {
  boost::json::array lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Whoever answers in JSON without being asked to is understood; anything else is text.
Json json_or_text(std::string_view text) {
  auto value = json::parse_json(text);
  return value ? *std::move(value) : Json(text);
}

bool is_request(const flow::Step& step) {
  return !step.commands.empty() && step.commands.back().kind == flow::Command::Kind::http;
}

Json error_value(const Failure& failure) {
  boost::json::object error;
  error["type"] = failure.type;
  error["message"] = failure.message;
  if (failure.failure_class) error["class"] = name_of(*failure.failure_class);
  if (failure.exit_code) error["exit_code"] = *failure.exit_code;
  if (failure.http_status) error["http_status"] = *failure.http_status;
  return error;
}

// The result of an item whose commands' outputs are all kept.
std::optional<boost::json::object> outputs_in(const flow::Step* step, std::string_view text) {
  if (step == nullptr || !step->keeps_outputs || !text.starts_with("{\"output\":")) return std::nullopt;
  auto value = json::parse_json(text);
  const auto* const map = value ? json::if_map(*value) : nullptr;
  if (map == nullptr || !map->contains("output") || !map->contains("outputs")) return std::nullopt;
  return *map;
}

constexpr std::string_view evidence_fields[] = {"output", "stdout", "stderr", "mistakes", "failing"};

bool is_evidence_field(std::string_view name) {
  return std::ranges::find(evidence_fields, name) != std::end(evidence_fields);
}

Json list_of(const std::vector<std::string>& texts) {
  boost::json::array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

Json evidence_field(const event::FailureEvidence& evidence, std::string_view name) {
  if (name == "mistakes") return list_of(evidence.mistakes);
  if (name == "failing") return list_of(evidence.failing);
  if (name == "stdout") return Json(evidence.out);
  return Json(name == "stderr" ? evidence.err : evidence.output());
}

}  // namespace

Json output_value(const flow::Step* step, std::string_view text) {
  if (step == nullptr) return Json(text);
  if (auto of_each = outputs_in(step, text)) return of_each->at("output");
  switch (step->output) {
    case flow::OutputForm::json: {
      auto value = json::parse_json(text);
      return value ? *std::move(value) : Json(text);  // a signal may bring anything; everything else was checked
    }
    case flow::OutputForm::lines:
      return lines_of(text);
    case flow::OutputForm::text:
      break;
  }
  const bool brings_json = step->verb == flow::Verb::signal || step->verb == flow::Verb::flow || is_request(*step);
  return brings_json ? json_or_text(text) : Json(text);
}

std::expected<const Json*, std::string> StepScope::find(std::span<const std::string> path, std::size_t& used) const {
  used = 1;
  const std::string& root = path.front();
  if (root == "params") return &facts_.program->params;
  if (root == "secrets") return &facts_.program->secrets;
  if (root == "env") return &facts_.program->env;
  if (root == "steps") return find_step(path, used);
  if (root == "last_error") return find_last_error(path, used);
  if (root == "prompt" && prompt_) return &*prompt_;
  const auto known = found_.find(root);
  if (root == "item" && known != found_.end() && path.size() > 1) {
    if (auto output = output_of_item(*known->second, path[1])) {
      used = 2;
      return keep(*std::move(output));
    }
  }
  if (known != found_.end()) return known->second;

  Json value;
  if (root == "item" && facts_.item) {
    auto item = json::parse_json(*facts_.item);
    if (!item) return std::unexpected{"the item cannot be read: " + item.error()};
    found_[root] = keep(*std::move(item));
    return find(path, used);
  } else if (root == "index" && facts_.item) {
    value = std::int64_t{facts_.index};
  } else if (root == "attempt") {
    value = std::int64_t{facts_.attempt};
  } else if (root == "run") {
    boost::json::object run;
    run["id"] = to_string(facts_.run);
    run["name"] = facts_.program->flow.name;
    run["attempt"] = facts_.attempt;
    run["status"] = facts_.context->run_status.empty() ? "running" : facts_.context->run_status;
    value = std::move(run);
  } else {
    return std::unexpected{"there is no \"" + root + "\" here"};
  }
  return found_[root] = keep(std::move(value));
}

// What its commands have given so far, unless the item itself has such a field.
std::optional<Json> StepScope::output_of_item(const Json& item, std::string_view field) const {
  const auto* const map = json::if_map(item);
  const bool is_known = field == "outputs" || (field == "output" && !outputs_.empty());
  if (!is_known || facts_.step == nullptr || !facts_.step->keeps_outputs || (map != nullptr && map->contains(field)))
    return std::nullopt;
  return field == "output" ? Json(outputs_.back()) : list_of(outputs_);
}

void StepScope::set_failure_to_repair(Failure failure) {
  to_repair_ = std::move(failure);
  last_evidence_.reset();
  std::erase_if(found_, [](const auto& entry) { return entry.first.starts_with("last_error"); });
}

const event::FailureEvidence& StepScope::last_evidence() const {
  if (last_evidence_) return *last_evidence_;
  const Failure& failure = last_failure();
  if (!event::is_kept_apart(failure)) return last_evidence_.emplace(event::evidence_in(failure));
  last_evidence_.emplace();
  const auto hash = base::bytes_of_hexadecimal(failure.evidence);
  if (!hash) return *last_evidence_;
  try {
    last_evidence_ = event::decode_evidence(*payloads_.read(*hash)).value_or(event::FailureEvidence{});
  } catch (const EngineError&) {
    // The message is there all the same, and an attempt does not fail because less is known about the one before.
  }
  return *last_evidence_;
}

// What was left behind may have to be read from the store, so it is, when somebody asks for it.
StepScope::Found StepScope::find_last_error(std::span<const std::string> path, std::size_t& used) const {
  const bool is_field = path.size() > 1 && is_evidence_field(path[1]);
  used = is_field ? 2 : 1;
  const bool is_whole = path.size() == 1;
  const std::string name = is_whole ? "last_error" : "last_error." + (is_field ? path[1] : "");
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  if (is_field) return found_[name] = keep(evidence_field(last_evidence(), path[1]));
  boost::json::object error = error_value(last_failure()).get_object();
  if (is_whole) {
    for (const std::string_view field : evidence_fields) error[field] = evidence_field(last_evidence(), field);
  }
  return found_[name] = keep(std::move(error));
}

StepScope::Found StepScope::find_step(std::span<const std::string> path, std::size_t& used) const {
  if (path.size() < 3) return std::unexpected{"write steps.<id>.output, or another field of a step"};
  used = 3;
  const std::string name = path[1] + "." + path[2];
  if (const auto known = found_.find(name); known != found_.end()) return known->second;
  const StepOutputs* const outputs = facts_.context->outputs.get();
  const auto output =
      outputs != nullptr ? std::ranges::find(*outputs, path[1], &StepOutput::step) : StepOutputs::const_iterator{};
  if (outputs == nullptr || output == outputs->end())
    return std::unexpected{"the step \"" + path[1] + "\" has no result that this step can read"};
  auto value = step_field(*output, path[2]);
  if (!value) return std::unexpected{value.error()};
  return found_[name] = keep(*std::move(value));
}

std::expected<Json, std::string> StepScope::step_field(const StepOutput& output, std::string_view field) const {
  if (field == "status") return Json(output.status);
  if (field == "succeeded") return Json(std::int64_t{output.succeeded});
  if (field == "failed") return Json(std::int64_t{output.failed});
  if (field == "total") return Json(static_cast<std::int64_t>(output.parts.size()));
  if (field == "failures") {
    boost::json::array failures;
    for (const FailedItem& failed : output.failures) {
      boost::json::object entry;
      entry["index"] = failed.item;
      entry["error"] = error_value(failed.failure);
      failures.push_back(std::move(entry));
    }
    return failures;
  }
  if (field == "output" && !output.is_list)
    return output.parts.empty() ? Json(nullptr) : value_of(output.parts.front(), output.step);
  if (field == "outcomes") return outcomes_of(output);
  if (field == "outputs") return outputs_of(output);
  if (field != "output" && field != "results")
    return std::unexpected{"a step has no field \"" + std::string{field} + "\""};
  boost::json::array results;
  results.reserve(output.parts.size());
  for (std::uint32_t index = 0; index < output.parts.size(); ++index) {
    if (std::ranges::binary_search(output.failures, index, {}, &FailedItem::item)) {
      if (field == "output" || !facts_.program->input.leaves_failed_results_out()) results.emplace_back(nullptr);
      continue;
    }
    auto value = value_of(output.parts[index], output.step);
    if (!value) return value;
    results.push_back(*std::move(value));
  }
  return results;
}

// One object for each item, in order: {item, label, status, result or failure}.
std::expected<Json, std::string> StepScope::outcomes_of(const StepOutput& output) const {
  const auto found = facts_.program->steps.find(output.step);
  const flow::Step* const step = found != facts_.program->steps.end() ? found->second : nullptr;
  std::string_view list = output.items.bytes;
  Payloads::Bytes read;
  if (output.items.hashed) {
    try {
      read = payloads_.read_list(output.items.bytes);
      list = *read;
    } catch (const EngineError& error) {
      return std::unexpected{std::string{error.what()}};
    }
  }
  boost::json::array outcomes;
  outcomes.reserve(output.parts.size());
  for (std::uint32_t index = 0; index < output.parts.size(); ++index) {
    boost::json::object outcome;
    if (const auto element = list_element(list, index)) {
      auto item = json::parse_json(shown(*element));
      Json value = item ? *std::move(item) : Json(nullptr);
      outcome["label"] = step != nullptr ? flow::item_label(*step, value, index, facts_.program->params) : "";
      outcome["item"] = std::move(value);
    }
    const auto failed = std::ranges::lower_bound(output.failures, index, {}, &FailedItem::item);
    const bool has_failed = failed != output.failures.end() && failed->item == index;
    outcome["status"] = has_failed ? "failed" : "succeeded";
    if (has_failed) {
      outcome["failure"] = error_value(failed->failure);
    } else {
      auto result = value_of(output.parts[index], output.step);
      if (!result) return result;
      outcome["result"] = *std::move(result);
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

// For each item what each of its commands has given; null where it has failed.
std::expected<Json, std::string> StepScope::outputs_of(const StepOutput& output) const {
  boost::json::array all;
  for (std::uint32_t index = 0; index < output.parts.size(); ++index) {
    if (std::ranges::binary_search(output.failures, index, {}, &FailedItem::item)) {
      all.emplace_back(nullptr);
      continue;
    }
    const auto text = text_of(output.parts[index]);
    if (!text) return std::unexpected{text.error()};
    const auto of_each = outputs_in(step_named(output.step), *text);
    all.push_back(of_each ? of_each->at("outputs") : Json(boost::json::array{Json(*text)}));
  }
  return all;
}

std::expected<std::string, std::string> StepScope::text_of(const Payload& payload) const {
  if (!payload.hashed) return payload.bytes;
  try {
    return *payloads_.read(payload.bytes);
  } catch (const EngineError& error) {
    return std::unexpected{std::string{error.what()}};
  }
}

const flow::Step* StepScope::step_named(std::string_view name) const {
  const auto found = facts_.program->steps.find(name);
  return found != facts_.program->steps.end() ? found->second : nullptr;
}

std::expected<Json, std::string> StepScope::value_of(const Payload& payload, std::string_view step) const {
  const auto text = text_of(payload);
  if (!text) return std::unexpected{text.error()};
  return output_value(step_named(step), *text);
}

}  // namespace reprise::exec
