#include "cli/look/looking.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/store_option.hpp"
#include "flow/expression/expression.hpp"
#include "observe/words.hpp"
#include "runtime/control.hpp"
#include "text/display.hpp"
#include "text/nearest.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {
namespace {

std::unexpected<Error> failure(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}

bool is_safe_for_shells(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"-_./:@,+="}.find(c) != std::string_view::npos;
  });
}

}  // namespace

observe::PlainPrinter Looked::printer() const {
  return observe::PlainPrinter{observe::steps_of(*view.plan, view.given_items() > 0)};
}

ItemLabels Looked::labels() {
  return {document_of_run(view.input), [this](std::string_view step) {
            auto items = reader->item_inputs(id, step, ItemLabels::items_max);
            return items ? *std::move(items) : std::vector<std::string>{};
          }};
}

std::expected<runtime::Snapshot, int> open_snapshot(const std::string& store) {
  auto snapshot = runtime::Snapshot::open(store_url(store));
  if (!snapshot) return std::unexpected{show_error(snapshot.error())};
  for (const Error& trouble : snapshot->troubles()) show_error(trouble);
  return *std::move(snapshot);
}

int exit_code_of_list(const runtime::Snapshot& snapshot) {
  return snapshot.troubles().empty() ? exit_done : exit_code_of(snapshot.troubles().front().code);
}

std::expected<Looked, int> look_at(const RunOptions& options) {
  auto snapshot = open_snapshot(options.store);
  if (!snapshot) return std::unexpected{snapshot.error()};
  const auto id = snapshot->resolve(options.run);
  if (!id) return std::unexpected{show_error(id.error())};
  auto view = snapshot->run(*id);
  if (!view) return std::unexpected{show_error(view.error())};
  if (!*view) return std::unexpected{show_error({ErrorCode::not_found, "there is no run " + to_string(*id)})};
  const auto shard = snapshot->shard_of(*id);
  if (!shard) return std::unexpected{show_error(shard.error())};
  return Looked{std::make_unique<runtime::Snapshot>(*std::move(snapshot)), *shard, *id, **std::move(view)};
}

bool is_worked_on(const store::Shard& shard, const RunId& run) {
  const auto answer = runtime::ask_owner(shard.path, {"ping", to_string(run)});
  return answer && *answer;
}

bool is_left_alone(const Looked& looked) {
  return is_open(looked.view.info.status) && looked.view.plan->is_document && !is_worked_on(looked.shard, looked.id);
}

std::expected<WorkPlace, Error> parse_work_place(std::string_view text) {
  const auto wrong = [&] {
    return failure(ErrorCode::invalid,
                   fmt::format("\"{}\" is neither STEP nor STEP[ITEM]: write fetch, or fetch[57] for "
                               "item 57 (the first is 0)",
                               text));
  };
  const std::size_t open = text.find('[');
  if (text.empty() || open == 0) return wrong();
  if (open == std::string_view::npos) return WorkPlace{std::string{text}, {}};
  std::uint32_t item = 0;
  const std::string_view digits = text.substr(open + 1, text.size() - open - 2);
  const auto [end, mistake] = std::from_chars(digits.data(), digits.data() + digits.size(), item);
  if (!text.ends_with(']') || digits.empty() || mistake != std::errc{} || end != digits.data() + digits.size())
    return wrong();
  return WorkPlace{std::string{text.substr(0, open)}, item};
}

std::expected<std::optional<FoundPlace>, Error> find_place(const Looked& looked, const std::string& place) {
  if (place.empty()) return std::nullopt;
  const auto wanted = parse_work_place(place);
  if (!wanted) return std::unexpected{wanted.error()};
  const auto& steps = looked.view.steps;
  const auto found = std::ranges::find(steps, wanted->step, &runtime::StepView::name);
  if (found == steps.end()) {
    std::vector<std::string_view> names;
    for (const runtime::StepView& step : steps) names.push_back(step.name);
    std::string help = text::did_you_mean(wanted->step, names);
    if (help.empty()) help = "; its steps are " + text::join_words(names, "and");
    return failure(ErrorCode::not_found, fmt::format("the run has no step {}{}", wanted->step, help));
  }
  if (wanted->item && *wanted->item >= found->items) {
    return failure(ErrorCode::not_found, fmt::format("step {} has no item {}: it has {}, counted from 0", wanted->step,
                                                     *wanted->item, found->items));
  }
  return FoundPlace{static_cast<std::size_t>(found - steps.begin()), wanted->item};
}

std::string shell_quoted(std::string_view text) {
  return is_safe_for_shells(text) ? std::string{text} : flow::shell_quoted(text);
}

std::string quoted_place(std::string_view step, std::uint32_t item, bool has_items) {
  return shell_quoted(observe::work_name(step, item, has_items));
}

std::string suggested(const std::string& store, std::string_view command, const RunId& run,
                      std::string_view arguments) {
  return fmt::format("reprise {} {}{}{}{}", command, to_string(run), arguments.empty() ? "" : " ", arguments,
                     store.empty() ? "" : " --store " + shell_quoted(store));
}

std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], text::columns_of(row[at]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t at = 0; at < row.size(); ++at) line += text::padded(row[at], widths[at] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string preview(std::string_view bytes, std::size_t characters_max) {
  const std::string safe = text::safe_to_show(bytes.substr(0, characters_max * 4));
  std::size_t at = 0;
  std::size_t characters = 0;
  for (; at < safe.size() && characters < characters_max; ++characters)
    at += std::max<std::size_t>(1, text::first_character(std::string_view{safe}.substr(at)).bytes);
  const bool is_whole = at >= safe.size() && bytes.size() <= characters_max * 4;
  return safe.substr(0, at) + (is_whole ? "" : fmt::format("… ({} bytes)", bytes.size()));
}

text::Value whole(std::uint64_t number) { return text::Value::Number{std::to_string(number)}; }
text::Value word(std::string_view name) { return text::Value{std::string{name}}; }

void print_json(const text::Value& value) { print(text::to_json(value) + "\n"); }

}  // namespace reprise::cli
