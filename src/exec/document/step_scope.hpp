// What the expressions of one step can see: parameters, the item, the results of the steps it reads.
//
// Values are made when somebody asks: the results of a million items only if an expression names them.
// Thread safety: none; one thread, for the life of one attempt.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "event/evidence.hpp"
#include "exec/document/program.hpp"
#include "exec/executor.hpp"
#include "exec/payloads.hpp"
#include "flow/expression/expression.hpp"

namespace reprise::exec {

struct ScopeFacts {
  std::shared_ptr<const Program> program;
  RunId run;
  std::shared_ptr<const JobContext> context;  // never nullptr
  std::optional<std::string> item;            // as JSON; for_each only
  std::uint32_t index = 0;
  std::uint32_t attempt = 1;
  std::uint32_t used_attempts = 1;
  bool is_first = true;  // as in Job
  const flow::Step* step = nullptr;  // whose attempt it is; nullptr where that does not matter
};

class StepScope final : public flow::Scope {
 public:
  StepScope(ScopeFacts facts, Payloads& payloads) : facts_{std::move(facts)}, payloads_{payloads} {}

  std::expected<const json::Json*, std::string> find(std::span<const std::string> path,
                                                     std::size_t& used) const override;
  const ScopeFacts& facts() const noexcept { return facts_; }
  // Within an agent's command: what the step says to it.
  void set_prompt(std::string prompt) { prompt_ = json::Json(std::move(prompt)); }
  // What the commands of this attempt have given, one after the other.
  void add_output(std::string output) { outputs_.push_back(std::move(output)); }
  const std::vector<std::string>& outputs() const noexcept { return outputs_; }
  // What went wrong last: in the attempt before, or, for a command's own on_failure, in the command that it is to repair.
  const Failure& last_failure() const noexcept { return to_repair_ ? *to_repair_ : facts_.context->last_failure; }
  void set_failure_to_repair(Failure failure);
  // What it left behind, from the store if need be; empty when that cannot be read.
  const event::FailureEvidence& last_evidence() const;

 private:
  using Found = std::expected<const json::Json*, std::string>;

  const json::Json* keep(json::Json value) const { return &kept_.emplace_back(std::move(value)); }
  Found find_last_error(std::span<const std::string> path, std::size_t& used) const;
  std::optional<json::Json> output_of_item(const json::Json& item, std::string_view field) const;
  Found find_step(std::span<const std::string> path, std::size_t& used) const;
  std::expected<json::Json, std::string> step_field(const StepOutput& output, std::string_view field) const;
  std::expected<json::Json, std::string> outcomes_of(const StepOutput& output) const;
  std::expected<json::Json, std::string> outputs_of(const StepOutput& output) const;
  std::expected<std::string, std::string> text_of(const Payload& payload) const;
  const flow::Step* step_named(std::string_view name) const;
  std::expected<json::Json, std::string> value_of(const Payload& payload, std::string_view step) const;

  ScopeFacts facts_;
  Payloads& payloads_;
  std::optional<json::Json> prompt_;
  std::vector<std::string> outputs_;
  std::optional<Failure> to_repair_;
  mutable std::optional<event::FailureEvidence> last_evidence_;
  mutable std::deque<json::Json> kept_;  // what find() has given out
  mutable std::map<std::string, const json::Json*, std::less<>> found_;
};

// The result of a step as a value: what its `output` says, and JSON where an answer or a signal brought JSON.
json::Json output_value(const flow::Step* step, std::string_view text);

}  // namespace reprise::exec
