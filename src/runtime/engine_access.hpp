// What the flows of this project may do with an engine and others may not: bring an executor of their own, and submit plans as they are.
//
// Thread safety: as the engine's own functions.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/engine.hpp>

#include "core/plan.hpp"
#include "exec/executor.hpp"
#include "exec/payloads.hpp"
#include "runtime/inputs.hpp"
#include "runtime/run_service.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

inline constexpr std::string_view document_queue = "reprise.document";  // where steps of documents wait

// Makes what runs the steps of documents. Called once, while the engine is being opened.
using ExecutorFactory = std::function<std::unique_ptr<exec::Executor>(exec::Sink&, exec::PayloadLoader)>;

struct EngineAccess {
  // Runs of documents that are in the store do not go on by themselves: allow() them. Other processes do not reach this engine, unless the
  // caller listens for them.
  // `shard`: the store, if it is open already; settings.store is not looked at then.
  static std::expected<Engine, Error> open(EngineSettings settings, const ExecutorFactory& documents,
                                           std::unique_ptr<store::Store> shard = nullptr);
  // `task` says everything but what to run and what is recorded beside it.
  static std::expected<RunId, Error> submit(Engine& engine, core::Plan plan, Task task, RunAttributes attributes = {});
  // With the sub-flows that it waits for; `resumes`: those that are paused, too.
  static void allow(Engine& engine, const RunId& run, bool resumes);
  // The attempt goes on as a run with this plan and input.
  static std::expected<void, Error> hand_over(Engine& engine, exec::HandedOver over, core::Plan plan,
                                              std::string input);
  // For LiveReader. Answers are as new as what was acknowledged; the store has what they refer to.
  static std::expected<std::shared_ptr<const AskReply>, Error> ask(Engine& engine, const RunId& run, Question question);
  static std::expected<FoundRuns, Error> some_below(Engine& engine, const RunQuery& query, std::uint64_t below);
  static std::expected<void, Error> each_event(Engine& engine, const RunId& run,
                                               const std::function<bool(Event&&)>& visit);
  static store::Store& store(Engine& engine);
  static std::shared_ptr<const core::Plan> plan(Engine& engine, std::uint32_t number);  // nullptr: not known
  static core::FactsDecoder facts_decoder(Engine& engine);
  static std::expected<std::uint64_t, Error> last_sequence(Engine& engine, const RunId& run);  // of its events
  // What runs durable functions: made by the first who asks.
  static exec::Executor& functions(Engine& engine, const ExecutorFactory& make);
  static std::expected<void, Error> add_function(Engine& engine, const std::string& name, std::uint32_t version,
                                                 std::uint32_t number);
  static void add_closures(Engine& engine, Handler handler);  // what runs the closures of functions
  static std::uint64_t number_of(const RunId& run);           // in its store
  // What is asked of runs, by whomever (run_service.hpp). The answer comes on any thread, or is waited for.
  static void perform(Engine& engine, RunRequest request, RunAnswered answered);
  static std::expected<RunAnswer, Error> perform(Engine& engine, RunRequest request);
};

}  // namespace reprise::runtime
