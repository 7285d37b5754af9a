// The classifier (docs/reference/failures.md): from the most certain evidence to the least.
#include <reprise/classify.hpp>

#include <array>
#include <csignal>

#include "policy/error_line.hpp"
#include "policy/words.hpp"

namespace reprise {
namespace {

Classification found(FailureClass failure_class, FailureKind kind, std::string_view rule,
                     std::optional<int> number = std::nullopt) noexcept {
  return {failure_class, kind, is_retryable(failure_class), true, rule, number, false, -1};
}

Classification transient(FailureKind kind, std::string_view rule, std::optional<int> number = std::nullopt) noexcept {
  return found(FailureClass::transient, kind, rule, number);
}

Classification deterministic(FailureKind kind, std::string_view rule,
                             std::optional<int> number = std::nullopt) noexcept {
  return found(FailureClass::deterministic, kind, rule, number);
}

using Finding = std::optional<Classification>;

constexpr int shell_signal_base = 128;  // a shell reports a child killed by signal n as 128 + n

Finding by_handler(const Evidence& evidence) noexcept {
  const bool permanent = evidence.permanent.value_or(false);
  if (!evidence.failure_class && !permanent) return std::nullopt;
  const FailureClass by_kind =
      evidence.kind != FailureKind::none ? class_of(evidence.kind) : FailureClass::deterministic;
  Classification result = found(evidence.failure_class.value_or(by_kind), evidence.kind,
                                evidence.failure_class ? "the handler named the class" : "the handler said permanent");
  result.retryable = result.retryable && !permanent;
  return result;
}

// What we did to the attempt or saw of it ourselves is known before any code is read.
Finding by_our_doing(const Evidence& evidence) noexcept {
  if (evidence.timed_out) return transient(FailureKind::timeout, "timed out");
  if (evidence.stalled) return transient(FailureKind::stalled, "stalled");
  if (evidence.worker_lost) return transient(FailureKind::worker_lost, "worker lost");
  if (evidence.dns_error) return transient(FailureKind::none, "dns");
  return std::nullopt;
}

Finding by_spawn_error(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  if (name == "ENOENT" || name == "EACCES" || name == "ENOEXEC")
    return deterministic(FailureKind::not_found, "spawn error");
  return transient(FailureKind::none, "spawn error");
}

Classification by_signal(int number) noexcept {
  switch (number) {
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
      return transient(FailureKind::crashed, "signal", number);
    default:
      return transient(FailureKind::none, "signal", number);
  }
}

// The exit codes that speak for themselves; any other leaves the word to weaker evidence.
Finding by_exit_code(int code) noexcept {
  constexpr int signals_max = 64;
  switch (code) {
    case 75:
      return transient(FailureKind::none, "exit", code);
    case 64:
    case 65:
      return deterministic(FailureKind::invalid_input, "exit", code);
    case 78:
      return deterministic(FailureKind::none, "exit", code);
    case 126:
    case 127:
      return deterministic(FailureKind::not_found, "exit", code);
    default:
      break;
  }
  if (code > shell_signal_base && code <= shell_signal_base + signals_max) {
    Classification result = by_signal(code - shell_signal_base);
    result.rule = "exit";
    result.number = code;
    return result;
  }
  return std::nullopt;
}

Finding by_http_status(int status) noexcept {
  if (status < 300) return std::nullopt;
  if (status < 400) return deterministic(FailureKind::none, "http", status);
  switch (status) {
    case 408:
      return transient(FailureKind::timeout, "http", status);
    case 425:
      return transient(FailureKind::none, "http", status);
    case 429:
    case 503:
      return transient(FailureKind::throttled, "http", status);
    case 401:
    case 403:
      return deterministic(FailureKind::auth, "http", status);
    case 404:
      return deterministic(FailureKind::not_found, "http", status);
    default:
      return status < 500 ? deterministic(FailureKind::invalid_input, "http", status)
                          : transient(FailureKind::none, "http", status);
  }
}

// curl says in its last line what its exit code means; codes without such a line may be another program's.
Finding by_curl(std::string_view message, int code) noexcept {
  const std::optional<CurlReport> report = curl_report(message);
  if (!report || report->code != code) return std::nullopt;
  if (report->http_status) return by_http_status(*report->http_status);
  const std::string_view type = curl_error_type(code);
  if (type.empty()) return std::nullopt;
  return transient(type == "TimeoutError" ? FailureKind::timeout : FailureKind::none, "curl", code);
}

// Walks up from the type to the first family that says something.
Finding by_type(std::string_view type, const TypeTree& tree, bool by_first_rules) noexcept {
  if (type.empty()) return std::nullopt;
  if (const auto dot = type.rfind('.'); dot != std::string_view::npos) type.remove_prefix(dot + 1);
  constexpr int tallest = 64;  // a user's tree may hold a circle
  for (int step = 0; step < tallest && type != "Exception"; ++step, type = tree.parent_of(type)) {
    if (type == "TimeoutError") return transient(FailureKind::timeout, "type");
    if (type == "ConnectionError") return transient(FailureKind::none, "type");
    if (type == "PermissionError") return deterministic(FailureKind::auth, "type");
    if (type == "FileNotFoundError") return deterministic(FailureKind::not_found, "type");
    if (type == "ValueError" || type == "TypeError" || type == "LookupError") {
      return deterministic(FailureKind::invalid_input, "type");
    }
    if (by_first_rules) continue;
    // The program itself is wrong or not all there: no attempt changes that.
    if (type == "ImportError") return deterministic(FailureKind::not_found, "type");
    if (type == "SyntaxError" || type == "NameError" || type == "NotImplementedError")
      return deterministic(FailureKind::none, "type");
  }
  return std::nullopt;
}

struct Phrase {
  std::string_view text;
  FailureClass failure_class;
  FailureKind kind;
  bool only_with_failure = false;  // the name of a test runner alone says nothing
  bool is_later = false;           // unknown to 0.1.0, and so to the runs that it began
};

using Class = FailureClass;

// In the order of the law: the first that stands in the message decides.
constexpr std::array phrases{
    Phrase{"rate limit", Class::transient, FailureKind::throttled},
    Phrase{"too many requests", Class::transient, FailureKind::throttled},
    Phrase{"429", Class::transient, FailureKind::throttled},
    Phrase{"context window", Class::budget_exhausted, FailureKind::none},
    Phrase{"token limit", Class::budget_exhausted, FailureKind::none},
    Phrase{"prompt is too long", Class::budget_exhausted, FailureKind::none},
    Phrase{"invalid api key", Class::deterministic, FailureKind::auth},
    Phrase{"authentication failed", Class::deterministic, FailureKind::auth},
    Phrase{"unauthorized", Class::deterministic, FailureKind::auth},
    Phrase{"forbidden", Class::deterministic, FailureKind::auth},
    Phrase{"permission denied", Class::deterministic, FailureKind::auth},
    Phrase{"access denied", Class::deterministic, FailureKind::auth},
    Phrase{"command not found", Class::deterministic, FailureKind::not_found},
    Phrase{"not found in path", Class::deterministic, FailureKind::not_found},
    Phrase{"not found in $path", Class::deterministic, FailureKind::not_found},
    Phrase{"missing binary", Class::deterministic, FailureKind::not_found, false, true},
    Phrase{"schema validation", Class::contract_failure, FailureKind::none},
    Phrase{"contract validation", Class::contract_failure, FailureKind::none},
    Phrase{"schema mismatch", Class::contract_failure, FailureKind::none, false, true},
    Phrase{"schema mismatches", Class::contract_failure, FailureKind::none, false, true},
    Phrase{"output validation failed", Class::contract_failure, FailureKind::none, false, true},
    Phrase{"output validation failure", Class::contract_failure, FailureKind::none, false, true},
    Phrase{"output validation failures", Class::contract_failure, FailureKind::none, false, true},
    Phrase{"test failed", Class::test_failure, FailureKind::none},
    Phrase{"tests failed", Class::test_failure, FailureKind::none},
    Phrase{"test suite failed", Class::test_failure, FailureKind::none, false, true},
    Phrase{"test suite failure", Class::test_failure, FailureKind::none, false, true},
    Phrase{"test suite failures", Class::test_failure, FailureKind::none, false, true},
    Phrase{"--- fail", Class::test_failure, FailureKind::none},
    Phrase{"go test", Class::test_failure, FailureKind::none, true},
    Phrase{"pytest", Class::test_failure, FailureKind::none, true},
    Phrase{"npm test", Class::test_failure, FailureKind::none, true},
    Phrase{"timeout", Class::transient, FailureKind::timeout},
    Phrase{"timed out", Class::transient, FailureKind::timeout},
    Phrase{"connection", Class::transient, FailureKind::none},
    Phrase{"network", Class::transient, FailureKind::none},
    Phrase{"unavailable", Class::transient, FailureKind::none},
    Phrase{"bad gateway", Class::transient, FailureKind::none, false, true},
    Phrase{"internal server error", Class::transient, FailureKind::none, false, true},
};

// Only the beginning and the end of a very long message are read: causes stand there, and time stays bounded.
constexpr std::size_t text_window = 64 * 1024;

Finding by_text(std::string_view message, bool failed_exit, bool by_first_rules) noexcept {
  if (message.size() > 2 * text_window) {
    const Finding head = by_text(message.substr(0, text_window), failed_exit, by_first_rules);
    return head ? head : by_text(message.substr(message.size() - text_window), failed_exit, by_first_rules);
  }
  for (const Phrase& phrase : phrases) {
    if ((phrase.is_later && by_first_rules) || !words::contains(message, phrase.text)) continue;
    if (phrase.only_with_failure && !failed_exit && !words::reports_failure(message)) continue;
    Classification result = found(phrase.failure_class, phrase.kind, phrase.text);
    result.by_text = true;
    return result;
  }
  return std::nullopt;
}

bool speaks_of_success_only(const Evidence& evidence) noexcept {
  const bool exit_ok = evidence.exit_code == 0;
  const bool http_ok = evidence.http_status && *evidence.http_status < 300;
  return (exit_ok || http_ok) && evidence.exit_code.value_or(0) == 0 && evidence.type.empty() &&
         evidence.message.empty();
}

const TypeTree& types_of(const Evidence& evidence) noexcept {
  return evidence.types != nullptr ? *evidence.types : TypeTree::builtin();
}

Classification by_built_in_rules(const Evidence& evidence) noexcept {
  const bool failed_exit = evidence.exit_code.value_or(0) != 0;
  if (const Finding ours = by_our_doing(evidence)) return *ours;
  if (const Finding spawn = by_spawn_error(evidence.spawn_error)) return *spawn;
  if (evidence.signal) return by_signal(*evidence.signal);
  if (failed_exit) {
    if (const Finding exit = by_exit_code(*evidence.exit_code)) return *exit;
    if (!evidence.by_first_rules && !evidence.http_status) {
      if (const Finding curl = by_curl(evidence.message, *evidence.exit_code)) return *curl;
    }
  }
  if (evidence.http_status) {
    if (const Finding http = by_http_status(*evidence.http_status)) return *http;
  }
  if (evidence.schema_failed) return found(FailureClass::contract_failure, FailureKind::none, "schema");
  if (const Finding type = by_type(evidence.type, types_of(evidence), evidence.by_first_rules)) return *type;
  if (evidence.test_step && evidence.names_failing_tests)
    return found(FailureClass::test_failure, FailureKind::none, "failing tests");
  if (const Finding text = by_text(evidence.message, failed_exit, evidence.by_first_rules)) return *text;
  if (evidence.test_step && failed_exit)
    return found(FailureClass::test_failure, FailureKind::none, "test step exit", evidence.exit_code);
  if (speaks_of_success_only(evidence)) {
    Classification success = transient(FailureKind::none, "success");
    success.failed = false;
    success.retryable = false;
    return success;
  }
  return failed_exit ? transient(FailureKind::none, "exit", evidence.exit_code)
                     : transient(FailureKind::none, "nothing known");
}

Finding by_user_rules(const Evidence& evidence, std::span<const ClassifyRule> rules, const Classification& built_in) {
  Failure failure;  // rules speak of failures, so they see one
  failure.type = evidence.type;
  failure.message = evidence.message;
  failure.exit_code = evidence.exit_code;
  failure.http_status = evidence.http_status;
  failure.signal = evidence.signal;
  Policy defaults;
  defaults.types = evidence.types;
  for (std::size_t index = 0; index < rules.size(); ++index) {
    if (!matches(rules[index].when, defaults, failure, built_in.failure_class, built_in.kind)) continue;
    const FailureKind kind = class_of(built_in.kind) == rules[index].then ? built_in.kind : FailureKind::none;
    Classification result = found(rules[index].then, kind, "rule");
    result.user_rule = static_cast<int>(index);
    return result;
  }
  return std::nullopt;
}

}  // namespace

Evidence evidence_of(const Failure& failure) noexcept {
  Evidence evidence;
  evidence.type = failure.type;
  evidence.message = failure.message;
  evidence.exit_code = failure.exit_code;
  evidence.signal = failure.signal;
  evidence.http_status = failure.http_status;
  evidence.failure_class = failure.failure_class;
  evidence.kind = failure.kind;
  evidence.permanent = failure.permanent;
  return evidence;
}

Classification classify(const Evidence& evidence, std::span<const ClassifyRule> rules) {
  if (const Finding told = by_handler(evidence)) return *told;
  if (evidence.canceled) return found(FailureClass::canceled, FailureKind::none, "canceled");
  if (evidence.kind != FailureKind::none)
    return found(class_of(evidence.kind), evidence.kind, "the handler named the kind");
  const Classification built_in = by_built_in_rules(evidence);
  if (built_in.failed && !rules.empty()) {
    if (const Finding chosen = by_user_rules(evidence, rules, built_in)) return *chosen;
  }
  return built_in;
}

std::string describe_rule(const Classification& classification, const Evidence& evidence,
                          std::span<const ClassifyRule> rules) {
  if (classification.user_rule >= 0 && static_cast<std::size_t>(classification.user_rule) < rules.size()) {
    const auto index = static_cast<std::size_t>(classification.user_rule);
    return "rule " + std::to_string(index + 1) + ": " + rules[index].when.text;
  }
  const std::string rule{classification.rule};
  if (classification.by_text) return "text \"" + rule + "\"";
  if (rule == "type") return rule + " " + std::string{evidence.type};
  if (rule == "spawn error") return rule + " " + std::string{evidence.spawn_error};
  if (!classification.number) return rule;
  const int number = *classification.number;
  const std::string signal{signal_name(rule == "exit" ? number - shell_signal_base : number)};
  if (rule == "signal" && !signal.empty()) return rule + " " + signal;
  const std::string explained = rule == "exit" && !signal.empty() ? " (" + signal + ")" : "";
  return rule + " " + std::to_string(number) + explained;
}

}  // namespace reprise
