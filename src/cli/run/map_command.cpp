// reprise map: one command for each line of the input, in parallel, retried and durable: a document that the command line says.
//
// Each item's standard output reaches ours in one piece, when the item has succeeded; standard error passes through.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/run/attributes.hpp"
#include "cli/run/policy_flags.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/same_run.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "host/flow_plan.hpp"
#include "json/json.hpp"
#include "text/ascii.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {
namespace {

using json::Json;

constexpr std::size_t input_bytes_max = std::size_t{256} << 20U;
constexpr std::string_view map_step = "map";

// ---- items ----------------------------------------

std::expected<std::string, int> input_text(const std::string& file) {
  const bool is_stdin = file.empty() || file == "-";
  std::string text;
  if (is_stdin) {
    char buffer[65536];
    while (text.size() <= input_bytes_max) {
      const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        return std::unexpected{usage_error(fmt::format("cannot read standard input: {}", std::strerror(errno)))};
      if (count == 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
  } else {
    std::ifstream stream{file, std::ios::binary};
    if (!stream) return std::unexpected{usage_error(fmt::format("cannot read {}: {}", file, std::strerror(errno)))};
    text.assign(std::istreambuf_iterator<char>{stream}, {});
  }
  if (text.size() > input_bytes_max) return std::unexpected{usage_error("the input has more than 256 MiB")};
  return text;
}

std::unexpected<int> bad_line(std::size_t number, std::string_view what) {
  return std::unexpected{usage_error(fmt::format("item {} of the input {}", number, what))};
}

std::expected<boost::json::array, int> json_items(const std::string& text) {
  if (auto whole = json::parse_json(text)) {
    if (whole->is_array()) return std::move(whole->get_array());
    return boost::json::array{*std::move(whole)};
  }
  boost::json::array items;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view{text}.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto value = json::parse_json(line);
    if (!value) return bad_line(number, "is not JSON: " + value.error());
    items.push_back(*std::move(value));
  }
  return items;
}

std::expected<boost::json::array, int> plain_items(std::string_view text, char separator) {
  boost::json::array items;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    std::string_view item = text.substr(at, end - at);
    at = end + 1;
    if (separator == '\n' && item.ends_with('\r')) item.remove_suffix(1);
    if (item.empty()) continue;
    if (!text::is_utf8(item)) return bad_line(items.size() + 1, "is not UTF-8 text, and would not be kept as it is");
    items.emplace_back(item);
  }
  return items;
}

std::expected<boost::json::array, int> items_of(const MapOptions& options) {
  const auto text = input_text(options.file);
  if (!text) return std::unexpected{text.error()};
  const std::string ending = std::filesystem::path{options.file}.extension().string();
  const bool is_json = options.json || ending == ".json" || ending == ".jsonl" || ending == ".ndjson";
  return is_json ? json_items(*text) : plain_items(*text, options.nul_separated ? '\0' : '\n');
}

// ---- the command ----------------------------------------

// {.id}, {.address.city}: the length of the placeholder; 0: it is none.
std::size_t field_bytes(std::string_view text) {
  std::size_t at = 1;
  while (at < text.size() && text[at] == '.') {
    const std::size_t begin = ++at;
    const auto may_follow = [&](char c) {
      const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      return is_letter || (at > begin && text::is_digit(c));
    };
    while (at < text.size() && may_follow(text[at])) ++at;
    if (at == begin) return 0;
  }
  return at > 1 && at < text.size() && text[at] == '}' ? at + 1 : 0;
}

struct MapWord {
  std::string text;
  bool has_item = false;
};

// A word of the command line as a text with expressions.
MapWord as_template(std::string_view word) {
  MapWord out;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view rest = word.substr(at);
    if (rest.starts_with("${")) {
      out.text += "$${";
      at += 2;
    } else if (rest.starts_with("{}")) {
      out.text += "${item}";
      out.has_item = true;
      at += 2;
    } else if (rest.starts_with("{#}")) {
      out.text += "${index + 1}";
      out.has_item = true;
      at += 3;
    } else if (const std::size_t bytes = rest.starts_with("{.") ? field_bytes(rest) : 0; bytes > 0) {
      out.text += "${item" + std::string{rest.substr(1, bytes - 1)};
      out.has_item = true;
      at += bytes;
    } else {
      out.text += word[at++];
    }
  }
  return out;
}

std::uint64_t processors() { return std::max(1U, std::thread::hardware_concurrency()); }

// Every item is tried, whatever became of others; those that fail are kept as dead letters.
std::string document_of(const MapOptions& options, const Json& policy) {
  boost::json::array argv;
  bool has_item = false;
  for (const std::string& word : options.exec.command) {
    MapWord made = as_template(word);
    has_item |= made.has_item;
    argv.emplace_back(made.text);
  }
  if (!has_item) argv.emplace_back("${item}");
  boost::json::object step;
  step["id"] = map_step;
  step["for_each"] = "${params.items}";
  step["max_parallel"] = options.jobs.value_or(processors());
  step["argv"] = std::move(argv);
  step["output"] = "lines";  // kept whole
  step["retry"] = policy;
  step["on_failure"] = "dead_letter";
  step["tolerate"] = "100%";
  boost::json::object items;
  items["type"] = "list";
  items["required"] = true;
  boost::json::object params;
  params["items"] = std::move(items);
  boost::json::object document;
  document["name"] = "map";
  document["params"] = std::move(params);
  document["steps"] = boost::json::array{std::move(step)};
  return json::to_text(document);
}

// Other dialects have keys of their own in a document; the same policy in the native form means the same.
std::expected<Json, int> native_policy(const ChosenPolicy& chosen) {
  const auto read = read_policy(chosen.text, chosen.dialect, "the policy");
  if (!read) return std::unexpected{usage_error(render(read.error()))};
  Policy policy = read->policy;
  if (chosen.timeout) policy.attempt_timeout = chosen.timeout;
  const WrittenPolicy written = write_policy(policy, Dialect::native, TextFormat::json);
  if (!written.losses.empty())
    return std::unexpected{
        usage_error("map has native policies only, and this one says more: " + written.losses.front())};
  auto value = json::parse_json(written.text);
  if (!value) return std::unexpected{usage_error("the policy cannot be written: " + value.error())};
  return *std::move(value);
}

// ---- results ----------------------------------------

using WholeOutput = std::function<std::string(const Event&)>;

// At once: whoever reads it may be waiting for it.
void write_result(const Event& event, const WholeOutput& whole_output) {
  if (event.type != EventType::completed || event.step != map_step) return;
  const bool is_elsewhere = event.output_size > event.output.size();
  const std::string output = is_elsewhere ? whole_output(event) : event.output;
  if (output.empty()) return;
  print_bytes(output);
  print_bytes("\n");
  std::fflush(stdout);
}

// Passes the display's events on, and writes the results of items as they come.
class Results final : public ProgressDisplay {
 public:
  Results(std::unique_ptr<ProgressDisplay> inner, WholeOutput whole_output)
      : inner_{std::move(inner)}, whole_output_{std::move(whole_output)} {}

  void recall(const Event& event) override {
    if (inner_) inner_->recall(event);
  }
  void add(const Event& event) override {
    write_result(event, whole_output_);
    if (inner_) inner_->add(event);
  }
  void time_passes() override {
    if (inner_) inner_->time_passes();
  }
  Duration patience() const override { return inner_ ? inner_->patience() : std::chrono::seconds{1}; }
  void finish() override {
    if (inner_) inner_->finish();
  }
  void say(std::string_view line) override { inner_ ? inner_->say(line) : ProgressDisplay::say(line); }
  void pause_drawing() override {
    if (inner_) inner_->pause_drawing();
  }
  void draw_again() override {
    if (inner_) inner_->draw_again();
  }

 private:
  std::unique_ptr<ProgressDisplay> inner_;
  WholeOutput whole_output_;
};

}  // namespace

int map_command(const MapOptions& options) {
  if (const int refused = refuse_other_bytes(options.exec.command, "map"); refused != exit_done) return exit_usage;
  const auto attributes = attributes_here(options.exec.labels);
  if (!attributes) return usage_error(attributes.error());
  const auto chosen = chosen_policy(options.exec, "map");
  if (!chosen) return exit_usage;
  const auto policy = native_policy(*chosen);
  if (!policy) return policy.error();
  auto items = items_of(options);
  if (!items) return items.error();
  if (items->empty()) return exit_done;
  const std::size_t count = items->size();
  std::error_code problem;
  exec::RunInput input;
  input.file = "map";
  input.text = document_of(options, *policy);
  input.directory = std::filesystem::current_path(problem).string();
  boost::json::object params;
  params["items"] = *std::move(items);
  input.params = std::move(params);
  const auto program = exec::load_program(std::move(input));
  if (!program) return usage_error(program.error());

  auto session = RunSession::open(options.exec.watch, true);
  if (!session) return session.error();
  RunSession& open = **session;
  const auto run = open.submit(*program, options.exec.id, *attributes);
  if (!run) return run.error();
  const auto same = input_of_same_run(open, *run, options.exec.id, exec::recorded_input(**program), exit_invalid);
  if (!same) return same.error();
  const auto before = open.go_on(*run);
  if (!before) return show_error(before.error());
  std::signal(SIGPIPE, SIG_IGN);
  const WholeOutput whole_output = [&](const Event& event) { return open.whole_output(event); };
  // The same key again: what had succeeded stands there as well, however the run went on since.
  const auto told = open.each_event(*run, [&](const Event& event) {
    if (event.sequence <= *before) write_result(event, whole_output);
    return event.sequence < *before;
  });
  if (!told) return show_error(told.error());
  open.wrap_progress([&](std::unique_ptr<ProgressDisplay> inner) {
    return std::make_unique<Results>(std::move(inner), whole_output);
  });
  auto plan = std::make_shared<const core::Plan>(host::plan_of((*program)->flow));
  const auto end = open.follow(*run, std::move(plan), *before);
  if (!end) return end.error();
  const std::uint64_t failed = open.failed_items(*run);
  if (failed > 0 && options.exec.watch.progress == ProgressMode::quiet)
    print_error(fmt::format("reprise: {} of {} items failed for good\n", failed, count));
  const int code =
      failed > 0 || end->outcome.status != RunStatus::succeeded ? open.report(*run, *end) : exit_code_of(*end);
  return code == exit_done && failed > 0 ? int{exit_failed} : code;
}

}  // namespace reprise::cli
