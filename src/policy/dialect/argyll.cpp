// Argyll: a step's `work_config`, milliseconds; what is retried is the handler's word alone.
#include <algorithm>

#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"

namespace reprise::dialect {
namespace {

using text::Field;
using text::Report;
using text::Value;

constexpr std::int64_t milliseconds_max = INT64_MAX / ns_per_millisecond;
constexpr Duration default_backoff = std::chrono::seconds{1};
constexpr Duration default_max_backoff = std::chrono::seconds{60};
constexpr std::int64_t parallelism_max = 1'000'000;  // more work items at a time than any machine runs

std::optional<Duration> read_milliseconds(const Field& field, Report& report) {
  const auto written_out = field.node->type == text::NodeType::string
                               ? text::parse_duration(field.node->text, text::DurationGrammar::native)
                               : std::unexpected(text::DurationProblem{});
  if (written_out && written_out->count() % ns_per_millisecond == 0) {
    report.error(*field.node,
                 fmt::format("{}: expected a number of milliseconds, found {}", field.key, text::describe(*field.node)),
                 fmt::format("write {}", written_out->count() / ns_per_millisecond));
    return std::nullopt;
  }
  const auto value = text::read_whole(field, {0, milliseconds_max}, report);
  return value ? std::optional<Duration>{std::chrono::milliseconds{*value}} : std::nullopt;
}

// Cut to a whole number of milliseconds, which is all there is.
std::int64_t milliseconds(Duration duration, const char* what, Losses& losses) {
  if (duration == Duration::max()) return milliseconds_max;
  if (duration.count() % ns_per_millisecond != 0)
    losses.push_back(fmt::format("the fraction of a millisecond in {}", what));
  return duration.count() / ns_per_millisecond;
}

// Argyll refuses a max_backoff below backoff when both are written; a default on one side is how its documents say that.
void write_bounds(const Policy& policy, Value& map, std::string& type, Losses& losses) {
  const Duration most = effective_max(policy);
  const bool capped_at_once = policy.initial > most;
  if (capped_at_once && most == default_max_backoff) {
    map.set("backoff", milliseconds(policy.initial, "the first delay", losses));
  } else if (capped_at_once && policy.initial == default_backoff) {
    map.set("max_backoff", milliseconds(most, "the longest delay", losses));
  } else if (capped_at_once) {  // every wait is the cap
    map.set("backoff", milliseconds(most, "the longest delay", losses));
    map.set("max_backoff", milliseconds(most, "the longest delay", losses));
    type = "fixed";
  } else {
    map.set("backoff", milliseconds(policy.initial, "the first delay", losses));
    map.set("max_backoff", milliseconds(most, "the longest delay", losses));
  }
}

std::string unwrap(const text::Node&) { return "write what stands under work_config: alone"; }

}  // namespace

Policy read_argyll(const text::Node& root, Report& report) {
  Policy policy{.max_attempts = 1,
                .initial = default_backoff,
                .max = default_max_backoff,
                .jitter = Jitter::none,
                .stops_on_class = false,
                .needs_verdict = true};
  text::Fields fields{root, "", report};
  if (const auto field = fields.find("max_retries")) {
    if (const auto retries = text::read_whole(*field, {-1, counts_max}, report)) {
      policy.max_attempts = *retries == -1 ? std::nullopt : std::optional{static_cast<std::uint64_t>(*retries) + 1};
    }
  }
  const auto backoff = fields.find("backoff");
  const auto alias = fields.find("init_backoff");
  const auto max_backoff = fields.find("max_backoff");
  if (backoff) assign(policy.initial, read_milliseconds(*backoff, report));
  if (alias) assign(policy.initial, read_milliseconds(*alias, report));
  if (backoff && alias)
    report.error(*alias->node, "init_backoff: backoff is given too, and they mean the same", "keep one of them");
  if (max_backoff) {
    const auto most = read_milliseconds(*max_backoff, report);
    assign(policy.max, most);
    if (most && (backoff || alias) && *most < policy.initial) {
      report.error(*max_backoff->node,
                   fmt::format("max_backoff: {} is less than {} {}", max_backoff->node->text,
                               backoff ? "backoff" : "init_backoff", (backoff ? backoff : alias)->node->text),
                   "raise max_backoff or lower the other");
    }
  }
  if (const auto field = fields.find("backoff_type")) {
    if (const auto word = text::read_word(*field, {"fixed", "linear", "exponential"}, report)) {
      policy.backoff = backoff_named(*word);
    }
  }
  if (const auto field = fields.find("parallelism"))
    assign(policy.parallelism, text::read_whole(*field, {1, parallelism_max}, report));
  if (fields.is_map()) {
    fields.finish({{"retries", use_instead<key::max_retries>},
                   {"attempts", count_retries_only<key::max_retries>},
                   {"max_attempts", count_retries_only<key::max_retries>},
                   {"delay", use_instead<key::backoff_in_ms>},
                   {"initial_delay", use_instead<key::backoff_in_ms>},
                   {"base_delay", use_instead<key::backoff_in_ms>},
                   {"max_delay", use_instead<key::max_backoff_in_ms>},
                   {"work_config", unwrap}});
  }
  return policy;
}

Value write_argyll(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  constexpr auto attempts_max = static_cast<std::uint64_t>(counts_max) + 1;
  if (policy.max_attempts && *policy.max_attempts > attempts_max)
    losses.push_back(fmt::format("{} attempts", *policy.max_attempts));
  map.set("max_retries",
          policy.max_attempts
              ? static_cast<std::int64_t>(std::clamp<std::uint64_t>(*policy.max_attempts, 1, attempts_max)) - 1
              : std::int64_t{-1});
  std::string type = "exponential";
  if (policy.backoff == Backoff::constant || (policy.backoff == Backoff::exponential && policy.factor == 1)) {
    type = "fixed";  // growing by 1 is not growing
  } else if (policy.backoff == Backoff::linear) {
    type = "linear";
    if (!grows_by_itself(policy)) losses.push_back(backoff_in_words(policy) + " (written as growing by backoff)");
  } else if (policy.backoff != Backoff::exponential || policy.factor != 2) {
    losses.push_back(backoff_in_words(policy) + " (written as doubling)");
  }
  write_bounds(policy, map, type, losses);
  map.set("backoff_type", type);
  if (policy.parallelism != 1) map.set("parallelism", static_cast<std::int64_t>(policy.parallelism));
  if (policy.jitter != Jitter::none)
    losses.push_back(fmt::format("{} jitter: Argyll waits exactly", name_of(policy.jitter)));
  if (!policy.needs_verdict)
    losses.push_back(
        "deciding by class, type or status: Argyll retries only what the handler reports as not completed");
  lose(policy,
       {Feature::attempt_timeout, Feature::filters, Feature::max_elapsed, Feature::retry_after, Feature::retry_budget},
       losses);
  return map;
}

}  // namespace reprise::dialect
