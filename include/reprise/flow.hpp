// Flows: steps that need each other, run by the engine (reprise/engine.hpp).
//
//   engine.flow({.name = "nightly",
//                .steps = {{.name = "list", .handler = "list"},
//                          {.name = "fetch", .handler = "fetch", .needs = {"list"}, .for_each = "list"}}});
//
// Thread safety: plain values. Not supported here: documents; the `reprise` command reads those.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/env.hpp>
#include <reprise/failure.hpp>
#include <reprise/policy.hpp>

namespace reprise {

enum class OnFailure : std::uint8_t {
  fail,         // the run fails
  proceed,      // the steps that need this one run all the same
  skip,         // they are skipped, and the run can still succeed
  dead_letter,  // a failed item is kept for later: retry_failed() tries it again; more of them than `tolerate` fail the run
  revisit,      // go back to the step `revisit` names
};

struct CircuitBreakerRule {  // the same failure this often in one run stops the step
  std::uint32_t limit = 3;
  std::vector<FailureClass> tracked = {FailureClass::deterministic, FailureClass::contract_failure,
                                       FailureClass::test_failure};
};

// Exactly one of `handler`, `wait` and `signal` says what the step does.
struct FlowStep {
  std::string name = {};
  std::string handler = {};
  std::vector<std::string> needs = {};  // it starts when all of these are done
  std::optional<Duration> wait = {};
  std::string signal = {};         // waits until engine.signal() brings this; its payload is the step's output
  std::string for_each = {};       // a step it needs, whose output was made by encode_list(): one item for each element
  std::uint32_t max_parallel = 0;  // items at a time; 0 = no limit
  // So many failed items do not fail the step. Unless it is said: none, or with dead_letter any number.
  std::optional<std::uint32_t> tolerate = {};
  std::optional<Policy> retry = {};
  std::optional<Duration> timeout = {};  // of each attempt; for a signal: how long to wait for it
  OnFailure on_failure = OnFailure::fail;
  std::string revisit = {};
  std::uint32_t max_visits = 10;
  std::optional<CircuitBreakerRule> circuit_breaker = {};
};

struct Flow {
  std::string name = {};
  std::vector<FlowStep> steps = {};
  std::optional<Policy> retry = {};       // for every step that says nothing
  std::optional<Duration> deadline = {};  // of the run, from its creation
  std::uint32_t max_parallel = 0;         // attempts of one run at a time; 0 = no limit
};

// A list as one payload: what a step returns for `for_each`, and how a reader takes it apart.
std::string encode_list(std::span<const std::string> elements);
std::optional<std::vector<std::string>> decode_list(std::string_view list);

}  // namespace reprise
