// The larger keys of a step: its items, what it waits for, its checks, and what happens when it gives up.
#include <algorithm>
#include <chrono>

#include "base/rfc3339.hpp"
#include "flow/reader/reading.hpp"
#include "text/ascii.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

std::optional<json::JsonPath> read_path(const Field& field, Reading& reading) {
  const auto text = read_plain_text(field, "a JSONPath such as $.items[*]", reading);
  if (!text) return std::nullopt;
  auto path = json::JsonPath::parse(*text);
  if (path) return *std::move(path);
  error_inside(*field.node, path.error().offset, std::string{field.key} + ": " + path.error().message,
               "a JSONPath (RFC 9535), such as $.items[*]", reading);
  return std::nullopt;
}

std::optional<Command> read_source_command(const Field& field, Reading& reading) {
  if (field.node->type == NodeType::mapping) return read_command_map(field, reading);
  const char* verb = field.node->type == NodeType::sequence ? "argv" : "run";
  return read_command_verb({verb, field.node}, reading);
}

ItemSource read_source_map(const Field& field, Reading& reading) {
  ItemSource source;
  text::Fields fields{*field.node, "for_each", reading.report};
  const auto file = fields.find("file");
  const auto command = fields.find("command");
  if (file.has_value() == command.has_value()) {
    reading.report.error(*field.node,
                         file ? "for_each: file and command are both given" : "for_each: expected file or command",
                         "such as {file: items.json, path: \"$.items[*]\"} or {command: ./list.sh}");
  } else if (file) {
    source.kind = ItemSource::Kind::file;
    source.file = read_template(*file, reading).value_or(Template{});
  } else {
    source.kind = ItemSource::Kind::command;
    source.command = std::make_shared<const Command>(read_source_command(*command, reading).value_or(Command{}));
  }
  if (const auto path = fields.find("path")) source.path = read_path(*path, reading);
  fields.finish({{"json_path", [](const Node&) { return std::string{"write path"}; }},
                 {"input", [](const Node&) { return std::string{"write file"}; }},
                 {"run", [](const Node&) { return std::string{"write command"}; }}});
  return source;
}

std::optional<Fallback> read_fallback(const Field& field, Reading& reading) {
  if (field.node->type != NodeType::mapping) {
    read_command_map(field, reading);  // says what is wrong
    return std::nullopt;
  }
  text::Fields fields{*field.node, "fallback", reading.report};
  auto command = read_one_command(fields, *field.node, "fallback", reading);
  FallbackWhen when = FallbackWhen::budget_exhausted;
  if (const auto word = fields.find("when")) {
    const auto chosen = text::read_word(*word, {"budget_exhausted", "gave_up"}, reading.report);
    if (chosen == "gave_up") when = FallbackWhen::gave_up;
  }
  fields.finish();
  if (!command) return std::nullopt;
  return Fallback{*std::move(command), when};
}

void read_check(const Field& field, Step& step, Reading& reading) {
  if (field.node->type == NodeType::string) {
    reading.report.error(*field.node, "check: expected a map, found " + text::describe(*field.node),
                         "write {schema: FILE}, {run: …} or both");
    return;
  }
  text::Fields fields{*field.node, "check", reading.report};
  if (!fields.is_map()) return;
  const auto schema = fields.find("schema");
  if (schema) step.check_schema = read_plain_text(*schema, "the file of a JSON Schema", reading).value_or("");
  const bool has_command = !find_command_verbs(fields, reading).empty();
  if (has_command || !schema) step.check = read_one_command(fields, *field.node, "check", reading);
  fields.finish();
}

}  // namespace

ItemSource read_for_each(const Field& field, Reading& reading) {
  const Node& node = *field.node;
  if (node.type == NodeType::mapping) return read_source_map(field, reading);
  ItemSource source;
  if (node.type == NodeType::sequence) {
    source.value = read_json_template(node, reading);
    return source;
  }
  const auto text = node.type == NodeType::string ? parse_template(node.text) : std::unexpected(ExpressionMistake{});
  if (node.type != NodeType::string || (text && !text->is_single_expression())) {
    reading.report.error(
        node, "for_each: expected an expression, a list, or {file: …} or {command: …}, found " + text::describe(node),
        node.type == NodeType::string ? "write ${" + node.text + "} or {file: " + node.text + "}" : "");
    return source;
  }
  source.value = read_json_template(node, reading);
  return source;
}

void read_tolerate(const Field& field, Step& step, Reading& reading) {
  std::string_view text = field.node->text;
  if (field.node->type == NodeType::string && text.ends_with('%')) {
    text.remove_suffix(1);
    const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
    const auto percent = plain ? text::finite_number(text) : std::nullopt;
    if (percent && *percent <= 100) {
      step.tolerate.ratio = *percent / 100;
      return;
    }
  } else if (field.node->type == NodeType::integer) {
    if (const auto count = text::read_whole(field, {0, UINT32_MAX}, reading.report))
      step.tolerate.count = static_cast<std::uint32_t>(*count);
    return;
  }
  reading.report.error(*field.node, "tolerate: expected a count or a percentage, found " + text::describe(*field.node),
                       "such as 3 or 5%");
}

void read_wait(const Field& field, Step& step, Reading& reading) {
  const Node& node = *field.node;
  if (const auto time = node.type == NodeType::string ? base::parse_rfc3339(node.text) : std::nullopt) {
    step.wait_until = time;
    return;
  }
  const bool looks_like_time = node.type == NodeType::string && node.text.size() >= 8 && node.text.find('-') == 4;
  if (looks_like_time) {
    reading.report.error(node, "wait: " + quoted(node.text) + " is not a time",
                         "such as 2026-11-16T03:00:00Z, with its zone");
  } else if (node.text.find("${") != std::string::npos) {
    reading.report.error(node, "wait: no expressions are possible here", "write a duration such as 10m, or a time");
  } else {
    step.wait = text::read_duration(field, reading.duration_grammar(), reading.report);
  }
}

void read_on_failure(const Field& field, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  if (field.node->type == NodeType::mapping) {
    text::Fields fields{*field.node, "on_failure", reading.report};
    if (const auto target = fields.find("goto")) {
      step.on_failure = OnFailure::revisit;
      step.goto_step = read_plain_text(*target, "the id of a step", reading).value_or("");
      draft.goto_node = target->node;
      for (const Field& verb : find_command_verbs(fields, reading))
        reading.report.error(*verb.node, "on_failure: goto and " + std::string{verb.key} + " are both given",
                             "keep one of them");
    } else {
      step.on_failure_command = read_one_command(fields, *field.node, "on_failure", reading);
    }
    fields.finish();
    return;
  }
  const bool names_a_command =
      field.node->type == NodeType::string && field.node->text.find_first_of(" ./") != std::string::npos;
  if (names_a_command) {
    reading.report.error(
        *field.node,
        "on_failure: expected fail, skip, continue, dead_letter or a map, found " + text::describe(*field.node),
        "write {run: …} to run a command, {goto: step} to go back");
    return;
  }
  const auto word = text::read_word(field, {"fail", "skip", "continue", "dead_letter"}, reading.report);
  if (word == "skip") step.on_failure = OnFailure::skip;
  if (word == "continue") step.on_failure = OnFailure::proceed;
  if (word == "dead_letter") step.on_failure = OnFailure::dead_letter;
}

void read_checks(text::Fields& fields, Step& step, Reading& reading) {
  if (const auto field = fields.find("require")) {
    VisibleNames before = reading.visible;
    before.attempt = false;
    const VisibleNamesGuard guard{reading, before};
    step.require = read_command_map(*field, reading);
  }
  if (const auto field = fields.find("check")) read_check(*field, step, reading);
  if (const auto field = fields.find("fix")) step.fix = read_command_map(*field, reading);
  if (const auto field = fields.find("fallback")) step.fallback = read_fallback(*field, reading);
}

}  // namespace reprise::flow
