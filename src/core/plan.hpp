// What a run is going to do: its steps, what each needs, and the policy that was resolved for it. Immutable once made.
//
// A task is a plan with one step. Plans are stored once; runs refer to them by number, so a run keeps the plan it was submitted with.
// Thread safety: immutable, shared freely.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/dialect.hpp>
#include <reprise/error.hpp>
#include <reprise/flow.hpp>
#include <reprise/policy.hpp>

#include "event/history.hpp"
#include "event/record.hpp"

namespace reprise::core {

using event::Time;

struct ItemPolicies;  // item_policies.hpp

enum class StepKind : std::uint8_t { call, wait, signal };
enum class FallbackRule : std::uint8_t { none, budget_exhausted, gave_up };

// Which of its ways an item is being tried.
namespace stage {
inline constexpr std::uint8_t main = 0;
inline constexpr std::uint8_t fallback = 1;
inline constexpr std::uint8_t failure_handler = 2;
}  // namespace stage

// Which edition of the rules a run keeps to: the one it began with, whatever the engine does with new ones.
enum class Rules : std::uint8_t {
  all_ends_alike =
      1,  // those of 0.1.0: a lost or interrupted attempt is judged and counted like one that failed; failures are told apart by message
  own_failures =
      2,  // only the work's own failures are (docs/decisions/0018), and they are told apart by what failed (docs/decisions/0022)
  visits_go_on = 3,  // the numbers of attempts go on over the visits of a step, and each visit is work of its own (docs/decisions/0032)
};

// Of a map: after so many failed items in a row no further one begins until `open_for` is over; then at most `probes` at a time try
// whether it may, until so many have succeeded, or one fails and all begins again. failures 0 = none.
struct ItemBreaker {
  std::uint32_t failures = 0;
  std::uint32_t successes = 1;
  std::uint32_t probes = 1;
  std::int64_t open_for = 0;

  bool operator==(const ItemBreaker&) const = default;
};

// Of one command of a step's several: what its failures are judged by.
struct CommandPolicy {
  std::uint32_t command = 0;  // from 1
  std::uint32_t line = 0;     // of the document
  Policy policy = {};
};

struct StepPlan {
  std::shared_ptr<const std::string> name;  // shared with the jobs
  StepKind kind = StepKind::call;
  std::string handler = {};  // call: whose queue it goes to
  std::string signal = {};
  std::int64_t wait = 0;  // wait: how long. signal: how long at most, 0 = for ever
  std::vector<std::uint32_t> needs = {};
  std::vector<std::uint32_t> dependants = {};  // worked out
  bool for_each = false;
  std::uint32_t list_step = 0;     // for_each: whose output is the list
  std::uint32_t max_parallel = 0;  // 0 = no limit
  std::uint32_t tolerate = 0;
  std::uint32_t tolerate_millionths = 0;  // of its items; the larger of both counts
  OnFailure on_failure = OnFailure::fail;
  std::uint32_t revisit = 0;
  std::uint32_t max_visits = 10;
  std::uint32_t breaker_limit = 0;   // 0 = no breaker
  std::uint8_t breaker_classes = 0;  // bit n: FailureClass n is counted
  PolicyLevel level = PolicyLevel::built_in;
  Policy policy = {};
  Effect effect = Effect::keyed;
  ItemBreaker item_breaker = {};
  std::vector<CommandPolicy> command_policies = {};  // commands rising
  bool runs_again = false;     // when something that it needs is tried again with success, after it has begun
  bool needs_success = false;  // as a map whose `tolerate` counts no items: one must succeed, if there are any

  std::shared_ptr<const ItemPolicies> item_policies = {};  // only in own_plan(): what its items have brought along

  // For those who are told about it.
  std::string actor_type = {};        // tool, llm, agent, or a user's own; empty = nobody recorded it
  Dialect dialect = Dialect::native;  // in whose words the policy was written
  std::uint32_t policy_line = 0;      // of the document; 0 = it does not stand in one
  bool switched_off = false;          // retries are: `enabled: false`, or an agent of rh-agents that nobody configured

  // For steps of documents.
  bool prepares = false;  // the executor is asked before it begins: its condition, its items, its precondition
  FallbackRule fallback = FallbackRule::none;
  bool handles_failure = false;           // what has given up for good is handed to its own handler, once
  bool runs_finally = false;              // after all others, whatever became of them
  bool is_goal = false;                   // its failure fails the run, whatever on_failure says
  Time wait_until = 0;                    // wait: not before this time; 0 = `wait` counts from its beginning
  std::vector<std::uint32_t> reads = {};  // steps whose results its attempts are given

  bool fails_run() const noexcept;  // when it has failed
  // nullptr: it has none of its own.
  const CommandPolicy* policy_of_command(std::uint32_t command) const noexcept;
};

// The step as one of its items has it: with the policy that the item brought along, if it did.
StepPlan step_of_item(const StepPlan& step, std::uint32_t item);
// The step as one of its commands has it, which has a policy of its own.
StepPlan step_of_command(const StepPlan& step, std::uint32_t command);

struct Plan {
  std::string name;  // of the handler or flow
  std::vector<StepPlan> steps;
  std::int64_t deadline = 0;        // of the run; 0 = none
  std::uint32_t max_parallel = 0;   // 0 = no limit
  std::uint32_t finally_steps = 0;  // worked out
  Rules rules = Rules::visits_go_on;
  bool is_document = false;  // its attempts are given the run's input, which holds the document
  bool is_function = false;  // its only step is a durable function, whose operations are added while the run lives
  std::vector<std::pair<std::string, std::string>> types = {};  // error types of its own, each with its parent
  std::shared_ptr<const TypeTree> type_tree = {};               // made of them; what the policies refer to

  bool has_first_rules() const noexcept { return rules == Rules::all_ends_alike; }

  void connect();      // works out what is to be worked out
  void adopt_types();  // makes the tree, and has the policies use it
};

// How the steps are called where events are told.
std::vector<event::StepLabel> step_labels(const Plan& plan);

// What compiles the pattern of a /regex/ rule; std::nullptr when it cannot.
using PatternCompiler = std::function<std::shared_ptr<const MessagePattern>(std::string_view)>;

// The stored form: equal plans give equal bytes. Reading a newer form is refused; unreadable bytes are `store_damaged`.
std::string encode_plan(const Plan& plan);
std::expected<Plan, Error> decode_plan(std::string_view bytes, const PatternCompiler& compile, const TypeTree* types);
// A policy alone, as plans have it.
std::string encode_policy(const Policy& policy);
std::optional<Policy> decode_policy(std::string_view bytes, const PatternCompiler& compile, const TypeTree* types);

}  // namespace reprise::core
