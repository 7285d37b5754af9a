// What a careful reviewer would say about a valid policy: limits that cannot be reached, retries that cannot happen, storms.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "policy/dialect/dialects.hpp"
#include "text/ascii.hpp"
#include "text/nearest.hpp"

namespace reprise::dialect {
namespace {

using text::Node;
using text::Report;

constexpr std::uint64_t attempts_looked_at = 10'000;

const Node* find_path(const Node& root, std::string_view path) noexcept {
  const Node* node = &root;
  while (!path.empty() && node != nullptr) {
    const std::size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return node;
}

std::string_view last_part(std::string_view path) noexcept {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

class Reviewer {
 public:
  Reviewer(const Policy& policy, Dialect dialect, const Node& root, Report& report)
      : policy_{policy}, words_{vocabulary_of(dialect)}, dialect_{dialect}, root_{root}, report_{report} {}

  void review() {
    limits();
    waits();
    filters();
    if (dialect_ == Dialect::native) unused_fields();
  }

 private:
  // At the key if the document has it, else at the document's beginning.
  void warn(std::string_view path, std::string message, std::string help = {}) {
    const Node* node = path.empty() ? nullptr : find_path(root_, path);
    report_.warning(node != nullptr ? *node : root_, std::move(message), std::move(help));
  }

  // At the entry of the list itself, if it is written there.
  void warn_about_entry(std::string_view list_path, const std::string& entry, std::string message,
                        std::string help = {}) {
    const Node* list = find_path(root_, list_path);
    if (list == nullptr || report_.is_full()) return warn(list_path, std::move(message), std::move(help));
    const auto written = std::ranges::find_if(list->items, [&](const Node* item) { return item->text == entry; });
    report_.warning(written != list->items.end() ? **written : *list, std::move(message), std::move(help));
  }

  bool retries() const noexcept { return !policy_.max_attempts || *policy_.max_attempts > 1; }

  void limits() {
    if (!policy_.max_attempts && !policy_.max_elapsed && !policy_.retry_budget) {
      warn(words_.max_attempts, "unlimited attempts and no deadline: work that cannot succeed is retried for ever",
           words_.max_elapsed.empty() ? "set a number of attempts"
                                      : fmt::format("set {} or a number of attempts", last_part(words_.max_elapsed)));
    }
    if (!retries()) return;
    if (policy_.max_elapsed == Duration{0}) {
      warn(words_.max_elapsed, fmt::format("{} is 0: nothing is ever retried", last_part(words_.max_elapsed)));
    } else if (policy_.max_elapsed && policy_.max_attempts) {
      attempts_against_deadline();
    }
    if (policy_.attempt_timeout && policy_.max_elapsed && *policy_.attempt_timeout >= *policy_.max_elapsed &&
        *policy_.max_elapsed > Duration{0}) {
      warn("attempt_timeout", "attempt_timeout is not shorter than max_elapsed: one slow attempt uses up all the time");
    }
  }

  // Either the attempts run out long before the deadline, or the deadline comes before the attempts run out.
  void attempts_against_deadline() {
    const Schedule plan = schedule(policy_, std::min(*policy_.max_attempts, attempts_looked_at));
    const std::string deadline = text::format_duration(*policy_.max_elapsed);
    if (plan.stop == StopReason::deadline) {
      warn(words_.max_elapsed,
           fmt::format("more waiting than {} allows: it ends after attempt {} even if attempts take no time, {} of {} "
                       "are never used",
                       deadline, plan.after_attempt, *policy_.max_attempts - plan.after_attempt, *policy_.max_attempts),
           fmt::format("raise {} or lower {}", last_part(words_.max_elapsed), last_part(words_.max_attempts)));
      return;
    }
    if (plan.stop != StopReason::attempts) return;
    double waiting = 0;
    for (const DelayRange& range : plan.retries) waiting += static_cast<double>(range.max.count());
    // Attempts without a timeout may take any time; ten times the waits is what a reviewer would take for "never".
    const double working = policy_.attempt_timeout ? static_cast<double>(policy_.attempt_timeout->count()) *
                                                         static_cast<double>(*policy_.max_attempts)
                                                   : 9 * waiting;
    if (waiting + working >= static_cast<double>(policy_.max_elapsed->count())) return;
    const std::string each =
        policy_.attempt_timeout ? fmt::format(" of at most {}", text::format_duration(*policy_.attempt_timeout)) : "";
    warn(
        words_.max_elapsed,
        fmt::format("unreachable limit: {} attempts{} and {} of waiting are over long before {}", *policy_.max_attempts,
                    each, text::rough_duration(Duration{static_cast<std::int64_t>(waiting)}), deadline),
        words_.no_attempt_cap.empty() ? fmt::format("raise {}", last_part(words_.max_attempts))
                                      : fmt::format("to retry until then set {}", words_.no_attempt_cap));
  }

  void waits() {
    if (!retries()) return;
    const Duration first = delay_range(policy_, 1).max;
    const Duration third = delay_range(policy_, 3).max;
    if (first == Duration{0} && third == Duration{0} && policy_.max_attempts.value_or(UINT64_MAX) > 2) {
      warn(words_.initial, "retries follow at once, without any wait: a struggling service gets no rest",
           "give the first delay some time");
    } else if (policy_.max && policy_.initial > *policy_.max && policy_.backoff != Backoff::list) {
      warn(words_.max, fmt::format("the cap of {} is below the first delay of {}: every wait is the cap",
                                   text::format_duration(*policy_.max), text::format_duration(policy_.initial)));
    }
    if (policy_.backoff == Backoff::exponential && policy_.factor == 1) {
      warn(words_.factor, "a factor of 1 does not grow: this is constant backoff");
    }
    if (policy_.backoff == Backoff::list && policy_.max_attempts && policy_.delays.size() >= *policy_.max_attempts) {
      warn(words_.delays, fmt::format("{} delays for {} retries: the last ones are never used", policy_.delays.size(),
                                      *policy_.max_attempts - 1));
    }
    if (policy_.backoff == Backoff::list && !policy_.max) {
      warn(words_.delays, "there is no cap: past its end the list repeats its last delay",
           "set max to what should come then");
    }
    if (policy_.parallelism > 1 && policy_.jitter == Jitter::none && policy_.backoff != Backoff::decorrelated) {
      warn(words_.parallelism,
           fmt::format("no jitter on a fan-out: {} work items that fail together come back together",
                       policy_.parallelism),
           words_.jitter.empty() ? "native policies have jitter" : fmt::format("set {}", last_part(words_.jitter)));
    }
    if (policy_.retry_budget && policy_.max_attempts) {
      const Schedule plan = schedule(policy_, std::min(*policy_.max_attempts, attempts_looked_at));
      if (plan.stop == StopReason::budget) {
        warn(words_.retry_budget,
             fmt::format("the budget of {} is spent after attempt {} of {}",
                         text::format_duration(*policy_.retry_budget), plan.after_attempt, *policy_.max_attempts));
      }
    }
  }

  void filters() {
    if (policy_.only_on && policy_.only_on->empty() && retries()) {
      warn(words_.only_on, fmt::format("{} is empty: nothing is ever retried", last_part(words_.only_on)));
    }
    if (policy_.never_on) {
      for (const FailureRule& rule : *policy_.never_on) denied_.insert(rule.text);
    }
    if (policy_.only_on) {
      for (const FailureRule& rule : *policy_.only_on) shadowed(rule);
    }
    if (dialect_ != Dialect::native) return;
    for (const auto& [key, rules] :
         {std::pair{"only_on", &policy_.only_on}, std::pair{"never_on", &policy_.never_on}}) {
      if (!rules->has_value()) continue;
      for (const FailureRule& rule : **rules) misspelt(key, rule);
    }
  }

  void shadowed(const FailureRule& rule) {
    const bool canceled = rule == FailureRule::of(FailureClass::canceled);
    if (canceled) {
      return warn_about_entry(words_.only_on, rule.text, "canceled work is never retried: this entry has no effect");
    }
    const std::string_view deny = denied_as(rule);
    if (deny.empty()) return;
    const std::string by = deny == rule.text ? "excluded too" : fmt::format("excluded as {}", deny);
    warn_about_entry(words_.only_on, rule.text,
                     fmt::format("{} is {}, and excluding wins: it is never retried", rule.text, by));
  }

  // The entry of never_on that covers this one: itself, or a type above it.
  std::string_view denied_as(const FailureRule& rule) const {
    const auto same = denied_.find(rule.text);
    if (same != denied_.end()) return *same;
    if (rule.what != FailureRule::What::type || policy_.match == Matching::exact) return {};
    for (std::string_view type = rule.text; type != "Exception";) {  // the built-in tree has no circles
      type = TypeTree::builtin().parent_of(type);
      if (const auto above = denied_.find(type); above != denied_.end()) return *above;
    }
    return {};
  }

  // `transiet` is a legal type name, so it is no error; but nobody names a type like that.
  void misspelt(std::string_view key, const FailureRule& rule) {
    std::vector<std::string_view> words(failure_class_names().begin(), failure_class_names().end());
    words.insert(words.end(), failure_kind_names().begin(), failure_kind_names().end());
    if (rule.what != FailureRule::What::type || rule.text.size() > 20 || report_.is_full()) return;
    const std::string small = text::lowered(rule.text);
    const bool capitals_only_differ = std::ranges::find(words, small) != words.end();
    if (small != rule.text && !capitals_only_differ) return;
    const std::string_view close = text::nearest(rule.text, words);
    if (!close.empty()) {
      warn_about_entry(key, rule.text, fmt::format("{}: {} is taken for the name of an error type", key, rule.text),
                       fmt::format("did you mean {}?", close));
    }
  }

  // Allowed, because a base policy may bring them along; said, because they do nothing.
  void unused_fields() {
    const auto unused = [&](std::string_view key, Backoff user) {
      if (root_.find(key) == nullptr || policy_.backoff == user) return;
      warn(key, fmt::format("{} is not used by {} backoff", key, name_of(policy_.backoff)));
    };
    unused("increment", Backoff::linear);
    unused("factor", Backoff::exponential);
    const bool initial_used = policy_.backoff != Backoff::list || (policy_.delays.empty() && !policy_.max);
    if (root_.find("initial") != nullptr && !initial_used) {
      warn("initial", "initial is not used by list backoff");
    } else if (policy_.backoff == Backoff::decorrelated && root_.find("jitter") != nullptr) {
      warn("jitter", "decorrelated backoff draws its own delays: jitter is not applied on top");
    }
  }

  const Policy& policy_;
  const Vocabulary& words_;
  Dialect dialect_;
  const Node& root_;
  Report& report_;
  std::unordered_set<std::string_view> denied_;
};

}  // namespace

const Vocabulary& vocabulary_of(Dialect dialect) noexcept {
  static constexpr Vocabulary vocabularies[] = {
      {.max_attempts = "max_attempts",
       .max_elapsed = "max_elapsed",
       .initial = "initial",
       .max = "max",
       .factor = "factor",
       .jitter = "jitter",
       .delays = "backoff",
       .only_on = "only_on",
       .never_on = "never_on",
       .retry_budget = "",
       .parallelism = "",
       .no_attempt_cap = "max_attempts: unlimited"},
      {.max_attempts = "stop.max_attempts",
       .max_elapsed = "stop.max_delay",
       .initial = "wait.initial_delay",
       .max = "wait.max_delay",
       .factor = "wait.multiplier",
       .jitter = "wait.strategy",
       .delays = "",
       .only_on = "retry.include_errors",
       .never_on = "retry.exclude_errors",
       .retry_budget = "",
       .parallelism = "",
       .no_attempt_cap = "\"max_attempts\": null"},
      {.max_attempts = "max_attempts",
       .max_elapsed = "retry_timeout",
       .initial = "initial_delay",
       .max = "max_delay",
       .factor = "backoff_multiplier",
       .jitter = "jitter",
       .delays = "",
       .only_on = "retry_on_exceptions",
       .never_on = "exclude_exceptions",
       .retry_budget = "",
       .parallelism = "",
       .no_attempt_cap = ""},
      {.max_attempts = "max_attempts",
       .max_elapsed = "",
       .initial = "base_delay",
       .max = "max_delay",
       .factor = "factor",
       .jitter = "",
       .delays = "",
       .only_on = "",
       .never_on = "",
       .retry_budget = "",
       .parallelism = "",
       .no_attempt_cap = ""},
      {.max_attempts = "max_retries",
       .max_elapsed = "",
       .initial = "backoff",
       .max = "max_backoff",
       .factor = "",
       .jitter = "",
       .delays = "",
       .only_on = "",
       .never_on = "",
       .retry_budget = "",
       .parallelism = "parallelism",
       .no_attempt_cap = "max_retries: -1"},
      {.max_attempts = "attempts",
       .max_elapsed = "",
       .initial = "initial_delay",
       .max = "max_delay",
       .factor = "backoff.exponential.base",
       .jitter = "jitter",
       .delays = "backoff.custom.delays",
       .only_on = "retry_on",
       .never_on = "",
       .retry_budget = "retry_budget",
       .parallelism = "",
       .no_attempt_cap = ""},
  };
  return vocabularies[static_cast<std::size_t>(dialect)];
}

void warn_about(const Policy& policy, Dialect dialect, const Node& root, Report& report) {
  Reviewer{policy, dialect, root, report}.review();
}

}  // namespace reprise::dialect
