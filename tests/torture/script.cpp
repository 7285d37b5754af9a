#include "torture/script.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>

#include <reprise/random.hpp>

namespace reprise::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t padding = 3'500;       // for some, so that the journal grows until it is cut
constexpr std::size_t large_input = 20'000;  // more than a payload that stands in its event may have
constexpr std::array<std::string_view, 13> names{"quick",   "flaky",    "limited", "doomed",   "refused",
                                                 "delayed", "large",    "items",   "sequence", "waiting",
                                                 "map",     "approval", "canceled"};

Random random_of(std::uint64_t number, std::string_view step, std::uint64_t item) {
  std::uint64_t seed = number * 1'000'003 + item * 101;
  for (const char letter : step) seed = seed * 31 + static_cast<unsigned char>(letter);
  Random random{seed};
  random.next();
  return random;
}

bool is_flow(Kind kind) { return kind >= Kind::sequence; }

Policy brisk(std::optional<std::uint64_t> attempts) {
  return {.max_attempts = attempts, .worker_lost_max = 1'000, .initial = 4ms, .max = 60ms, .jitter = Jitter::equal};
}

// "17", "17 and much more", "17/3": the number of the run comes first.
std::uint64_t leading_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::uint32_t elements_of(std::uint64_t number) { return static_cast<std::uint32_t>(number % 7); }

// What comes from elsewhere is taken from there, so that a wrong input or output shows.
std::string answer(Work& work, std::uint64_t number) {
  const std::string_view step = work.step();
  if (step == "each" || step == "items") return std::string{work.input()} + " done";
  if (step == "sum") {
    const auto parts = decode_list(work.output_of("each"));
    std::string sum;
    for (const std::string& part : parts.value_or(std::vector<std::string>{"not a list"})) sum += part + ";";
    return sum;
  }
  if (step == "two") return std::string{work.output_of("one")} + ">two";
  if (step == "three") return std::string{work.output_of("two")} + ">three";
  if (step == "four") return std::string{work.output_of("three")} + ">four";
  if (step == "approved") return std::string{work.output_of("approval")};
  return output_of(number, step, work.item());
}

}  // namespace

std::string_view name_of(Kind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

Kind kind_of(std::uint64_t number) {
  constexpr std::array<unsigned, names.size()> shares{22, 16, 8, 4, 4, 8, 4, 6, 10, 8, 6, 2, 2};  // of a hundred
  auto draw = static_cast<unsigned>(random_of(number, "kind", 0).between(0, 99));
  for (std::size_t kind = 0; kind < shares.size(); ++kind) {
    if (draw < shares[kind]) return static_cast<Kind>(kind);
    draw -= shares[kind];
  }
  return Kind::quick;
}

Task task_of(std::uint64_t number) {
  const Kind kind = kind_of(number);
  Task task{.input = std::to_string(number), .key = std::to_string(number)};
  (is_flow(kind) ? task.flow : task.handler) = name_of(kind);
  if (kind == Kind::large) task.input += std::string(large_input, ' ');
  if (kind != Kind::large && number % 2 == 0) task.input += std::string(padding, ' ');
  if (kind == Kind::delayed) task.delay = std::chrono::milliseconds{random_of(number, "delay", 0).between(1, 120)};
  if (kind == Kind::items) {
    task.input.clear();
    for (std::uint32_t item = 0; item < items_of(number, "items"); ++item) {
      task.items.push_back(std::to_string(number) + "/" + std::to_string(item));
    }
  }
  task.priority = static_cast<std::uint8_t>(number % 10);
  return task;
}

std::optional<std::uint64_t> number_of_key(std::string_view key) {
  std::uint64_t number = 0;
  const auto [end, mistake] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (mistake != std::errc{} || end != key.data() + key.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> max_attempts_of(Kind kind) {
  if (kind == Kind::limited) return 4;
  if (kind == Kind::doomed) return 3;
  return std::nullopt;
}

Duration wait_of() { return 25ms; }

std::vector<std::string> steps_of(Kind kind) {
  switch (kind) {
    case Kind::sequence:
      return {"one", "two", "three", "four"};
    case Kind::waiting:
      return {"before", "after"};
    case Kind::map:
      return {"list", "each", "sum"};
    case Kind::approval:
      return {"asked", "approved"};
    default:
      return {std::string{name_of(kind)}};
  }
}

std::uint32_t items_of(std::uint64_t number, std::string_view step) {
  if (step == "items") return 2 + static_cast<std::uint32_t>(number % 5);
  return step == "each" ? elements_of(number) : 1;
}

std::string output_of(std::uint64_t number, std::string_view step, std::uint32_t item) {
  const std::string name = std::to_string(number);
  const auto done = [&](std::uint32_t index) { return name + "/" + std::to_string(index) + " done"; };
  if (step == "large") return std::string(large_input / 2, static_cast<char>('a' + number % 26));
  if (step == "each" || step == "items") return done(item);
  if (step == "list") {
    std::vector<std::string> elements;
    for (std::uint32_t index = 0; index < elements_of(number); ++index)
      elements.push_back(name + "/" + std::to_string(index));
    return encode_list(elements);
  }
  if (step == "sum") {
    std::string sum;
    for (std::uint32_t index = 0; index < elements_of(number); ++index) sum += done(index) + ";";
    return sum;
  }
  if (step == "two") return name + ">two";
  if (step == "three") return name + ">two>three";
  if (step == "four") return name + ">two>three>four";
  if (step == "after") return name + " waited";
  if (step == "approved") return name + " approved";
  return name;
}

Behaviour behaviour_of(std::uint64_t number, std::string_view step, std::uint32_t item, std::uint64_t attempt) {
  Random random = random_of(number, step, item);
  Behaviour behaviour;
  // Most attempts take no time at all, some take as long as a kill is away.
  const std::int64_t draw = random.between(0, 9);
  behaviour.work = std::chrono::microseconds{draw < 5 ? 0 : random.between(50, draw < 9 ? 2'000 : 15'000)};
  std::uint64_t failures = 0;
  switch (kind_of(number)) {
    case Kind::quick:
    case Kind::delayed:
      break;
    case Kind::doomed:
      failures = UINT64_MAX;
      break;
    case Kind::refused:
      behaviour.verdict = Verdict::refuse;
      break;
    case Kind::flaky:
      failures = static_cast<std::uint64_t>(random.between(1, 4));
      break;
    case Kind::limited:
      failures = static_cast<std::uint64_t>(random.between(0, 2));
      break;
    default:
      failures = static_cast<std::uint64_t>(std::max<std::int64_t>(0, random.between(-3, 2)));
      break;
  }
  if (attempt <= failures) behaviour.verdict = Verdict::fail;
  return behaviour;
}

std::expected<void, Error> set_up(Engine& engine, Log& log) {
  const auto handler = [&log](Work& work) -> std::expected<std::string, Failure> {
    log.began(work);
    const std::uint64_t number = leading_number(work.input());
    const Behaviour behaviour = behaviour_of(number, work.step(), work.item(), work.attempt());
    if (behaviour.work.count() > 0) std::this_thread::sleep_for(behaviour.work);
    std::string output = answer(work, number);
    log.ended(work, behaviour.verdict);
    if (behaviour.verdict == Verdict::succeed) return output;
    if (behaviour.verdict == Verdict::refuse)
      return std::unexpected{Failure{.type = "ValueError", .message = "no", .permanent = true}};
    return std::unexpected{Failure{.type = "TimeoutError", .message = "not this time"}};
  };
  std::expected<void, Error> result;
  const auto attempt = [&](std::expected<void, Error> step) {
    if (result && !step) result = std::move(step);
  };
  for (const std::string_view name : names) {
    const auto kind = static_cast<Kind>(std::ranges::find(names, name) - names.begin());
    if (!is_flow(kind)) attempt(engine.handle(std::string{name}, handler, {.retry = brisk(max_attempts_of(kind))}));
  }
  attempt(engine.handle("step", handler, {.retry = brisk(std::nullopt)}));
  attempt(engine.flow({.name = "sequence",
                       .steps = {{.name = "one", .handler = "step"},
                                 {.name = "two", .handler = "step", .needs = {"one"}},
                                 {.name = "three", .handler = "step", .needs = {"two"}},
                                 {.name = "four", .handler = "step", .needs = {"three"}}}}));
  attempt(engine.flow({.name = "waiting",
                       .steps = {{.name = "before", .handler = "step"},
                                 {.name = "wait", .needs = {"before"}, .wait = wait_of()},
                                 {.name = "after", .handler = "step", .needs = {"wait"}}}}));
  attempt(engine.flow(
      {.name = "map",
       .steps = {{.name = "list", .handler = "step"},
                 {.name = "each", .handler = "step", .needs = {"list"}, .for_each = "list", .max_parallel = 2},
                 {.name = "sum", .handler = "step", .needs = {"each"}}}}));
  attempt(engine.flow({.name = "approval",
                       .steps = {{.name = "asked", .handler = "step"},
                                 {.name = "approval", .needs = {"asked"}, .signal = std::string{signal_name}},
                                 {.name = "approved", .handler = "step", .needs = {"approval"}}}}));
  attempt(engine.flow(
      {.name = "canceled",
       .steps = {{.name = "asked", .handler = "step"}, {.name = "hours", .needs = {"asked"}, .wait = 5h}}}));
  return result;
}

}  // namespace reprise::torture
