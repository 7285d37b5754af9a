// Handlers and flows by name, and the plans that follow from them: what a task means when it is submitted.
//
// Equal plans are booked once, under one number, for the life of the store; what a task has for itself (deadline, policy) goes into the
// run's facts and makes no plan. So there are as many plans as handlers, flows and documents, at most a million: `full` beyond that.
// Thread safety: any thread.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/engine.hpp>

#include "core/facts.hpp"
#include "runtime/inputs.hpp"

namespace reprise::runtime {

// The queue of what functions run by themselves, between two things they wait for.
inline constexpr std::string_view closure_queue = "function.run";

struct PlannedTask {
  const BookedPlan* plan = nullptr;
  std::unique_ptr<const core::RunFacts> facts = {};  // nullptr: it has nothing for itself
};

// What stands above the handlers.
struct PolicyDefaults {
  std::optional<Policy> retry = {};
  std::map<std::string, Policy, std::less<>> by_type = {};  // any spelling of a type
  Dialect built_ins = Dialect::native;
  const TypeTree* types = nullptr;  // of policies that bring none
};

class PlanBook {
 public:
  PlanBook(PolicyDefaults defaults, core::FactsDecoder facts);

  void restore(std::vector<BookedPlan> plans);  // those the store knows, before anything else

  // A handler that is there already gets new options; runs keep the ones they were submitted with.
  std::expected<void, Error> add_handler(const std::string& name, HandlerOptions options);
  // A durable function: the queue of its attempts. New runs get the highest version; those of another wait until that is there, too.
  std::expected<std::string, Error> add_function(const std::string& name, std::uint32_t version);
  // Says everything that is wrong with it.
  std::expected<void, Error> add_flow(const Flow& flow);

  std::expected<PlannedTask, Error> plan_for(const Task& task);
  std::expected<EffectivePolicy, Error> effective_policy(std::string_view handler) const;
  std::expected<PlannedTask, Error> book_document(core::Plan plan, RunAttributes attributes = {});
  // Of a task that does what a function wants.
  std::expected<const BookedPlan*, Error> plan_of_command(const exec::Command& command);
  const BookedPlan* plan(std::uint32_t number) const;

 private:
  struct KnownHandler {
    HandlerOptions options;
    const BookedPlan* plan = nullptr;  // of a task that says nothing
  };

  struct KnownFunction {
    std::uint32_t version = 0;
    const BookedPlan* plan = nullptr;
  };

  std::expected<const BookedPlan*, Error> book(core::Plan plan);
  core::Plan task_plan(const std::string& handler, const HandlerOptions& options) const;
  core::StepPlan call_step(std::string name, const std::string& handler, PolicyLevels levels,
                           const HandlerOptions& options, const std::optional<Duration>& timeout) const;
  void settle_types(core::Plan& plan) const;
  std::expected<PlannedTask, Error> with_facts(const BookedPlan* plan, const Task& task, const HandlerOptions& options);
  std::expected<PlannedTask, Error> record(const BookedPlan* plan, const core::RunFacts& facts,
                                           RunAttributes attributes);
  core::StepPlan flow_step(const Flow& flow, const FlowStep& step) const;
  std::string mistakes_in(const Flow& flow) const;

  mutable std::mutex mutex_;
  PolicyDefaults defaults_;
  core::FactsDecoder facts_;
  std::map<std::string, KnownHandler, std::less<>> handlers_;
  std::map<std::string, const BookedPlan*, std::less<>> flows_;
  std::map<std::string, KnownFunction, std::less<>> functions_;
  std::map<std::string, std::unique_ptr<BookedPlan>, std::less<>> by_body_;
  std::vector<const BookedPlan*> by_number_;
};

}  // namespace reprise::runtime
