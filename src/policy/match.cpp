// Does one entry of only_on or never_on match a failure? docs/reference/policy.md lists the forms, docs/reference/dialects.md Prodigy's categories.
#include <reprise/policy.hpp>

#include <algorithm>
#include <initializer_list>

#include "policy/words.hpp"

namespace reprise {
namespace {

const TypeTree& types_of(const Policy& policy) noexcept {
  return policy.types != nullptr ? *policy.types : TypeTree::builtin();
}

bool in_range(const std::optional<int>& value, int low, int high) noexcept {
  return value && *value >= low && *value <= high;
}

bool is_any_of(const Policy& policy, std::string_view type,
               std::initializer_list<std::string_view> ancestors) noexcept {
  for (const std::string_view ancestor : ancestors) {
    if (types_of(policy).is_a(type, ancestor)) return true;
  }
  return false;
}

bool mentions_any(std::string_view message, std::initializer_list<std::string_view> phrases) noexcept {
  for (const std::string_view phrase : phrases) {
    if (words::contains(message, phrase)) return true;
  }
  return false;
}

// Of "/1.1 502 Bad Gateway", " code: 504", "=500": does the first number of three digits begin so?
bool begins_status(std::string_view text, char first_digit) noexcept {
  constexpr std::size_t reach = 16;
  text = text.substr(0, reach);
  if (text.starts_with("://")) return false;  // a URL
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && words::is_digit(text[end])) ++end;
    if (end - begin == 3) return text[begin] == first_digit;
    begin = std::max(end, begin + 1);
  }
  return false;
}

// "HTTP 503", "status code: 504".
bool mentions_status(std::string_view message, std::string_view word, char first_digit) noexcept {
  for (std::size_t at = 0; at + word.size() <= message.size(); ++at) {
    const std::string_view found = message.substr(at, word.size());
    const bool is_there = std::ranges::equal(found, word, {}, words::lower) && (at == 0 || !words::is_word(message[at - 1]));
    const std::string_view rest = message.substr(at + word.size());
    if (is_there && (rest.empty() || !words::is_word(rest.front())) && begins_status(rest, first_digit)) return true;
  }
  return false;
}

// Causes stand at the beginning or the end of a message; looking only there keeps a decision's time bounded.
bool matches_pattern(const MessagePattern& pattern, std::string_view message) noexcept {
  constexpr std::size_t window = 64 * 1024;
  if (message.size() <= 2 * window) return pattern.matches(message);
  return pattern.matches(message.substr(0, window)) || pattern.matches(message.substr(message.size() - window));
}

bool in_category(ErrorCategory category, const Policy& policy, const Failure& failure, FailureKind kind) {
  switch (category) {
    case ErrorCategory::network:
      return is_any_of(policy, failure.type, {"ConnectionError", "NetworkError"}) ||
             mentions_any(failure.message, {"connection", "network"});
    case ErrorCategory::timeout:
      return kind == FailureKind::timeout || is_any_of(policy, failure.type, {"TimeoutError"}) ||
             in_range(failure.http_status, 408, 408) || in_range(failure.http_status, 504, 504) ||
             mentions_any(failure.message, {"timeout", "timed out"});
    case ErrorCategory::server_error:
      return in_range(failure.http_status, 500, 599) ||
             mentions_any(failure.message, {"server error", "unavailable", "bad gateway", "gateway timeout"}) ||
             mentions_status(failure.message, "http", '5') || mentions_status(failure.message, "status", '5');
    case ErrorCategory::rate_limit:
      return kind == FailureKind::throttled || in_range(failure.http_status, 429, 429) ||
             mentions_any(failure.message, {"rate limit", "too many requests", "429"});
  }
  return false;
}

}  // namespace

bool matches(const FailureRule& rule, const Policy& policy, const Failure& failure, FailureClass failure_class,
             FailureKind kind) {
  switch (rule.what) {
    case FailureRule::What::failure_class:
      return rule.low == static_cast<int>(failure_class);
    case FailureRule::What::kind:
      return rule.low == static_cast<int>(kind);
    case FailureRule::What::type:
      return policy.match == Matching::exact ? failure.type == rule.text
                                             : types_of(policy).is_a(failure.type, rule.text);
    case FailureRule::What::exit_code:
      return in_range(failure.exit_code, rule.low, rule.high);
    case FailureRule::What::signal:
      // A shell reports a child killed by signal n as exit code 128 + n.
      return in_range(failure.signal, rule.low, rule.high) ||
             in_range(failure.exit_code, 128 + rule.low, 128 + rule.high);
    case FailureRule::What::http_status:
      return in_range(failure.http_status, rule.low, rule.high);
    case FailureRule::What::message:
      return rule.pattern != nullptr && matches_pattern(*rule.pattern, failure.message);
    case FailureRule::What::category:
      return in_category(static_cast<ErrorCategory>(rule.low), policy, failure, kind);
  }
  return false;
}

FailureRule FailureRule::of(FailureClass failure_class) {
  const int value = static_cast<int>(failure_class);
  return {What::failure_class, std::string{name_of(failure_class)}, value, value, {}};
}

FailureRule FailureRule::of(FailureKind kind) {
  const int value = static_cast<int>(kind);
  return {What::kind, std::string{name_of(kind)}, value, value, {}};
}

FailureRule FailureRule::of(ErrorCategory category) {
  const int value = static_cast<int>(category);
  return {What::category, std::string{name_of(category)}, value, value, {}};
}

FailureRule FailureRule::of_type(std::string type) { return {What::type, std::move(type), 0, 0, {}}; }

FailureRule FailureRule::of_exit(int low, int high) {
  std::string text = "exit:" + std::to_string(low);
  if (high != low) text += "-" + std::to_string(high);
  return {What::exit_code, std::move(text), low, high, {}};
}

FailureRule FailureRule::of_http(int status) {
  return {What::http_status, "http:" + std::to_string(status), status, status, {}};
}

FailureRule FailureRule::of_http_family(int hundreds) {
  return {What::http_status, "http:" + std::to_string(hundreds) + "xx", hundreds * 100, hundreds * 100 + 99, {}};
}

FailureRule FailureRule::of_signal(int number) {
  return {What::signal, "signal:" + std::string{signal_name(number)}, number, number, {}};
}

FailureRule FailureRule::of_message(std::string text, std::shared_ptr<const MessagePattern> pattern) {
  return {What::message, std::move(text), 0, 0, std::move(pattern)};
}

}  // namespace reprise
