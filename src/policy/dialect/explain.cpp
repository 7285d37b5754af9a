// A policy in sentences, for people.
#include <fmt/format.h>

#include "policy/dialect/writing.hpp"

namespace reprise {
namespace {

constexpr std::uint64_t waits_shown_max = 8;

std::string attempts_sentence(const Policy& policy) {
  if (!policy.max_attempts) return "runs as often as it takes";
  if (*policy.max_attempts == 1) return "runs once and is never retried";
  if (*policy.max_attempts == 2) return "runs at most 2 times, that is 1 retry";
  return fmt::format("runs at most {} times, that is {} retries", *policy.max_attempts, *policy.max_attempts - 1);
}

std::string jitter_words(const Policy& policy, bool several) {
  if (policy.backoff == Backoff::decorrelated) return {};
  const std::string_view each = several ? ", each" : ",";
  switch (policy.jitter) {
    case Jitter::none:
      return {};
    case Jitter::full:
      return fmt::format("{} anywhere between 0 and that", each);
    case Jitter::equal:
      return fmt::format("{} anywhere between half of that and that", each);
    case Jitter::ratio:
      return fmt::format("{} up to {:g} % shorter or longer", each, policy.jitter_ratio * 100);
  }
  return {};
}

std::string waits_sentence(const Policy& policy) {
  if (policy.backoff == Backoff::decorrelated) {
    const std::string cap = policy.max ? fmt::format(", {} at most", text::format_duration(*policy.max)) : "";
    return fmt::format("waits between {} and three times the wait before{}", text::format_duration(policy.initial),
                       cap);
  }
  Schedule plan = schedule(policy, waits_shown_max + 1);
  if (plan.retries.empty()) return {};
  const bool goes_on = plan.retries.size() > waits_shown_max;
  if (goes_on) plan.retries.pop_back();
  std::string waits;
  bool all_the_same = true;
  for (const DelayRange& range : plan.retries) {
    waits += (waits.empty() ? "" : " ") + text::format_duration(range.nominal);
    all_the_same = all_the_same && range.nominal == plan.retries.front().nominal;
  }
  if (all_the_same && plan.retries.size() > 1) {
    return fmt::format("waits {} before each retry{}", text::format_duration(plan.retries.front().nominal),
                       jitter_words(policy, false));
  }
  std::string cap;
  if (goes_on) cap = policy.max ? fmt::format(" … and never more than {}", text::format_duration(*policy.max)) : " …";
  return fmt::format("waits {}{}{}", waits, cap, jitter_words(policy, plan.retries.size() > 1));
}

std::string giving_up_sentence(const Policy& policy) {
  std::string sentence;
  const auto add = [&](const std::string& part) { sentence += (sentence.empty() ? "gives up " : ", or ") + part; };
  if (policy.max_elapsed) add(fmt::format("after {}", text::format_duration(*policy.max_elapsed)));
  if (policy.retry_budget)
    add(fmt::format("when its waits add up to more than {}", text::format_duration(*policy.retry_budget)));
  if (policy.never_on && !policy.never_on->empty())
    add(fmt::format("on {}", dialect::rules_in_words(*policy.never_on)));
  if (policy.stops_on_class && !policy.only_on)
    add("on failures that another attempt cannot mend (deterministic, budget_exhausted)");
  return sentence;
}

std::string filter_sentence(const Policy& policy) {
  if (policy.needs_verdict) return "is retried only when the handler itself reports \"not completed\"";
  if (!policy.only_on) return {};
  if (policy.only_on->empty()) return "is retried on nothing, because the list is empty";
  return fmt::format("is retried only on {}{}", dialect::rules_in_words(*policy.only_on),
                     policy.match == Matching::exact ? " (exactly these names)" : "");
}

}  // namespace

std::string explain(const Policy& policy) {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) text += sentence + "\n";
  };
  add(attempts_sentence(policy));
  const bool retries = !policy.max_attempts || *policy.max_attempts > 1;
  if (policy.attempt_timeout)
    add(fmt::format("gives each attempt at most {}", text::format_duration(*policy.attempt_timeout)));
  if (policy.worker_lost_max) {
    add(*policy.worker_lost_max == 0
            ? std::string{"stops when an attempt is lost with the engine or the worker"}
            : fmt::format("makes lost attempts again, up to {} in a row", *policy.worker_lost_max));
  }
  if (!retries) return text;
  add(waits_sentence(policy));
  add(filter_sentence(policy));
  add(giving_up_sentence(policy));
  if (!policy.honor_retry_after) add("ignores what a server asks for with Retry-After");
  if (policy.parallelism > 1) add(fmt::format("runs {} work items at a time", policy.parallelism));
  return text;
}

}  // namespace reprise
