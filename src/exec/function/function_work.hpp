// One attempt as its handler sees it. What costs something is made when it is asked for.
//
// Thread safety: as Work promises, from the thread of the call; stop_token() from any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

#include "exec/executor.hpp"
#include "exec/function/worker_slot.hpp"
#include "exec/payloads.hpp"

namespace reprise::exec {

class FunctionWork final : public Work {
 public:
  FunctionWork(const Job& job, WorkerSlot& slot, Payloads& payloads, Env& env, Sink& sink) noexcept
      : job_{job}, slot_{slot}, payloads_{payloads}, env_{env}, sink_{sink} {}

  const RunId& run() const noexcept override { return job_.run_id; }
  std::string_view step() const noexcept override;
  std::uint32_t item() const noexcept override { return job_.id.item; }
  std::uint64_t attempt() const noexcept override { return job_.attempt; }
  const Failure* last_failure() const noexcept override;
  std::string_view input() override;
  std::string_view output_of(std::string_view step) override;
  std::string_view idempotency_key() override;
  const std::stop_token& stop_token() const noexcept override { return slot_.token(); }
  std::optional<Duration> remaining() const override { return slot_.remaining(env_); }
  void progress(std::string_view text) override;

 private:
  struct Read {
    const void* what;  // the Payload or StepOutput
    Payloads::Bytes bytes;
  };

  std::string_view bytes_of(const Payload& payload);
  std::string_view list_of(const StepOutput& output);

  const Job& job_;
  WorkerSlot& slot_;
  Payloads& payloads_;
  Env& env_;
  Sink& sink_;
  std::vector<Read> read_;
  std::optional<std::string_view> input_;
  std::string idempotency_key_;
  std::optional<Env::TimePoint> last_progress_;
};

}  // namespace reprise::exec
