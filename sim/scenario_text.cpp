// The reader of scenario files: lines, clauses, words, and mistakes with their line.
#include "sim/scenario_text.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>

#include "text/duration.hpp"

namespace reprise::sim {
namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view text) {
  Words words;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view word{part.begin(), part.end()};
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

std::vector<Words> clauses_of(std::string_view text) {
  std::vector<Words> clauses;
  for (const auto part : std::views::split(text, ';')) {
    Words words = words_of(std::string_view{part.begin(), part.end()});
    if (!words.empty()) clauses.push_back(std::move(words));
  }
  return clauses;
}

class Reader {
 public:
  std::expected<ScenarioText, ScenarioMistake> read(std::string_view text) {
    for (const auto part : std::views::split(text, '\n')) {
      ++line_;
      std::string line{part.begin(), part.end()};
      line.erase(std::min(line.find('#'), line.size()));
      std::ranges::replace(line, '\t', ' ');
      read_line(line);
      if (mistake_) return std::unexpected{*mistake_};
    }
    if (text_.program.flows.empty()) say("a scenario has a flow");
    if (text_.commands.empty()) say("a scenario has something that happens: at 0s start");
    if (mistake_) return std::unexpected{*mistake_};
    return std::move(text_);
  }

 private:
  void say(std::string what) {
    if (!mistake_) mistake_ = {line_, std::move(what)};
  }

  void read_line(const std::string& line) {
    const Words words = words_of(line);
    if (words.empty()) return;
    if (words[0] == "flow" || words[0] == "step") return read_step(line, words);
    if (words[0] == "engine") return read_engine(line.substr(line.find("engine") + 6));
    if (words[0] == "expect") return read_expectations(line.substr(line.find("expect") + 6), std::nullopt);
    if (words[0] != "at")
      return say("a line begins with flow, step, engine, at or expect, not with \"" + words[0] + '"');
    if (words.size() < 3) return say("write what happens: at 1.5s crash");
    const auto when = read_time(words[1]);
    if (!when) return say('"' + words[1] + "\" is not a time: write 1.5s or 2m");
    if (words[2] == "expect") return read_expectations(line.substr(line.find("expect") + 6), when);
    text_.commands.push_back({line_, *when, {words.begin() + 2, words.end()}});
  }

  void read_expectations(const std::string& rest, std::optional<Time> when) {
    for (Words& words : clauses_of(rest)) text_.expectations.push_back({line_, when, std::move(words)});
  }

  Time time(const Words& clause, std::size_t index) {
    const auto found = index < clause.size() ? read_time(clause[index]) : std::nullopt;
    if (!found) say('"' + clause[0] + "\" needs a time, such as 1.5s");
    return found.value_or(0);
  }

  std::uint32_t number(const Words& clause, std::size_t index) {
    std::uint32_t value = 0;
    if (index < clause.size()) {
      const std::string& word = clause[index];
      const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (bad == std::errc{} && end == word.data() + word.size()) return value;
    }
    say('"' + clause[0] + "\" needs a whole number");
    return 0;
  }

  std::string word(const Words& clause, std::size_t index) {
    if (index < clause.size()) return clause[index];
    say('"' + clause[0] + "\" needs another word");
    return {};
  }

  FailureClass failure_class(const Words& clause, std::size_t index) {
    const auto found = failure_class_named(word(clause, index));
    if (!found)
      say("a failure class is one of transient, deterministic, budget_exhausted, contract_failure, test_failure");
    return found.value_or(FailureClass::transient);
  }

  void read_engine(const std::string& rest) {
    for (const Words& clause : clauses_of(rest)) {
      if (clause[0] == "park_after") {
        text_.settings.park_after = Duration{time(clause, 1)};
      } else if (clause[0] == "memory") {
        text_.settings.memory = number(clause, 1);
      } else if (clause[0] == "journal_max") {
        text_.settings.journal_max = number(clause, 1);
      } else {
        say("an engine has park_after, memory and journal_max, not \"" + clause[0] + '"');
      }
    }
  }

  // flow NAME: DOES ; CLAUSE ...   |   flow NAME   and then   step NAME: DOES ; CLAUSE ...
  void read_step(const std::string& line, const Words& words) {
    const std::size_t colon = line.find(':');
    const Words names = words_of(line.substr(0, colon));
    if (names.size() != 2) return say("a " + words[0] + " has one name, and a colon after it");
    if (words[0] == "flow") {
      text_.program.flows.push_back({.name = names[1], .steps = {}});
      if (colon == std::string::npos) return;
    } else if (text_.program.flows.empty() || colon == std::string::npos) {
      return say("write flow NAME first, then step NAME: what it does");
    }
    FlowStep step{.name = names[1]};
    Part part;
    const auto clauses = clauses_of(line.substr(colon + 1));
    if (clauses.empty())
      return say("what does it do? ok, flaky 2 transient, fails deterministic, hangs, wait 5s or signal go");
    read_verb(clauses[0], step, part);
    for (const Words& clause : clauses | std::views::drop(1)) read_clause(clause, step, part);
    if (!step.wait && step.signal.empty()) {
      step.handler = text_.program.flows.back().name + "." + step.name;
      text_.program.handlers.push_back({step.handler, {}});
      text_.parts.push_back(std::move(part));
    }
    text_.program.flows.back().steps.push_back(std::move(step));
  }

  void read_verb(const Words& clause, FlowStep& step, Part& part) {
    if (clause[0] == "ok") {
      if (clause.size() > 1) part.output = clause[1];
    } else if (clause[0] == "flaky") {
      part.what = Part::What::flaky;
      part.failures = number(clause, 1);
      part.failure = {.type = "RuntimeError", .message = "not this time", .failure_class = failure_class(clause, 2)};
    } else if (clause[0] == "fails") {
      part.what = Part::What::fails;
      part.failure = {.type = "RuntimeError", .message = "never", .failure_class = failure_class(clause, 1)};
    } else if (clause[0] == "hangs") {
      part.what = Part::What::hangs;
    } else if (clause[0] == "wait") {
      step.wait = Duration{time(clause, 1)};
    } else if (clause[0] == "signal") {
      step.signal = word(clause, 1);
    } else {
      say("a step is ok, flaky, fails, hangs, wait or signal, not \"" + clause[0] + '"');
    }
  }

  void read_clause(const Words& clause, FlowStep& step, Part& part) {
    const std::string& what = clause[0];
    const auto retry = [&]() -> Policy& {
      if (!step.retry) step.retry = policy::standard;
      return *step.retry;
    };
    if (what == "retry") {
      const Policy* const named = policy::named(word(clause, 1));
      if (named == nullptr) return say("a policy is none, standard, aggressive or patient");
      step.retry = *named;
    } else if (what == "attempts") {
      retry().max_attempts = number(clause, 1);
    } else if (what == "delay") {
      retry().backoff = Backoff::constant;
      retry().initial = Duration{time(clause, 1)};
      retry().max.reset();
      retry().jitter = Jitter::none;
    } else if (what == "max_elapsed") {
      retry().max_elapsed = Duration{time(clause, 1)};
    } else if (what == "timeout") {
      step.timeout = Duration{time(clause, 1)};
    } else if (what == "takes") {
      part.takes = time(clause, 1);
    } else if (what == "twice") {
      part.again = time(clause, 1);
    } else if (what == "needs") {
      step.needs.insert(step.needs.end(), clause.begin() + 1, clause.end());
    } else if (what == "breaker") {
      step.circuit_breaker = CircuitBreakerRule{.limit = number(clause, 1), .tracked = {failure_class(clause, 2)}};
    } else if (what == "on_failure") {
      read_on_failure(clause, step);
    } else {
      say("a step has retry, attempts, delay, max_elapsed, timeout, takes, twice, needs, breaker, on_failure, not \"" +
          what + '"');
    }
  }

  void read_on_failure(const Words& clause, FlowStep& step) {
    const std::string rule = word(clause, 1);
    if (rule == "proceed") {
      step.on_failure = OnFailure::proceed;
    } else if (rule == "skip") {
      step.on_failure = OnFailure::skip;
    } else if (rule == "dead_letter") {
      step.on_failure = OnFailure::dead_letter;
    } else if (rule == "revisit") {
      step.on_failure = OnFailure::revisit;
      step.revisit = word(clause, 2);
    } else if (rule != "fail") {
      say("on_failure is fail, proceed, skip, dead_letter or revisit STEP");
    }
  }

  std::size_t line_ = 0;
  std::optional<ScenarioMistake> mistake_;
  ScenarioText text_;
};

}  // namespace

std::optional<Time> read_time(std::string_view text) {
  const auto duration = text::parse_duration(text, text::DurationGrammar::native);
  return duration ? std::optional<Time>{duration->count()} : std::nullopt;
}

std::expected<ScenarioText, ScenarioMistake> read_scenario(std::string_view text) { return Reader{}.read(text); }

}  // namespace reprise::sim
