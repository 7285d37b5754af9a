// Durable functions: plain code that survives the process. It calls handlers, sleeps for days and waits for signals; after a crash it is replayed from
// the log to where it was.
//
//   constexpr reprise::Call<Receipt(const Order&)> charge{"charge"};
//   constexpr reprise::Call<void(const Receipt&)> refund{"refund"}, ship{"ship"};
//   constexpr reprise::Call<std::string(const Order&)> checkout{"checkout"};
//
//   engine.function(checkout, [](reprise::Context& ctx, const Order& order) {
//     const Receipt receipt = ctx.call(charge, order);
//     ctx.on_failure(refund, receipt);                    // run by the engine if what follows fails
//     ctx.call(ship, receipt);
//     ctx.wait_signal("received", 30 * 24h);
//     return receipt.id;
//   });
//   auto run = engine.submit(checkout, order);
//
// The function only decides; what touches the world is in handlers and in run(). It must do the same each time it is given the same results: no
// clocks, chance or global state but those of the Context. Where its code and its log do not agree the run is held, and says what differs.
// Rules: catch (...) must rethrow; nothing of the Context is called in destructors or in noexcept functions; the Context stays in the function.
// Thread safety: a function runs on one thread, and everything here belongs to it.
// Needs the library target Reprise::functions. examples/checkout.cpp is a complete program.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <source_location>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <reprise/codec.hpp>
#include <reprise/engine.hpp>
#include <reprise/random.hpp>

namespace reprise {

struct CallOptions {
  std::optional<Policy> retry = {};      // instead of the handler's own
  std::optional<Duration> timeout = {};  // of each attempt
};

struct CallError {
  Failure failure = {};
  StopReason reason = StopReason::none;  // why it was not tried again
  std::uint64_t attempts = 0;
};

class CallFailed : public std::runtime_error {
 public:
  explicit CallFailed(CallError error);
  const CallError& error() const noexcept { return error_; }

 private:
  CallError error_;
};

// Thrown where a function waits when its run is cancelled. No std::exception: catch (const std::exception&) lets it pass.
struct Canceled {};

struct Group {
  std::uint32_t max_parallel = 0;  // 0 = no limit
  std::uint32_t tolerate = 0;      // try_map: so many may fail
  std::source_location place = std::source_location::current();
};

enum class Next : std::uint8_t { again, done };

class Context;

namespace detail {

// An operation that was begun; made and ended by the executor of functions.
struct Operation {
  bool has_ended = false;
  bool has_succeeded = false;
  bool is_dismissed = false;
  std::uint64_t order = 0;  // among those that have ended
  std::string output = {};
  CallError error = {};
};
using OperationPtr = std::shared_ptr<Operation>;

enum class Wanted : std::uint8_t { call, sleep, signal, run, undo };  // kinds of operations

struct Beginning {
  Wanted kind = Wanted::call;
  std::string_view name = {};
  std::string input = {};
  CallOptions options = {};
  std::optional<Duration> span = {};  // sleep, and the patience of a signal
  std::optional<WallTime> until = {};
  std::source_location place = {};
};

// What a Context stands on: one of the branches that a function consists of.
class Branch {
 public:
  Branch() = default;
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;
  virtual ~Branch() = default;
  virtual OperationPtr begin(Beginning beginning) = 0;
  virtual OperationPtr begin_run(Beginning beginning, std::function<std::expected<std::string, Failure>()> closure) = 0;
  virtual void wait(const OperationPtr& operation) = 0;
  virtual std::size_t wait_any(std::span<const OperationPtr> operations) = 0;
  virtual void dismiss(const OperationPtr& operation) = 0;
  // Each body gets a Context of its own. What they throw is in the answer; empty = they returned.
  virtual std::vector<std::exception_ptr> parallel(const Group& group, std::vector<std::function<void(Context&)>> bodies,
                                                   std::uint32_t tolerate) = 0;
  virtual bool enter_shield(bool shielded) noexcept = 0;  // what it was before
  // The state with which the turn begins that the log knows, or this one.
  virtual std::string begin_loop(std::string state, const std::source_location& place) = 0;
  virtual void next_turn(const std::string& state) = 0;
  virtual void end_loop() noexcept = 0;
  virtual bool changed(std::string_view change, const std::source_location& place) = 0;
  virtual void publish(std::string state) = 0;
  [[noreturn]] virtual void hold(const std::string& why) = 0;
  virtual WallTime now() const = 0;
  virtual Random& random() = 0;
  virtual const RunId& run_id() const = 0;
};

template <class T>
T decoded(Branch& branch, const std::string& bytes, std::string_view what) {
  if constexpr (!std::is_void_v<T>) {
    auto value = Codec<T>::decode(bytes);
    if (!value) branch.hold("the recorded " + std::string{what} + " cannot be read: " + value.error());
    return *std::move(value);
  }
}

template <class T>
std::expected<T, CallError> result_of(Branch& branch, const Operation& operation) {
  if (!operation.has_succeeded) return std::unexpected{operation.error};
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return decoded<T>(branch, operation.output, "result");
  }
}

template <class T>
T value_of(Branch& branch, const Operation& operation) {
  if (!operation.has_succeeded) throw CallFailed{operation.error};
  return decoded<T>(branch, operation.output, "result");
}

template <class T>
using NotVoid = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

std::string new_uuid(Random& random);

using FunctionBody = std::function<std::string(Context&, std::string_view input)>;

}  // namespace detail

// Something begun and not waited for yet.
template <class T>
class Pending {
 public:
  Pending(detail::Branch& branch, detail::OperationPtr operation) noexcept
      : branch_{&branch}, operation_{std::move(operation)} {}

  T wait() {
    branch_->wait(operation_);
    return detail::value_of<T>(*branch_, *operation_);
  }
  std::expected<T, CallError> try_wait() {
    branch_->wait(operation_);
    return detail::result_of<T>(*branch_, *operation_);
  }
  bool done() const noexcept { return operation_->has_ended; }
  void cancel() { branch_->dismiss(operation_); }

 private:
  friend class Context;
  detail::Branch* branch_;
  detail::OperationPtr operation_;
};

class Context {
 public:
  using Place = std::source_location;  // of the caller: it goes into the log

  explicit Context(detail::Branch& branch) noexcept : branch_{branch} {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // ---- work: a handler, or a closure that may touch the world ----
  template <class R, class A>
  R call(Call<R(A)> call, const In<A>& input, CallOptions options = {}, Place place = Place::current()) {
    return start(call, input, std::move(options), place).wait();
  }
  template <class R>
  R call(Call<R()> call, CallOptions options = {}, Place place = Place::current()) {
    return start(call, std::move(options), place).wait();
  }
  template <class R, class A>
  std::expected<R, CallError> try_call(Call<R(A)> call, const In<A>& input, CallOptions options = {}, Place place = Place::current()) {
    return start(call, input, std::move(options), place).try_wait();
  }
  template <class R>
  std::expected<R, CallError> try_call(Call<R()> call, CallOptions options = {}, Place place = Place::current()) {
    return start(call, std::move(options), place).try_wait();
  }
  template <class R, class A>
  Pending<R> start(Call<R(A)> call, const In<A>& input, CallOptions options = {}, Place place = Place::current()) {
    return begin<R>({.name = call.name, .input = Codec<In<A>>::encode(input), .options = std::move(options), .place = place});
  }
  template <class R>
  Pending<R> start(Call<R()> call, CallOptions options = {}, Place place = Place::current()) {
    return begin<R>({.name = call.name, .options = std::move(options), .place = place});
  }
  // On a thread of the handlers while the function waits for it; once it has been recorded it does not run again.
  template <std::invocable F>
  requires Storable<std::invoke_result_t<F&>>
  auto run(std::string_view name, F&& closure, CallOptions options = {}, Place place = Place::current())
      -> std::invoke_result_t<F&> {
    using T = std::invoke_result_t<F&>;
    const auto operation = branch_.begin_run(
        {.kind = detail::Wanted::run, .name = name, .options = std::move(options), .place = place},
        [&closure]() -> std::expected<std::string, Failure> {
          return reprise::detail::recorded([](auto&& value) {
                using Value = std::remove_cvref_t<decltype(value)>;
                return Codec<std::conditional_t<std::is_void_v<T>, Value, T>>::encode(value);
              }, closure);
        });
    branch_.wait(operation);
    return detail::value_of<T>(branch_, *operation);
  }

  // ---- time, and the outside ----
  void sleep(Duration span, Place place = Place::current()) { timer(span, place).wait(); }
  void sleep_until(WallTime until, Place place = Place::current()) {
    begin<void>({.kind = detail::Wanted::sleep, .until = until, .place = place}).wait();
  }
  Pending<void> timer(Duration span, Place place = Place::current()) {
    return begin<void>({.kind = detail::Wanted::sleep, .span = span, .place = place});
  }
  // std::nullopt: none came within the patience.
  template <Storable T>
  requires(!std::is_void_v<T>) std::optional<T> wait_signal(std::string_view name, std::optional<Duration> patience = {},
                                                            Place place = Place::current()) {
    const auto operation = wait_for_signal(name, patience, place);
    if (!operation->has_succeeded) return std::nullopt;
    return detail::decoded<T>(branch_, operation->output, "signal");
  }
  bool wait_signal(std::string_view name, std::optional<Duration> patience = {}, Place place = Place::current()) {
    return wait_for_signal(name, patience, place)->has_succeeded;
  }

  // ---- several at once ----
  template <class... T>
  std::size_t any(Pending<T>&... pending) {  // the first that ended, by the log's order
    const std::array<detail::OperationPtr, sizeof...(T)> operations{pending.operation_...};
    return branch_.wait_any(operations);
  }
  template <class... T>
  std::tuple<detail::NotVoid<T>...> all(Pending<T>&... pending) {
    (branch_.wait(pending.operation_), ...);
    return std::tuple<detail::NotVoid<T>...>{value_in(pending)...};
  }
  // All begin; when they have ended, what the first of them threw is thrown.
  template <std::invocable<Context&>... F>
  void parallel(Group group, F&&... bodies) {
    std::vector<std::function<void(Context&)>> all;
    (all.emplace_back([&bodies](Context& ctx) { static_cast<void>(bodies(ctx)); }), ...);
    rethrow(branch_.parallel(group, std::move(all), 0));
  }
  template <std::ranges::input_range Range, class F>
  auto map(Range&& range, F&& body, Group group = {}) {
    using T = std::invoke_result_t<F&, Context&, std::ranges::range_reference_t<Range>>;
    std::vector<std::optional<detail::NotVoid<T>>> values;
    rethrow(each(std::forward<Range>(range), body, group, values, 0));
    if constexpr (!std::is_void_v<T>) {
      std::vector<T> results;
      for (auto& value : values) results.push_back(*std::move(value));
      return results;
    }
  }
  // What fails stands in its place; more than `group.tolerate` failures are thrown.
  template <std::ranges::input_range Range, class F>
  auto try_map(Range&& range, F&& body, Group group = {})
      -> std::vector<std::expected<std::invoke_result_t<F&, Context&, std::ranges::range_reference_t<Range>>, CallError>> {
    using T = std::invoke_result_t<F&, Context&, std::ranges::range_reference_t<Range>>;
    std::vector<std::optional<detail::NotVoid<T>>> values;
    const auto thrown = each(std::forward<Range>(range), body, group, values, group.tolerate);
    std::vector<std::expected<T, CallError>> results;
    std::uint32_t failed = 0;
    for (std::size_t index = 0; index < thrown.size(); ++index) {
      if (thrown[index] == nullptr) {
        if constexpr (std::is_void_v<T>) {
          results.emplace_back();
        } else {
          results.emplace_back(*std::move(values[index]));
        }
        continue;
      }
      if (++failed > group.tolerate) std::rethrow_exception(thrown[index]);
      results.emplace_back(std::unexpected{error_in(thrown[index])});
    }
    return results;
  }

  // ---- undo: run newest first by the engine when the function fails or is cancelled ----
  template <class R, class A>
  void on_failure(Call<R(A)> undo, const In<A>& input, Place place = Place::current()) {
    branch_.begin({.kind = detail::Wanted::undo, .name = undo.name, .input = Codec<In<A>>::encode(input), .place = place});
  }
  template <class R>
  void on_failure(Call<R()> undo, Place place = Place::current()) {
    branch_.begin({.kind = detail::Wanted::undo, .name = undo.name, .place = place});
  }
  template <std::invocable F>
  auto shielded(F&& body) -> std::invoke_result_t<F&> {  // not interrupted by cancel
    struct Shield {
      detail::Branch& branch;
      bool before;
      ~Shield() { branch.enter_shield(before); }
    } const shield{branch_, branch_.enter_shield(true)};
    return body();
  }

  // ---- long lives ----
  // Next body(State&), again and again; a turn forgets those before.
  template <Storable State, class Body>
  void loop(State state, Body body, Place place = Place::current()) {
    struct Turns {
      detail::Branch& branch;
      ~Turns() { branch.end_loop(); }
    };
    const std::string begins = branch_.begin_loop(Codec<State>::encode(state), place);
    const Turns turns{branch_};
    state = detail::decoded<State>(branch_, begins, "state of a loop");
    while (body(state) == Next::again) branch_.next_turn(Codec<State>::encode(state));
  }
  // False in runs that passed here before the change.
  bool changed(std::string_view change, Place place = Place::current()) { return branch_.changed(change, place); }
  // What engine.state(run) answers.
  template <Storable T>
  void publish(const T& state) {
    branch_.publish(Codec<T>::encode(state));
  }

  // ---- the same in every replay ----
  WallTime now() const { return branch_.now(); }
  Random& random() { return branch_.random(); }
  std::string uuid() { return detail::new_uuid(branch_.random()); }
  const RunId& run_id() const { return branch_.run_id(); }

 private:
  template <class T>
  Pending<T> begin(detail::Beginning beginning) {
    return {branch_, branch_.begin(std::move(beginning))};
  }
  detail::OperationPtr wait_for_signal(std::string_view name, std::optional<Duration> patience, const Place& place) {
    auto operation =
        branch_.begin({.kind = detail::Wanted::signal, .name = name, .span = patience, .place = place});
    branch_.wait(operation);
    return operation;
  }
  template <class T>
  detail::NotVoid<T> value_in(Pending<T>& pending) {
    if constexpr (std::is_void_v<T>) {
      pending.wait();
      return {};
    } else {
      return pending.wait();
    }
  }
  template <class Range, class F, class Values>
  std::vector<std::exception_ptr> each(Range&& range, F& body, const Group& group, Values& values, std::uint32_t tolerate) {
    std::vector<std::function<void(Context&)>> bodies;
    for (auto&& element : range) {
      const std::size_t index = values.size();
      values.emplace_back();
      bodies.emplace_back([&body, &values, index, kept = Kept<decltype(element)>{std::forward<decltype(element)>(element)}](Context& ctx) mutable {
        using T = std::invoke_result_t<F&, Context&, decltype(element)>;
        if constexpr (std::is_void_v<T>) {
          std::invoke(body, ctx, std::forward<decltype(element)>(kept.element));
          values[index].emplace();
        } else {
          values[index].emplace(std::invoke(body, ctx, std::forward<decltype(element)>(kept.element)));
        }
      });
    }
    return branch_.parallel(group, std::move(bodies), tolerate);
  }
  // A reference as it is, a value by value.
  template <class T>
  struct Kept {
    std::conditional_t<std::is_lvalue_reference_v<T>, T, std::remove_reference_t<T>> element;
  };
  static void rethrow(const std::vector<std::exception_ptr>& thrown) {
    for (const std::exception_ptr& one : thrown) {
      if (one != nullptr) std::rethrow_exception(one);
    }
  }
  static CallError error_in(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const CallFailed& failed) {
      return failed.error();
    } catch (const std::exception&) {
      return {.failure = to_failure(std::current_exception()), .reason = StopReason::permanent};
    }
  }

  detail::Branch& branch_;
};

enum class Divergence : std::uint8_t { hold, fail };

struct FunctionOptions {
  std::uint32_t version = 1;        // a run keeps the one it was submitted with; new runs get the highest
  std::size_t stack = 64U << 10U;   // bytes
  Divergence on_divergence = Divergence::hold;
};

struct FunctionSettings {
  unsigned threads = 1;            // a run stays on one of them
  std::size_t memory = 64U << 20;  // bytes of stacks; functions beyond it leave memory while they wait, and are replayed
};

// Before the first function of this engine; without it the defaults hold.
std::expected<void, Error> use_functions(Engine& engine, FunctionSettings settings);

namespace detail {

std::expected<void, Error> add_function(Engine& engine, std::string name, FunctionBody body, const FunctionOptions& options);

template <class R, class... A, class F>
FunctionBody function_body(F function) {
  static_assert(std::is_invocable_v<F&, Context&, const In<A>&...>,
                "reprise: a durable function takes reprise::Context& and the Call's input");
  using Raw = std::invoke_result_t<F&, Context&, const In<A>&...>;
  static_assert(std::is_void_v<R> ? std::is_void_v<Raw> : std::convertible_to<Raw, R>,
                "reprise: a durable function returns the Call's result");
  return [function = std::move(function)](Context& ctx, std::string_view bytes) mutable -> std::string {
    const auto run = [&](const auto&... input) -> std::string {
      if constexpr (std::is_void_v<R>) {
        std::invoke(function, ctx, input...);
        return {};
      } else {
        return Codec<R>::encode(std::invoke(function, ctx, input...));
      }
    };
    if constexpr (sizeof...(A) == 0) {
      return run();
    } else {
      const auto input = Codec<In<A>...>::decode(bytes);
      if (!input) throw std::invalid_argument{"the input cannot be read: " + input.error()};
      return run(*input);
    }
  };
}

}  // namespace detail

template <class R, class... A, class F>
std::expected<void, Error> Engine::function(Call<R(A...)> call, F code, const FunctionOptions& options) {
  return detail::add_function(*this, std::string{call.name}, detail::function_body<R, A...>(std::move(code)), options);
}
template <class R, class... A, class F>
std::expected<void, Error> Engine::function(Call<R(A...)> call, F code) {
  return function(call, std::move(code), FunctionOptions{});
}

}  // namespace reprise
