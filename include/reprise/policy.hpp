// A retry policy as a value, and decide(), the only question this project exists for: work has failed, what now?
//
//   reprise::Policy policy = reprise::policy::standard;   // 3 attempts, 1s 2s, full jitter
//   policy.max_attempts = 5;
//   policy.max_elapsed = std::chrono::minutes{15};
//   reprise::Random random{42};
//   reprise::Decision next = reprise::decide(policy, {.attempt = 1}, {.type = "TimeoutError"}, random);
//   // next.retry == true, next.delay somewhere in [0s, 1s]
//
// Everything here is pure: no clock, no I/O, no allocation on the decision path. The library, the engine, the simulator and
// `reprise policy schedule` all call the same code, so they cannot disagree.
// Thread safety: values; const access from many threads is fine.
// Not supported: telling that a Policy built in C++ makes no sense. Numbers out of range count as the nearest sensible one (negative
// durations as 0, a factor below 1 as 1, a ratio outside 0..1 as its nearest end). read_policy() of reprise/dialect.hpp does tell.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/failure.hpp>
#include <reprise/random.hpp>

namespace reprise {

enum class Backoff : std::uint8_t { constant, linear, exponential, fibonacci, list, decorrelated };
enum class Jitter : std::uint8_t { none, full, equal, ratio };
enum class Matching : std::uint8_t { tree, exact };
// `submission`: as creation, but a task's delay counts too (Azolla). The numbers are stored.
enum class ElapsedFrom : std::uint8_t { creation, first_start, submission };

std::string_view name_of(Backoff backoff) noexcept;
std::string_view name_of(Jitter jitter) noexcept;
std::string_view name_of(Matching matching) noexcept;

// The is-a relation between error type names. Unknown types are children of Exception.
class TypeTree {
 public:
  // `parent` should be known already (built-in or added); an unknown one counts as a child of Exception.
  void add(std::string type, std::string parent);

  // Is `type` the same as `ancestor` or below it? A dotted name counts by its last part ("asyncio.TimeoutError").
  bool is_a(std::string_view type, std::string_view ancestor) const noexcept;

  // Those that were added, each with its parent, in that order.
  std::vector<std::pair<std::string, std::string>> added() const;

  // One step up; Exception is its own parent.
  std::string_view parent_of(std::string_view type) const noexcept;

  // The types every tree starts with, and nothing added.
  static const TypeTree& builtin() noexcept;

 private:
  struct Entry {
    std::string type;
    std::string parent;
  };
  std::vector<Entry> added_;
};

// A pattern over failure messages. Reprise::text brings RE2 ones; a C++ user may bring their own. Of a very long message only the
// beginning and the end are shown to it.
class MessagePattern {
 public:
  MessagePattern() = default;
  MessagePattern(const MessagePattern&) = delete;
  MessagePattern& operator=(const MessagePattern&) = delete;
  virtual ~MessagePattern() = default;
  virtual bool matches(std::string_view message) const noexcept = 0;
};

// Prodigy's words for what to retry; each looks at kind, type and status first and at the words of the message last.
enum class ErrorCategory : std::uint8_t { network, timeout, server_error, rate_limit };
std::string_view name_of(ErrorCategory category) noexcept;

// One entry of only_on or never_on. Build it with the functions below; equality is equality of the written form.
struct FailureRule {
  enum class What : std::uint8_t { failure_class, kind, type, exit_code, signal, http_status, message, category };

  What what = What::type;
  std::string text = {};  // as a person writes it: transient, TimeoutError, exit:64-74, http:5xx, signal:KILL, /reset/
  int low = 0;            // exit_code, http_status: the range. signal: its number. class, kind, category: its value
  int high = 0;
  std::shared_ptr<const MessagePattern> pattern = {};  // message only

  static FailureRule of(FailureClass failure_class);
  static FailureRule of(FailureKind kind);
  static FailureRule of(ErrorCategory category);
  static FailureRule of_type(std::string type);
  static FailureRule of_exit(int low, int high);
  static FailureRule of_exit(int code) { return of_exit(code, code); }
  static FailureRule of_http(int status);
  static FailureRule of_http_family(int hundreds);  // 5 -> http:5xx
  static FailureRule of_signal(int number);
  // `text` is the pattern between slashes: /connection reset/
  static FailureRule of_message(std::string text, std::shared_ptr<const MessagePattern> pattern);

  bool operator==(const FailureRule& other) const noexcept { return what == other.what && text == other.text; }
};

using FailureRules = std::vector<FailureRule>;

inline constexpr std::uint32_t worker_lost_default = 3;

struct Policy {
  // When to stop.
  std::optional<std::uint64_t> max_attempts = 3;           // total runs, the first included; nullopt = no cap
  std::optional<Duration> max_elapsed = std::nullopt;      // since `elapsed_from`; nullopt = no limit
  ElapsedFrom elapsed_from = ElapsedFrom::creation;        // rh-agents: the first start; Azolla: the task's submission
  std::optional<Duration> attempt_timeout = std::nullopt;  // each attempt; nullopt = none
  std::optional<Duration> retry_budget = std::nullopt;     // sum of all waits; nullopt = no limit
  // Losses in a row that are made again; 0 = the first one stops the work. nullopt = worker_lost_default.
  std::optional<std::uint32_t> worker_lost_max = std::nullopt;

  // How long to wait.
  Backoff backoff = Backoff::exponential;
  Duration initial = std::chrono::seconds{1};
  std::optional<Duration> increment = std::nullopt;        // linear only; nullopt = initial
  double factor = 2.0;                                     // exponential only, finite and >= 1
  std::vector<Duration> delays = {};                       // list only; past its end: max
  std::optional<Duration> max = std::chrono::seconds{30};  // cap before jitter; nullopt = none
  Jitter jitter = Jitter::full;
  double jitter_ratio = 0.25;  // ratio only, 0..1
  bool honor_retry_after = true;

  // What to retry.
  std::optional<FailureRules> only_on = std::nullopt;  // empty list = retry on nothing
  std::optional<FailureRules> never_on = std::nullopt;
  Matching match = Matching::tree;  // exact: type names are compared letter by letter (Azolla)
  bool stops_on_class = true;       // a class that is not retryable stops the work, unless only_on names it
  bool needs_verdict = false;       // only the handler's own word counts (Argyll)
  const TypeTree* types = nullptr;  // not owned; nullptr = TypeTree::builtin()

  std::uint32_t parallelism = 1;  // work items at a time (Argyll carries it here)

  bool operator==(const Policy& other) const;
};

// The named bases, and what an actor type gets when nobody says anything.
namespace policy {
inline constinit const Policy standard{};
inline constinit const Policy none{.max_attempts = 1};
inline constinit const Policy aggressive{.max_attempts = 5, .initial = std::chrono::milliseconds{200}};
inline constinit const Policy patient{
    .max_attempts = 3, .initial = std::chrono::seconds{5}, .factor = 3.0, .max = std::chrono::seconds{90}};
inline constinit const Policy tool{.jitter = Jitter::ratio};
inline constinit const Policy llm{.jitter = Jitter::ratio};
inline constinit const Policy agent{.max_attempts = 1};

const Policy* named(std::string_view name) noexcept;  // none, standard, aggressive, patient; nullptr otherwise
}  // namespace policy

// What ended an attempt. Only what is the work's own failure is judged by the work's own rules: its lists, classes and verdicts, the
// breaker and the number of attempts.
enum class AttemptEnd : std::uint8_t {
  failed,       // by itself
  timed_out,    // its time was over, or it showed no sign of life: a failure, too
  lost,         // the engine or the worker died while it ran
  interrupted,  // a person, a signal, the run's deadline or a stop of the engine ended it
  deadline,     // the limit of its work item (max_elapsed and its like) ended it
};

// What happens when the same work is done twice. `at_most_once`: it must not be, so work whose end is unclear is kept for a person.
enum class Effect : std::uint8_t { keyed, idempotent, at_most_once };
std::string_view name_of(Effect effect) noexcept;
std::optional<Effect> effect_named(std::string_view name) noexcept;

// What is known when an attempt has just ended without success.
struct History {
  std::uint64_t attempt = 1;   // used attempts, this one included unless it was lost or interrupted: those are not used
  Duration elapsed{0};         // since the work was created, or as the policy's `elapsed_from` says
  Duration waited{0};          // sum of the waits so far
  Duration previous_delay{0};  // the wait before this attempt; 0 = there was none
  bool canceled = false;       // the run was cancelled or interrupted
  bool circuit_open = false;   // a breaker refuses this failure
  // only_on and never_on are not asked: a failed check under rh-agents, whose lists name exceptions.
  bool skips_lists = false;
  AttemptEnd end = AttemptEnd::failed;
  std::uint32_t lost_in_a_row = 1;  // lost: this one included
  Effect effect = Effect::keyed;
};

enum class StopReason : std::uint8_t {
  none,  // not stopped: retry
  canceled,
  permanent,
  not_listed,
  no_verdict,
  circuit_open,
  attempts,
  deadline,
  budget,
  max_visits,  // the engine only: the step was visited too often
  lost,        // too many losses in a row
  unclear,     // nobody knows whether the work was done, and it must not be done twice
};
inline constexpr StopReason last_stop_reason = StopReason::unclear;
std::string_view name_of(StopReason reason) noexcept;

struct DelayRange {
  Duration nominal{0};  // before jitter; for decorrelated the middle of the range
  Duration min{0};
  Duration max{0};

  bool operator==(const DelayRange&) const = default;
};

// The answer, with what is needed to explain it later: the rule that applied, the range and the draw.
struct Decision {
  bool retry = false;
  StopReason reason = StopReason::none;
  Duration delay{0};       // the draw; 0 when stopped before a delay was drawn
  DelayRange range{};      // where the draw came from
  std::int32_t rule = -1;  // index into never_on (permanent) or only_on (retry) of what matched; -1 = none
  FailureClass failure_class = FailureClass::transient;  // as judged: the handler's word or the classifier's
  bool floored = false;                                  // retry_after lifted the delay

  bool operator==(const Decision&) const = default;
};

// The range of the delay before retry k (k = 1 follows the first failure). Saturates; never negative; any k is fine.
// `previous` is the delay used before, which only `decorrelated` looks at.
DelayRange delay_range(const Policy& policy, std::uint64_t retry, Duration previous = Duration{0}) noexcept;

// The rules in their order; the first that applies gives the reason. What was lost or interrupted is made again without being judged.
Decision decide(const Policy& policy, const History& history, const Failure& failure, Random& random);

// What happens if every attempt fails at once with something retryable; deadlines are judged by nominal delays.
struct Schedule {
  std::vector<DelayRange> retries;
  StopReason stop = StopReason::none;  // none: not stopped within `failures` failures
  std::uint64_t after_attempt = 0;
};
Schedule schedule(const Policy& policy, std::uint64_t failures);

// Does one rule match a failure that was judged to be of this class and kind?
bool matches(const FailureRule& rule, const Policy& policy, const Failure& failure, FailureClass failure_class,
             FailureKind kind);

// Which policy applies: the most specific level that says anything, whole, no merging.
enum class PolicyLevel : std::uint8_t { work_item, step, actor_type, run, built_in };
std::string_view name_of(PolicyLevel level) noexcept;

struct PolicyLevels {  // nullptr = this level says nothing
  const Policy* work_item = nullptr;
  const Policy* step = nullptr;
  const Policy* actor_type = nullptr;
  const Policy* run = nullptr;
};
struct ResolvedPolicy {
  const Policy* policy;  // one of the levels, or a built-in
  PolicyLevel level;
};
// Actor types have more than one name: tool_call, llm_call and agent_call (rh-agents), and every spelling in capitals, are tool, llm and
// agent. Any other word is a type of its own, and comes back as it is.
std::string_view actor_type_of(std::string_view word) noexcept;

// `actor_type` chooses the built-in: tool, llm, agent; any other type gets `standard`.
ResolvedPolicy resolve(const PolicyLevels& levels, std::string_view actor_type) noexcept;

}  // namespace reprise
