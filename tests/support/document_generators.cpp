#include "support/document_generators.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

namespace reprise::testing_support {
namespace {

constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();

template <class T>
T pick(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

std::uint64_t number_below(std::uint64_t limit) {
  return *rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, limit));
}

bool one_in(std::uint64_t chances) { return number_below(chances) == 0; }

// A document as a tree. Scalars carry both of their written forms.
struct Tree {
  enum class Shape : std::uint8_t { scalar, list, map };
  using Members = std::vector<std::pair<std::string, Tree>>;

  Shape shape = Shape::scalar;
  std::string json = {};
  std::string yaml = {};
  std::vector<Tree> items = {};
  Members members = {};
};

std::string json_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string{"''"} : std::string{c};
  return quoted + "'";
}

Tree plain(const std::string& written) { return {.json = written, .yaml = written}; }              // 3, true, null
Tree word(const std::string& written) { return {.json = json_quoted(written), .yaml = written}; }  // fixed, 10s
Tree quoted(const std::string& text) {
  return {.json = json_quoted(text), .yaml = one_in(2) ? json_quoted(text) : single_quoted(text)};
}
Tree list(std::vector<Tree> items) { return {.shape = Tree::Shape::list, .items = std::move(items)}; }
Tree map(Tree::Members members) { return {.shape = Tree::Shape::map, .members = std::move(members)}; }

std::string to_json(const Tree& tree, const std::string& gap) {
  if (tree.shape == Tree::Shape::scalar) return tree.json;
  std::string inside;
  for (const Tree& item : tree.items) inside += (inside.empty() ? "" : "," + gap) + to_json(item, gap);
  for (const auto& [key, value] : tree.members)
    inside += (inside.empty() ? "" : "," + gap) + json_quoted(key) + ":" + gap + to_json(value, gap);
  return tree.shape == Tree::Shape::list ? "[" + inside + "]" : "{" + inside + "}";
}

std::string to_flow(const Tree& tree) {
  if (tree.shape == Tree::Shape::scalar) return tree.yaml;
  std::string inside;
  for (const Tree& item : tree.items) inside += (inside.empty() ? "" : ", ") + to_flow(item);
  for (const auto& [key, value] : tree.members) inside += (inside.empty() ? "" : ", ") + key + ": " + to_flow(value);
  return tree.shape == Tree::Shape::list ? "[" + inside + "]" : "{" + inside + "}";
}

std::string to_block(const Tree& tree, const std::string& indent) {
  if (tree.shape == Tree::Shape::scalar || (tree.items.empty() && tree.members.empty()))
    return " " + to_flow(tree) + "\n";
  std::string text = "\n";
  for (const Tree& item : tree.items)
    text += indent + "-" + (one_in(3) ? " " + to_flow(item) + "\n" : to_block(item, indent + "  "));
  for (const auto& [key, value] : tree.members) {
    if (one_in(8)) text += indent + "# a remark\n";
    text += indent + key + ":" + (one_in(2) ? " " + to_flow(value) + "\n" : to_block(value, indent + "  "));
  }
  return text;
}

std::string written(const Tree& tree) {
  switch (number_below(4)) {
    case 0:
      return to_json(tree, "");
    case 1:
      return to_json(tree, one_in(2) ? " " : "\n\t");
    case 2:
      return to_flow(tree) + "\n";
    default:
      return (one_in(8) ? "---" : "") + to_block(tree, "");
  }
}

// A random part of the fields, in a random order.
Tree some_of(Tree::Members members) {
  std::erase_if(members, [](const auto&) { return one_in(3); });
  for (std::size_t left = members.size(); left > 1; --left) std::swap(members[left - 1], members[number_below(left)]);
  return map(std::move(members));
}

std::string whole(std::uint64_t low, std::uint64_t high) {
  if (one_in(4)) return std::to_string(one_in(2) ? low : high);
  return std::to_string(low + number_below(one_in(2) ? std::min<std::uint64_t>(20, high - low + 1) : high - low + 1));
}

constexpr std::uint64_t counts_max = std::uint64_t{1} << 32;

Tree count(std::uint64_t low) { return plain(whole(low, counts_max)); }

Tree factor() {
  if (one_in(2))
    return plain(
        pick<const char*>({"1", "1.0", "2", "2.0", "3", "1.5", "1.1", "10", "1e300", "2.5e1", "1.0000000000000002"}));
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", 1.0 + static_cast<double>(number_below(1'000'000'000)) / 7e7);
  return plain(text);
}

Tree fraction() {  // 0..1
  if (one_in(2)) return plain(pick<const char*>({"0", "1", "0.3", "0.25", "1.0", "1e-9", "0.1"}));
  return plain("0." + std::to_string(number_below(1'000'000)));
}

Tree seconds() {
  if (one_in(2)) {
    return plain(pick<const char*>({"0", "0.0", "1", "2.5", "0.25", "1e-3", "1.5E1", "60", "300", "1800", "86400",
                                    "0.000000001", "9223372036.854775807", "9007199.254740993", "1e9"}));
  }
  return plain(std::to_string(number_below(100'000)) + "." + std::to_string(number_below(1'000'000'000)));
}

Tree milliseconds() { return plain(whole(0, static_cast<std::uint64_t>(longest) / 1'000'000)); }

enum class Grammar : std::uint8_t { native, go, humantime };

std::string duration_part(Grammar grammar) {
  std::string number = std::to_string(number_below(1000));
  if (grammar != Grammar::humantime && one_in(3)) number += "." + std::to_string(number_below(1'000'000));
  if (grammar == Grammar::go && one_in(20)) number = ".5";
  const std::string unit = grammar == Grammar::go ? pick<const char*>({"ns", "us", "µs", "ms", "s", "m", "h"})
                                                  : pick<const char*>({"ns", "us", "ms", "s", "m", "h", "d", "w"});
  return number + unit;
}

Tree duration(Grammar grammar) {
  if (one_in(6))
    return word(pick<const char*>(
        {"9223372036854775807ns", "9007199254740993ns", "2562047h47m16s854ms775us807ns", "0s", "1ns"}));
  if (grammar != Grammar::humantime && one_in(10)) return one_in(2) ? plain("0") : quoted("0");
  std::string text = duration_part(grammar);
  while (one_in(3)) text += duration_part(grammar);
  return one_in(3) ? quoted(text) : word(text);
}

Tree durations(Grammar grammar) {
  std::vector<Tree> items;
  while (!one_in(4)) items.push_back(duration(grammar));
  return list(std::move(items));
}

Tree optional(Tree value) { return one_in(6) ? plain("null") : std::move(value); }

Tree boolean() { return plain(one_in(2) ? "true" : "false"); }

// Names of error types as Python, Rust and people write them; some are words that mean something else elsewhere. `odd` is one more.
Tree type_names(const char* odd) {
  std::vector<Tree> names;
  while (!one_in(4)) {
    names.push_back(quoted(pick<const char*>({"TimeoutError",
                                              "ConnectionError",
                                              "ConnectionResetError",
                                              "ValueError",
                                              "KeyError",
                                              "OSError",
                                              "Exception",
                                              "asyncio.TimeoutError",
                                              "MyError",
                                              "timeout",
                                              "transient",
                                              "My-Error",
                                              "std::io::Error",
                                              "exit:3",
                                              odd,
                                              "no",
                                              "3",
                                              "null",
                                              "Erreur é",
                                              "it's",
                                              "a \"b\""})));
  }
  return list(std::move(names));
}

const char* any_pattern() {
  return pick<const char*>({"connection reset", "^E[0-9]+", "(?i)quota", "a/b", "x", "\\bdisk (full|failure)\\b",
                            "it's", "say \"no\"", "é", ".", "a{2,3}", "#1: 50%"});
}

Tree native_rules() {
  std::vector<Tree> rules;
  while (!one_in(4)) {
    if (one_in(4)) {
      rules.push_back(quoted("/" + std::string{any_pattern()} + "/"));
    } else {
      rules.push_back(quoted(
          pick<const char*>({"transient", "deterministic", "budget_exhausted", "contract_failure", "test_failure",
                             "canceled",  "timeout",       "throttled",        "crashed",          "not_found",
                             "auth",      "invalid_input", "TimeoutError",     "OSError",          "a.b.KeyError",
                             "MyError",   "exit:75",       "exit:64-74",       "exit:1-255",       "http:503",
                             "http:5xx",  "http:4xx",      "signal:KILL",      "signal:SIGSEGV"})));
    }
  }
  return list(std::move(rules));
}

Tree jitter_word() {
  if (one_in(2)) return word(pick<const char*>({"none", "full", "equal"}));
  if (one_in(2)) return word(pick<const char*>({"0%", "25%", "30%", "100%", "12.5%", "0.001%"}));
  return word(std::to_string(number_below(100)) + "." + std::to_string(number_below(1'000'000)) + "%");
}

Tree native_backoff() {
  if (one_in(4)) return durations(Grammar::native);
  return word(pick<const char*>({"constant", "linear", "exponential", "fibonacci", "decorrelated"}));
}

Tree native() {
  if (one_in(15)) return word(pick<const char*>({"none", "standard", "aggressive", "patient"}));
  Tree::Members members{{"max_attempts", one_in(5) ? (one_in(2) ? word("unlimited") : plain("null")) : count(1)},
                        {"initial", duration(Grammar::native)},
                        {"factor", factor()},
                        {"policy", word(pick<const char*>({"none", "standard", "aggressive", "patient"}))}};
  const auto add = [&](const char* key, Tree value) { members.emplace_back(key, std::move(value)); };
  switch (number_below(4)) {
    case 0: {  // what Wave can say too
      Tree document = some_of(members);
      if (one_in(2))
        document.members.emplace_back("backoff", word(pick<const char*>({"constant", "linear", "exponential"})));
      document.members.emplace_back("jitter", word("none"));
      if (one_in(3)) document.members.emplace_back("increment", duration(Grammar::native));
      if (one_in(2)) document.members.emplace_back("max", optional(duration(Grammar::native)));
      return document;
    }
    case 1: {  // what rh-agents can say too
      add("max_elapsed", optional(duration(Grammar::native)));
      Tree document = some_of(members);
      document.members.emplace_back("backoff", word(pick<const char*>({"constant", "exponential", "fibonacci"})));
      document.members.emplace_back("jitter", word(pick<const char*>({"none", "25%", "25%", "30%"})));
      document.members.emplace_back(
          "only_on", list({quoted("TimeoutError"), quoted(pick<const char*>({"OSError", "a.b.MyError", "KeyError"}))}));
      document.members.emplace_back(
          "never_on", list({quoted("ValidationError"), quoted("ValueError"), quoted("TypeError"), quoted("KeyError"),
                            quoted("AttributeError"), quoted("BrokenPipeError")}));
      return document;
    }
    case 2: {  // what Prodigy can say too
      add("max", duration(Grammar::native));
      add("increment", duration(Grammar::native));
      Tree document = some_of(members);
      document.members.emplace_back(
          "backoff", one_in(3) ? durations(Grammar::native)
                               : word(pick<const char*>({"constant", "linear", "exponential", "fibonacci"})));
      document.members.emplace_back("jitter", word(one_in(2) ? "none" : "30%"));
      document.members.emplace_back("only_on", one_in(2) ? list({quoted("/" + std::string{any_pattern()} + "/")})
                                                         : list({quoted("transient"), quoted("/x/")}));
      return document;
    }
    default:
      break;
  }
  add("max_elapsed", optional(duration(Grammar::native)));
  add("attempt_timeout", optional(duration(Grammar::native)));
  add("backoff", native_backoff());
  add("increment", duration(Grammar::native));
  add("max", optional(duration(Grammar::native)));
  add("jitter", jitter_word());
  add("only_on", native_rules());
  add("never_on", native_rules());
  add("honor_retry_after", boolean());
  return some_of(std::move(members));
}

Tree azolla() {
  return some_of(
      {{"version", plain("1")},
       {"stop", some_of({{"max_attempts", optional(count(1))}, {"max_delay", optional(seconds())}})},
       {"wait", some_of({{"strategy", word(pick<const char*>({"fixed", "exponential", "exponential_jitter"}))},
                         {"delay", seconds()},
                         {"initial_delay", seconds()},
                         {"multiplier", factor()},
                         {"max_delay", seconds()}})},
       {"retry", some_of({{"include_errors", type_names("/x/")}, {"exclude_errors", type_names("/x/")}})},
       {"comment", quoted("unknown keys are ignored up here")}});
}

Tree rh_agents() {
  return some_of({{"max_attempts", count(1)},
                  {"backoff_strategy", word(pick<const char*>({"constant", "linear", "exponential", "fibonacci"}))},
                  {"initial_delay", seconds()},
                  {"max_delay", seconds()},
                  {"backoff_multiplier", factor()},
                  {"jitter", boolean()},
                  {"retry_on_exceptions", optional(type_names("http:5xx"))},
                  {"exclude_exceptions", optional(type_names("http:5xx"))},
                  {"retry_timeout", optional(seconds())},
                  {"enabled", plain(one_in(4) ? "false" : "true")}});
}

Tree wave() {
  return some_of({{"policy", word(pick<const char*>({"none", "standard", "aggressive", "patient"}))},
                  {"max_attempts", count(1)},
                  {"backoff", word(pick<const char*>({"fixed", "linear", "exponential"}))},
                  {"base_delay", duration(Grammar::go)},
                  {"max_delay", duration(Grammar::go)},
                  {"factor", factor()}});
}

Tree argyll() {
  Tree document = some_of({{"max_retries", one_in(4) ? plain("-1") : plain(whole(0, counts_max - 1))},
                           {"backoff_type", word(pick<const char*>({"fixed", "linear", "exponential"}))},
                           {"parallelism", plain(whole(1, 1'000'000))}});
  // The two bounds must agree when both are given.
  const std::uint64_t first = number_below(100'000);
  const bool both = one_in(2);
  if (both || one_in(2))
    document.members.emplace_back(one_in(2) ? "backoff" : "init_backoff", plain(std::to_string(first)));
  if (both) {
    document.members.emplace_back("max_backoff", plain(std::to_string(first + number_below(1'000'000))));
  } else if (one_in(2) && (document.members.empty() || !document.members.back().first.ends_with("backoff"))) {
    document.members.emplace_back("max_backoff", milliseconds());
  }
  return document;
}

Tree prodigy_backoff() {
  switch (number_below(6)) {
    case 0:
      return map({{"fixed", map({{"delay", duration(Grammar::humantime)}})}});
    case 1: {
      Tree inside = some_of({{"initial", duration(Grammar::humantime)}});
      inside.members.emplace_back("increment", duration(Grammar::humantime));
      return map({{"linear", std::move(inside)}});
    }
    case 2:
      return map({{"exponential", some_of({{one_in(2) ? "base" : "multiplier", factor()},
                                           {"initial", duration(Grammar::humantime)}})}});
    case 3:
      return map({{"fibonacci", some_of({{"initial", duration(Grammar::humantime)}})}});
    case 4:
      return map({{"custom", map({{"delays", durations(Grammar::humantime)}})}});
    default:
      return word(pick<const char*>({"fixed", "linear", "exponential", "fibonacci"}));
  }
}

Tree prodigy_retry_on() {
  std::vector<Tree> entries;
  const bool patterns_only = one_in(2);
  while (!one_in(3)) {
    if (patterns_only || one_in(3)) {
      entries.push_back(map({{"pattern", quoted(one_in(12) ? "" : any_pattern())}}));
    } else {
      entries.push_back(word(pick<const char*>({"network", "timeout", "server_error", "rate_limit"})));
    }
  }
  return list(std::move(entries));
}

Tree prodigy() {
  return some_of({{one_in(2) ? "attempts" : "max_attempts", count(1)},
                  {"backoff", prodigy_backoff()},
                  {"initial_delay", duration(Grammar::humantime)},
                  {"max_delay", duration(Grammar::humantime)},
                  {"jitter", boolean()},
                  {"jitter_factor", fraction()},
                  {"retry_budget", duration(Grammar::humantime)},
                  {"retry_on", prodigy_retry_on()}});
}

Tree document_tree(Dialect dialect) {
  switch (dialect) {
    case Dialect::native:
      return native();
    case Dialect::azolla:
      return azolla();
    case Dialect::rh_agents:
      return rh_agents();
    case Dialect::wave:
      return wave();
    case Dialect::argyll:
      return argyll();
    case Dialect::prodigy:
      return prodigy();
  }
  return map({});
}

}  // namespace

rc::Gen<Duration> any_duration() {
  return rc::gen::exec([] {
    switch (number_below(4)) {
      case 0:
        return Duration{
            pick<std::int64_t>({0, 1, 2, 3, 1'000'000, 1'000'000'000, 30'000'000'000, (std::int64_t{1} << 53) + 1,
                                std::int64_t{1} << 62, longest / 2, longest / 3 + 1, longest - 1, longest})};
      case 1:
        return Duration{static_cast<std::int64_t>(number_below(1'000))};
      case 2:
        return Duration{static_cast<std::int64_t>(number_below(3'600'000'000'000))};
      default:
        return Duration{static_cast<std::int64_t>(number_below(static_cast<std::uint64_t>(longest)))};
    }
  });
}

rc::Gen<std::uint64_t> any_retry() {
  return rc::gen::exec([] {
    switch (number_below(4)) {
      case 0:
        return pick<std::uint64_t>({1, 2, 62, 63, 64, 65, 91, 92, 93, 94, 1024, (std::uint64_t{1} << 32) - 1,
                                    std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1, std::uint64_t{1} << 63,
                                    UINT64_MAX - 1, UINT64_MAX});
      case 1:
        return 1 + number_below(std::uint64_t{1} << 33);
      default:
        return 1 + number_below(120);
    }
  });
}

rc::Gen<Policy> any_waiting_policy() {
  return rc::gen::exec([] {
    Policy policy;
    policy.max_attempts.reset();
    policy.stops_on_class = false;
    policy.backoff = pick({Backoff::constant, Backoff::linear, Backoff::exponential, Backoff::fibonacci, Backoff::list,
                           Backoff::decorrelated});
    policy.initial = *any_duration();
    if (one_in(2)) policy.increment = *any_duration();
    policy.factor = one_in(2) ? pick({1.0, 1.5, 2.0, 3.0, 10.0, 1e6, 1e300, 1.0000001})
                              : 1.001 + static_cast<double>(number_below(1'000'000)) / 1e4;
    while (!one_in(4)) policy.delays.push_back(*any_duration());
    if (one_in(4)) {
      policy.max.reset();
    } else {
      policy.max = *any_duration();
    }
    policy.jitter = pick({Jitter::none, Jitter::full, Jitter::equal, Jitter::ratio});
    policy.jitter_ratio =
        one_in(2) ? pick({0.0, 0.25, 0.3, 0.5, 1.0, 5e-324}) : static_cast<double>(number_below(1'000'001)) / 1e6;
    return policy;
  });
}

rc::Gen<Failure> any_failure() {
  return rc::gen::exec([] {
    Failure failure;
    if (one_in(2)) {
      failure.type = pick<const char*>({"TimeoutError", "ConnectionResetError", "ValueError", "ValidationError",
                                        "KeyError", "IndexError", "OSError", "asyncio.TimeoutError", "a.b.MyError",
                                        "MyError", "PermissionError", "BrokenPipeError", "timeout", "transient",
                                        "My-Error", "exit:3", "/x/", "Exception"});
    }
    if (one_in(2)) {
      failure.message =
          pick<const char*>({"connection reset by peer", "E42 quota exceeded", "rate limit", "request timed out",
                             "permission denied", "disk full", "x", "prompt is too long", "3 tests failed",
                             "service unavailable", "é", "500 internal server error", "a/b aaa"});
    }
    if (one_in(4)) {
      failure.failure_class =
          pick({FailureClass::transient, FailureClass::deterministic, FailureClass::budget_exhausted,
                FailureClass::contract_failure, FailureClass::test_failure, FailureClass::canceled});
    }
    if (one_in(6)) {
      failure.kind =
          pick({FailureKind::timeout, FailureKind::throttled, FailureKind::stalled, FailureKind::worker_lost,
                FailureKind::crashed, FailureKind::not_found, FailureKind::auth, FailureKind::invalid_input});
    }
    if (one_in(3)) failure.exit_code = pick({0, 1, 3, 64, 65, 70, 75, 78, 126, 127, 137, 139, 143, 255});
    if (one_in(3)) failure.http_status = pick({200, 302, 400, 401, 404, 408, 425, 429, 500, 502, 503, 504});
    if (one_in(5)) failure.signal = pick({1, 6, 9, 11, 15});
    if (one_in(4)) failure.retry_after = *any_duration();
    if (one_in(6)) failure.permanent = one_in(2);
    return failure;
  });
}

rc::Gen<std::string> any_document(Dialect dialect) {
  return rc::gen::exec([dialect] { return written(document_tree(dialect)); });
}

}  // namespace reprise::testing_support

namespace reprise {

void showValue(const Policy& policy, std::ostream& out) { out << policy_json(policy); }

void showValue(const Failure& failure, std::ostream& out) {
  out << "{type: \"" << failure.type << "\", message: \"" << failure.message << "\"";
  if (failure.failure_class) out << ", class: " << name_of(*failure.failure_class);
  if (failure.kind != FailureKind::none) out << ", kind: " << name_of(failure.kind);
  if (failure.exit_code) out << ", exit_code: " << *failure.exit_code;
  if (failure.http_status) out << ", http_status: " << *failure.http_status;
  if (failure.signal) out << ", signal: " << *failure.signal;
  if (failure.retry_after) out << ", retry_after: " << failure.retry_after->count() << "ns";
  if (failure.permanent) out << ", permanent: " << *failure.permanent;
  out << "}";
}

}  // namespace reprise
