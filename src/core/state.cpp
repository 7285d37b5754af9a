// A run's state as bytes and back, and what can be said about it from outside.
#include "core/state.hpp"

#include <algorithm>
#include <functional>

#include "event/codec.hpp"

namespace reprise::core {

using event::ByteReader;
using event::put_byte;
using event::put_bytes;
using event::put_signed;
using event::put_varint;

namespace {

constexpr std::uint8_t state_version = 3;  // 1: without losses and interruptions. 2: without steps' extras

namespace run_flag {
constexpr unsigned cancel_requested = 1U << 0U;
constexpr unsigned extra = 1U << 1U;
constexpr unsigned facts = 1U << 2U;
constexpr unsigned outside = 1U << 3U;
constexpr unsigned item_policies = 1U << 6U;
constexpr unsigned callback = 1U << 4U;
constexpr unsigned step_extras = 1U << 7U;
constexpr unsigned function = 1U << 5U;
}  // namespace run_flag
namespace step_flag {
constexpr unsigned map = 1U << 0U;
constexpr unsigned excused = 1U << 1U;
constexpr unsigned circuit_open = 1U << 2U;
}  // namespace step_flag
namespace item_flag {
constexpr unsigned dead_letter = 1U << 0U;
constexpr unsigned trouble = 1U << 1U;
constexpr unsigned output = 1U << 2U;
constexpr unsigned stage = 1U << 3U;
}  // namespace item_flag

// Times are stored as their distance from a base, and no time as 0. Distances wrap around, so that damaged ones are harmless.
void put_time(std::string& out, Time time, Time base) {
  const std::uint64_t distance = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(base) + 1;
  put_signed(out, time == 0 ? 0 : static_cast<std::int64_t>(distance));
}

Time read_time(ByteReader& in, Time base) {
  const auto distance = static_cast<std::uint64_t>(in.signed_varint());
  return distance == 0 ? 0 : static_cast<Time>(static_cast<std::uint64_t>(base) + distance - 1);
}

void put_item(std::string& out, const Item& item, Time base) {
  unsigned flags = 0;
  if (item.dead_letter) flags |= item_flag::dead_letter;
  if (item.trouble != nullptr) flags |= item_flag::trouble;
  if (item.output != nullptr) flags |= item_flag::output;
  if (item.stage != stage::main) flags |= item_flag::stage;
  put_byte(out, flags << 4U | static_cast<unsigned>(item.status));
  if (item.status == ItemStatus::untouched) return;
  put_varint(out, item.attempt);
  put_varint(out, item.token);
  put_time(out, item.due, base);
  put_time(out, item.first_started, base);
  if (item.trouble != nullptr) {
    event::put_failure(out, item.trouble->failure);
    put_signed(out, item.trouble->waited);
    put_signed(out, item.trouble->previous_delay);
    put_byte(out, static_cast<unsigned>(item.trouble->reason));
    put_byte(out, static_cast<unsigned>(item.trouble->cause));
    put_signed(out, item.trouble->wait);
    put_varint(out, item.trouble->lost);
    put_varint(out, item.trouble->interrupted);
    put_varint(out, item.trouble->earlier);
    put_varint(out, item.trouble->lost_in_a_row);
  }
  if (item.output != nullptr) event::put_payload(out, item.output->view());
  if (item.stage != stage::main) put_byte(out, item.stage);
}

StopReason read_reason(ByteReader& in) {
  return static_cast<StopReason>(std::min<unsigned>(in.byte(), static_cast<unsigned>(last_stop_reason)));
}

std::unique_ptr<Trouble> read_trouble(ByteReader& in, std::uint8_t version, std::uint32_t attempts) {
  using Cause = Trouble::Cause;
  auto trouble = std::make_unique<Trouble>();
  trouble->failure = event::read_failure(in);
  trouble->waited = in.signed_varint();
  trouble->previous_delay = in.signed_varint();
  trouble->reason = read_reason(in);
  if (version == 1) {
    trouble->cause = Cause::own;
    trouble->wait = trouble->previous_delay;
    return trouble;
  }
  trouble->cause = static_cast<Cause>(std::min<unsigned>(in.byte(), static_cast<unsigned>(Cause::own)));
  trouble->wait = in.signed_varint();
  trouble->lost = in.varint32();
  trouble->interrupted = in.varint32();
  trouble->earlier = in.varint32();
  trouble->lost_in_a_row = in.varint32();
  if (std::uint64_t{trouble->lost} + trouble->interrupted + trouble->earlier > attempts) in.fail();
  return trouble;
}

Item read_item(ByteReader& in, std::uint8_t version, Time base) {
  Item item;
  const unsigned head = in.byte();
  const unsigned flags = head >> 4U;
  if ((head & 15U) > static_cast<unsigned>(ItemStatus::reserved)) in.fail();
  item.status = static_cast<ItemStatus>(head & 15U);
  item.dead_letter = (flags & item_flag::dead_letter) != 0;
  if (item.status == ItemStatus::untouched || !in.ok()) return item;
  item.attempt = in.varint32();
  item.token = in.varint32();
  item.due = read_time(in, base);
  item.first_started = read_time(in, base);
  if ((flags & item_flag::trouble) != 0) item.trouble = read_trouble(in, version, item.attempt);
  if ((flags & item_flag::output) != 0) item.output = std::make_unique<Payload>(Payload::of(event::read_payload(in)));
  if ((flags & item_flag::stage) != 0) item.stage = std::min(in.byte(), stage::failure_handler);
  return item;
}

void put_step(std::string& out, const StepState& state, Time base) {
  const unsigned flags = (state.map != nullptr ? step_flag::map : 0U) | (state.excused > 0 ? step_flag::excused : 0U) |
                         (state.circuit_open ? step_flag::circuit_open : 0U);
  put_byte(out, flags << 4U | static_cast<unsigned>(state.status));
  if (state.excused > 0) put_varint(out, state.excused);
  put_varint(out, state.visits);
  put_varint(out, state.needs_left);
  put_time(out, state.activated, base);
  put_time(out, state.due, base);
  put_varint(out, state.next);
  if (state.map == nullptr) {
    if (state.next > 0) put_item(out, state.one, base);
    return;
  }
  put_varint(out, state.items);
  event::put_payload(out, state.map->list.view());
  put_varint(out, state.map->items.size());
  for (const Item& item : state.map->items) put_item(out, item, base);
}

// Running, succeeded … are counted again instead of being stored: they cannot disagree with the items.
void count_item(StepState& state, const Item& item) {
  state.running += item.status == ItemStatus::running || item.status == ItemStatus::outside ? 1 : 0;
  state.reserved += item.status == ItemStatus::reserved ? 1 : 0;
  state.succeeded += item.status == ItemStatus::succeeded ? 1 : 0;
  state.failed += item.status == ItemStatus::failed ? 1 : 0;
  state.canceled += item.status == ItemStatus::canceled ? 1 : 0;
}

void read_step(ByteReader& in, std::uint8_t version, StepState& state, Time base) {
  const unsigned head = in.byte();
  if ((head & 15U) > static_cast<unsigned>(StepStatus::unreachable)) in.fail();
  state.status = static_cast<StepStatus>(head & 15U);
  const unsigned flags = head >> 4U;
  if ((flags & step_flag::excused) != 0) state.excused = in.varint32();
  state.circuit_open = (flags & step_flag::circuit_open) != 0;
  state.visits = in.varint32();
  state.needs_left = in.varint32();
  state.activated = read_time(in, base);
  state.due = read_time(in, base);
  state.next = in.varint32();
  if ((flags & step_flag::map) == 0) {
    if (state.next > 1) in.fail();
    if (state.next > 0) state.one = read_item(in, version, base);
    count_item(state, state.one);
    if (state.excused > state.failed) in.fail();
    return;
  }
  state.map = std::make_unique<Map>();
  state.items = in.varint32();
  state.map->list = Payload::of(event::read_payload(in));
  const std::uint64_t touched = in.varint();
  if (touched > state.items || touched > in.rest().size() || state.next > state.items) in.fail();
  for (std::uint64_t index = 0; index < touched && in.ok(); ++index) {
    state.map->items.push_back(read_item(in, version, base));
    count_item(state, state.map->items.back());
    if (index < state.next && state.map->items.back().status == ItemStatus::untouched)
      state.map->returned.push_back(static_cast<std::uint32_t>(index));
  }
  std::ranges::reverse(state.map->returned);
  if (state.excused > state.failed) in.fail();
}

void put_extra(std::string& out, const Extra& extra) {
  put_varint(out, extra.breakers.size());
  for (const Extra::Count& count : extra.breakers) {
    put_varint(out, count.fingerprint);
    put_varint(out, count.step);
    put_varint(out, count.count);
  }
  put_varint(out, extra.signals.size());
  for (const Signal& signal : extra.signals) {
    put_bytes(out, signal.name);
    event::put_payload(out, signal.payload.view());
  }
}

std::unique_ptr<Extra> read_extra(ByteReader& in) {
  auto extra = std::make_unique<Extra>();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint64_t fingerprint = in.varint();
    const std::uint32_t step = in.varint32();
    extra->breakers.push_back({fingerprint, step, in.varint32()});
  }
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    std::string name{in.bytes()};
    extra->signals.push_back({std::move(name), Payload::of(event::read_payload(in))});
  }
  return extra;
}

namespace outside_flag {
constexpr unsigned returns = 1U << 0U;
constexpr unsigned reopens = 1U << 1U;
}  // namespace outside_flag

void put_outside(std::string& out, const Extra& extra) {
  put_varint(out, extra.outside.size());
  for (const auto& [place, outside] : extra.outside) {
    put_varint(out, place.first);
    put_varint(out, place.second);
    put_byte(out, (outside.returns ? outside_flag::returns : 0U) | (outside.reopens ? outside_flag::reopens : 0U));
    for (const std::uint8_t byte : outside.run.bytes) put_byte(out, byte);
  }
  put_varint(out, extra.overdue.size());
  for (const auto& [step, failure] : extra.overdue) {
    put_varint(out, step);
    event::put_failure(out, failure);
  }
}

void read_outside(ByteReader& in, Run& run) {
  if (run.extra == nullptr) run.extra = std::make_unique<Extra>();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint32_t step = in.varint32();
    const std::uint32_t index = in.varint32();
    const unsigned flags = in.byte();
    Outside outside{.returns = (flags & outside_flag::returns) != 0, .reopens = (flags & outside_flag::reopens) != 0};
    for (std::uint8_t& byte : outside.run.bytes) byte = in.byte();
    const Item* const item = step < run.step_count() ? run.steps[step].touched(index) : nullptr;
    if (item == nullptr || item->status != ItemStatus::outside) in.fail();
    run.extra->outside.emplace(Extra::Place{step, index}, outside);
  }
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint32_t step = in.varint32();
    run.extra->overdue.emplace(step, event::read_failure(in));
  }
}

void put_item_policies(std::string& out, const Extra& extra) {
  put_varint(out, extra.item_policies.size());
  for (const auto& [step, policies] : extra.item_policies) {
    put_varint(out, step);
    put_bytes(out, policies->bytes);
  }
}

void read_item_policies(ByteReader& in, FactsDecoder& facts, Run& run) {
  if (run.extra == nullptr) run.extra = std::make_unique<Extra>();
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint32_t step = in.varint32();
    auto read = core::read_item_policies(in.bytes(), facts, run.plan->plan->type_tree.get());
    if (read == nullptr || step >= run.step_count()) return in.fail();
    run.extra->item_policies.emplace(step, std::move(read));
  }
}

bool has_step_extras(const Run& run) {
  return run.extra != nullptr &&
         (!run.extra->attempts.empty() ||
          std::ranges::any_of(run.extra->steps, [](const auto& entry) { return entry.second != StepExtra{}; }));
}

void put_step_extras(std::string& out, const Extra& extra) {
  for (const auto& [step, own] : extra.steps) {
    if (own == StepExtra{}) continue;
    put_varint(out, step + 1U);
    put_varint(out, own.reruns);
    put_byte(out, static_cast<unsigned>(own.circuit) | (own.keeps_dependants ? 4U : 0U));
    put_varint(out, own.failures);
    put_varint(out, own.successes);
  }
  put_varint(out, 0);
  put_varint(out, extra.attempts.size());
  for (const auto& [step, attempts] : extra.attempts) {
    put_varint(out, step);
    put_varint(out, attempts.size());
    for (const std::uint32_t attempt : attempts) put_varint(out, attempt);
  }
}

void read_past_attempts(ByteReader& in, Run& run) {
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint32_t step = in.varint32();
    const std::uint64_t items = in.varint();
    if (step >= run.step_count() || items > in.rest().size()) return in.fail();
    std::vector<std::uint32_t>& attempts = run.extra->attempts[step];
    for (std::uint64_t item = 0; item < items && in.ok(); ++item) attempts.push_back(in.varint32());
  }
}

void read_step_extras(ByteReader& in, Run& run) {
  if (run.extra == nullptr) run.extra = std::make_unique<Extra>();
  while (const std::uint32_t step = in.varint32()) {
    StepExtra own{.reruns = in.varint32()};
    const unsigned bits = in.byte();
    own.keeps_dependants = (bits & 4U) != 0;
    if ((bits & 3U) > static_cast<unsigned>(StepExtra::Circuit::half_open)) in.fail();
    own.circuit = static_cast<StepExtra::Circuit>(bits & 3U);
    own.failures = in.varint32();
    own.successes = in.varint32();
    if (!in.ok() || step > run.step_count() || own.reruns > run.steps[step - 1].visits) return in.fail();
    run.extra->steps.emplace(step - 1, own);
  }
  read_past_attempts(in, run);
}

// Everything relies on it: each item that is outside has its place there.
bool is_outside_complete(const Run& run) {
  std::size_t items = 0;
  for (std::size_t step = 0; step < run.step_count(); ++step) {
    run.steps[step].for_each_item(
        [&](std::uint32_t, const Item& item) { items += item.status == ItemStatus::outside ? 1 : 0; });
  }
  return items == (run.extra != nullptr ? run.extra->outside.size() : 0);
}

namespace function_flag {
constexpr unsigned canceling = 1U << 0U;
constexpr unsigned published = 1U << 1U;
constexpr unsigned diverged = 1U << 2U;
constexpr unsigned loops = 1U << 3U;
}  // namespace function_flag
constexpr unsigned shielded_bit = 1U << 7U;  // beside an operation's kind

void put_operation(std::string& out, const Operation& operation, Time base) {
  put_byte(out, static_cast<unsigned>(operation.kind) | (operation.shielded ? shielded_bit : 0U));
  put_varint(out, operation.plan->number);
  put_bytes(out, operation.path);
  put_bytes(out, operation.name);
  put_bytes(out, operation.place);
  event::put_payload(out, operation.input.view());
  put_time(out, operation.due, base);
  put_time(out, operation.called, base);
  put_varint(out, operation.ended_at);
  if (operation.ended_at != 0) put_time(out, operation.ended, base);
  put_step(out, operation.state, base);
}

void put_function(std::string& out, const Run& run) {
  const FunctionState& function = *run.function;
  put_byte(out, (function.canceling ? function_flag::canceling : 0U) |
                    (function.published.size > 0 ? function_flag::published : 0U) |
                    (function.divergence.empty() ? 0U : function_flag::diverged) |
                    (function.loops.empty() ? 0U : function_flag::loops));
  if (function.published.size > 0) event::put_payload(out, function.published.view());
  if (!function.divergence.empty()) put_bytes(out, function.divergence);
  if (!function.loops.empty()) put_varint(out, function.loops.size());
  for (const auto& [path, turn] : function.loops) {
    put_bytes(out, path);
    put_varint(out, turn.turn);
    event::put_payload(out, turn.state.view());
  }
  put_varint(out, run.steps.added());
  for (std::size_t added = 0; added < run.steps.added(); ++added)
    put_operation(out, *run.operation(static_cast<std::uint32_t>(run.planned_steps() + added)), run.created);
}

void read_operation(ByteReader& in, std::uint8_t version, const PlanFinder& plans, Operation& operation, Time base) {
  const unsigned kind = in.byte();
  if ((kind & ~shielded_bit) > event::last_operation_kind) in.fail();
  operation.kind = static_cast<event::OperationKind>(kind & ~shielded_bit);
  operation.shielded = (kind & shielded_bit) != 0;
  operation.plan = plans(in.varint32());
  if (operation.plan == nullptr) return in.fail();
  operation.path = in.bytes();
  operation.name = in.bytes();
  operation.place = in.bytes();
  operation.input = Payload::of(event::read_payload(in));
  operation.due = read_time(in, base);
  operation.called = read_time(in, base);
  operation.ended_at = in.varint32();
  if (operation.ended_at != 0) operation.ended = read_time(in, base);
  read_step(in, version, operation.state, base);
  if (is_final(operation.state.status) != (operation.ended_at != 0)) in.fail();
}

void read_function(ByteReader& in, std::uint8_t version, const PlanFinder& plans, Run& run) {
  FunctionState& function = *run.function;
  const unsigned flags = in.byte();
  function.canceling = (flags & function_flag::canceling) != 0;
  if ((flags & function_flag::published) != 0) function.published = Payload::of(event::read_payload(in));
  if ((flags & function_flag::diverged) != 0) function.divergence = in.bytes();
  for (std::uint64_t left = (flags & function_flag::loops) != 0 ? in.varint() : 0; left > 0 && in.ok(); --left) {
    std::string path{in.bytes()};
    const std::uint32_t turn = in.varint32();
    function.loops.insert_or_assign(std::move(path), LoopTurn{turn, Payload::of(event::read_payload(in))});
  }
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    Operation operation;
    read_operation(in, version, plans, operation, run.created);
    if (in.ok()) run.steps.add() = std::move(operation);  // one without a plan would have no step
  }
  if (in.ok()) index_operations(run);
}

std::uint32_t count_open_steps(const Run& run) {
  std::uint32_t open = 0;
  for (std::size_t step = 0; step < run.step_count(); ++step) open += is_final(run.steps[step].status) ? 0 : 1;
  return open;
}

// Did this step's failure fail the run?
bool is_decisive(const Run& run, std::uint32_t step) {
  return run.steps[step].status == StepStatus::failed && run.step_plan(step).fails_run();
}

// The item that tells best how the run went: the first whose failure failed the run, else the last that was touched before the steps
// that run in any case.
const Item* decisive_item(const Run& run) {
  if (run.function != nullptr) return run.steps[0].touched(0);
  const Item* found = nullptr;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    const StepState& state = run.steps[step];
    for (std::uint32_t index = 0; index < state.next; ++index) {
      const Item* const item = state.touched(index);
      if (item == nullptr || item->status == ItemStatus::untouched || item->status == ItemStatus::reserved) continue;
      if (item->status == ItemStatus::failed && run.status == RunStatus::failed && is_decisive(run, step)) return item;
      if (!run.step_plan(step).runs_finally) found = item;
    }
  }
  return found;
}

}  // namespace

std::string_view name_of(StepStatus status) noexcept {
  constexpr std::string_view names[] = {"pending", "preparing", "active",     "succeeded",
                                        "failed",  "skipped",   "unreachable"};
  return names[static_cast<std::size_t>(status)];
}

void StepState::touch(std::uint32_t index) {
  next = std::max(next, index + 1);
  if (map != nullptr && !map->returned.empty()) std::erase(map->returned, index);
}

void StepState::return_item(std::uint32_t index) {
  item(index) = Item{};
  if (map == nullptr) {
    next = 0;
    return;
  }
  auto& returned = map->returned;
  returned.insert(std::ranges::lower_bound(returned, index, std::greater{}), index);
  while (!returned.empty() && returned.front() + 1 == next) {  // the last of them are as if they had never been begun
    returned.erase(returned.begin());
    --next;
  }
  if (map->items.size() > next) map->items.resize(next);
}

std::uint32_t Run::last_attempt(std::uint32_t step, std::uint32_t item) const {
  const Item* const found = steps[step].touched(item);
  const std::uint32_t now = found != nullptr ? found->attempt : 0;
  if (extra == nullptr) return now;
  const auto past = extra->attempts.find(step);
  return past != extra->attempts.end() && item < past->second.size() ? std::max(now, past->second[item]) : now;
}

void Run::reset() {
  std::string memory = std::move(events);
  memory.clear();
  *this = Run{};
  events = std::move(memory);
}

void encode_state(const Run& run, std::string& out) {
  const bool has_extra = run.extra != nullptr && !(run.extra->breakers.empty() && run.extra->signals.empty());
  const bool has_outside = run.extra != nullptr && !(run.extra->outside.empty() && run.extra->overdue.empty());
  const bool has_callback = run.extra != nullptr && !run.extra->callback.empty();
  put_byte(out, state_version);
  const bool has_item_policies = run.extra != nullptr && !run.extra->item_policies.empty();
  put_byte(out, (run.cancel_requested ? run_flag::cancel_requested : 0U) | (has_extra ? run_flag::extra : 0U) |
                    (run.facts != nullptr ? run_flag::facts : 0U) | (has_outside ? run_flag::outside : 0U) |
                    (has_item_policies ? run_flag::item_policies : 0U) | (has_callback ? run_flag::callback : 0U) |
                    (has_step_extras(run) ? run_flag::step_extras : 0U) |
                    (run.function != nullptr ? run_flag::function : 0U));
  put_varint(out, run.plan->number);
  put_signed(out, run.created);
  put_time(out, run.due, run.created);
  put_time(out, run.last_time, run.created);
  put_time(out, run.ended, run.created);
  put_time(out, run.paused_at, run.created);
  put_signed(out, run.paused_total);
  put_varint(out, run.sequence);
  put_byte(out, static_cast<unsigned>(run.status));
  put_byte(out, static_cast<unsigned>(run.reason));
  put_byte(out, run.priority);
  put_bytes(out, run.key);
  event::put_payload(out, run.input.view());
  for (std::size_t step = 0; step < run.planned_steps(); ++step) put_step(out, run.steps[step], run.created);
  if (run.function != nullptr) put_function(out, run);
  if (has_extra) put_extra(out, *run.extra);
  if (run.facts != nullptr) put_bytes(out, run.facts->bytes);
  if (has_outside) put_outside(out, *run.extra);
  if (has_item_policies) put_item_policies(out, *run.extra);
  if (has_callback) put_bytes(out, run.extra->callback);
  if (has_step_extras(run)) put_step_extras(out, *run.extra);
}

bool decode_state(std::string_view bytes, const PlanFinder& plans, FactsDecoder& facts, Run& run) {
  ByteReader in{bytes};
  const std::uint8_t version = in.byte();
  if (version == 0 || version > state_version) return false;
  const unsigned flags = in.byte();
  run.cancel_requested = (flags & run_flag::cancel_requested) != 0;
  run.plan = plans(in.varint32());
  if (run.plan == nullptr) return false;
  run.created = in.signed_varint();
  run.due = read_time(in, run.created);
  run.last_time = read_time(in, run.created);
  run.ended = read_time(in, run.created);
  run.paused_at = read_time(in, run.created);
  run.paused_total = in.signed_varint();
  run.sequence = in.varint32();
  run.status = static_cast<RunStatus>(std::min<unsigned>(in.byte(), static_cast<unsigned>(RunStatus::canceled)));
  run.reason = read_reason(in);
  run.priority = std::min<std::uint8_t>(in.byte(), 9);
  run.key = in.bytes();
  run.input = Payload::of(event::read_payload(in));
  run.steps.create(run.planned_steps());
  for (std::size_t step = 0; step < run.planned_steps() && in.ok(); ++step)
    read_step(in, version, run.steps[step], run.created);
  if (((flags & run_flag::function) != 0) != run.plan->plan->is_function) in.fail();
  if (run.plan->plan->is_function) run.function = std::make_unique<FunctionState>();
  if (run.function != nullptr && in.ok()) read_function(in, version, plans, run);
  if ((flags & run_flag::extra) != 0) run.extra = read_extra(in);
  if ((flags & run_flag::facts) != 0 && (run.facts = facts.read(in.bytes())) == nullptr) in.fail();
  if ((flags & run_flag::outside) != 0 && in.ok()) read_outside(in, run);
  if ((flags & run_flag::item_policies) != 0 && in.ok()) read_item_policies(in, facts, run);
  if ((flags & run_flag::callback) != 0 && in.ok()) {
    if (run.extra == nullptr) run.extra = std::make_unique<Extra>();
    run.extra->callback = in.bytes();
  }
  if ((flags & run_flag::step_extras) != 0 && in.ok()) read_step_extras(in, run);
  run.open_steps = count_open_steps(run);
  return in.ok() && is_outside_complete(run);
}

Time clock_start(const Run& run, std::uint32_t step, const Item* item, const Policy& policy) noexcept {
  const Time activated = run.steps[step].activated;
  if (item != nullptr && policy.elapsed_from == ElapsedFrom::first_start) return item->first_started;
  // A step that waited for nothing but the delay of its task was created with it.
  const bool was_delayed = run.due > 0 && activated <= later(run.due, run.paused_total);
  const bool from_submission = policy.elapsed_from == ElapsedFrom::submission && was_delayed;
  return from_submission ? later(run.created, run.paused_total) : activated;
}

std::shared_ptr<const Plan> own_plan(const Run& run) {
  const bool has_item_policies = run.extra != nullptr && !run.extra->item_policies.empty();
  if (run.facts == nullptr && !has_item_policies) return run.plan->plan;
  auto own = std::make_shared<Plan>(*run.plan->plan);
  if (has_item_policies) {
    for (const auto& [step, policies] : run.extra->item_policies) own->steps[step].item_policies = policies;
  }
  if (run.facts == nullptr) return own;
  own->deadline = run.deadline();
  if (run.facts->policy != nullptr) {
    for (StepPlan& step : own->steps) {
      step.policy = *run.facts->policy;
      step.level = PolicyLevel::work_item;
    }
  }
  return own;
}

RunOutcome outcome_of(const Run& run) {
  RunOutcome outcome{.status = run.status, .reason = run.reason};
  const Item* const item = decisive_item(run);
  if (item == nullptr) return outcome;
  outcome.attempts = item->attempt;
  const Payload* const output = output_of(run);
  if (output != nullptr && !output->hashed) outcome.output = output->bytes;
  if (item->trouble != nullptr && run.status != RunStatus::succeeded) {
    outcome.failure = item->trouble->failure;
    if (outcome.reason == StopReason::none && run.has_ended()) outcome.reason = item->trouble->reason;
  }
  return outcome;
}

const Payload* output_of(const Run& run) {
  if (run.status != RunStatus::succeeded) return nullptr;
  const Item* const item = decisive_item(run);
  return item != nullptr ? item->output.get() : nullptr;
}

std::size_t bytes_of(const Run& run) noexcept {
  constexpr std::size_t outside_bytes =
      sizeof(std::pair<Extra::Place, Outside>) + 5 * sizeof(void*);  // a node of its map
  std::size_t bytes =
      sizeof(Run) + 2 * sizeof(void*) + run.events.capacity() + run.input.bytes.capacity() + run.key.capacity();
  if (run.facts != nullptr) bytes += sizeof(RunFacts) + run.facts->bytes.capacity();
  if (run.extra != nullptr) {
    bytes += run.extra->outside.size() * outside_bytes;
    for (const auto& [step, attempts] : run.extra->attempts) bytes += attempts.capacity() * sizeof(std::uint32_t);
    for (const auto& [step, own] : run.extra->item_policies)
      bytes += own->bytes.capacity() + own->of_item.capacity() * sizeof(std::uint32_t) +
               own->policies.size() * sizeof(Policy);
    bytes += run.extra->steps.size() * (sizeof(std::pair<std::uint32_t, StepExtra>) + 5 * sizeof(void*));
  }
  if (run.steps == nullptr) return bytes;
  if (run.function != nullptr) bytes += sizeof(FunctionState) + run.function->bytes;
  bytes += run.planned_steps() * sizeof(StepState);
  for (std::size_t step = 0; step < run.planned_steps(); ++step) {
    const StepState& state = run.steps[step];
    if (state.map != nullptr)
      bytes += sizeof(Map) + state.map->items.capacity() * sizeof(Item) + state.map->list.bytes.capacity();
    if (state.one.trouble != nullptr) {
      const Failure& failure = state.one.trouble->failure;
      bytes += sizeof(Trouble) + failure.message.capacity() + failure.evidence.capacity();
    }
    if (state.one.output != nullptr) bytes += sizeof(Payload) + state.one.output->bytes.capacity();
  }
  return bytes;
}

}  // namespace reprise::core
