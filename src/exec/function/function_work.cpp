#include "exec/function/function_work.hpp"

#include <algorithm>

#include "exec/function/list.hpp"

namespace reprise::exec {
namespace {

constexpr Duration progress_interval = std::chrono::milliseconds{100};
constexpr std::size_t progress_bytes_max = 1024;

// Cut between characters, if it is UTF-8.
std::string_view beginning_of(std::string_view text) noexcept {
  if (text.size() <= progress_bytes_max) return text;
  std::size_t end = progress_bytes_max;
  while (end > progress_bytes_max - 3 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

}  // namespace

std::string_view FunctionWork::step() const noexcept { return job_.step != nullptr ? *job_.step : std::string_view{}; }

const Failure* FunctionWork::last_failure() const noexcept {
  const bool has_failed = job_.context != nullptr && job_.context->last_failure != Failure{};
  return has_failed ? &job_.context->last_failure : nullptr;
}

std::string_view FunctionWork::bytes_of(const Payload& payload) {
  if (!payload.hashed) return payload.bytes;
  const auto known = std::ranges::find(read_, &payload, &Read::what);
  if (known != read_.end()) return *known->bytes;
  return *read_.emplace_back(&payload, payloads_.read(payload.bytes)).bytes;
}

std::string_view FunctionWork::input() {
  if (input_) return *input_;
  if (!job_.input_is_list) return *(input_ = bytes_of(job_.input));
  std::string_view list = job_.input.bytes;
  if (job_.input.hashed) list = *read_.emplace_back(&job_.input, payloads_.read_list(job_.input.bytes)).bytes;
  input_ = list_element(list, job_.id.item);
  if (!input_) {
    throw EngineError{{ErrorCode::store_damaged,
                       "item " + std::to_string(job_.id.item) + " of " + std::string{step()} + " is not in its list"}};
  }
  return *input_;
}

std::string_view FunctionWork::output_of(std::string_view step) {
  if (job_.context == nullptr || job_.context->outputs == nullptr) return {};
  const StepOutputs& outputs = *job_.context->outputs;
  const auto found = std::ranges::find(outputs, step, &StepOutput::step);
  if (found == outputs.end()) return {};
  if (found->is_list) return list_of(*found);
  return found->parts.empty() ? std::string_view{} : bytes_of(found->parts.front());
}

std::string_view FunctionWork::list_of(const StepOutput& output) {
  const auto known = std::ranges::find(read_, &output, &Read::what);
  if (known != read_.end()) return *known->bytes;
  std::vector<std::string> elements;
  elements.reserve(output.parts.size());
  for (const Payload& part : output.parts) elements.push_back(part.hashed ? *payloads_.read(part.bytes) : part.bytes);
  return *read_.emplace_back(&output, std::make_shared<const std::string>(encode_list(elements))).bytes;
}

std::string_view FunctionWork::idempotency_key() {
  if (idempotency_key_.empty()) {
    const bool is_operation = job_.context != nullptr && !job_.context->operation.empty();
    idempotency_key_ = is_operation ? to_string(job_.run_id) + '/' + job_.context->operation : exec::idempotency_key(job_);
  }
  return idempotency_key_;
}

void FunctionWork::progress(std::string_view text) {
  Progress progress{job_.id, std::string{beginning_of(text)}};
  // Under the lock: a call that was given up may outlive the sink.
  slot_.unless_given_up([&] {
    const Env::TimePoint now = env_.now();
    if (last_progress_ && now - *last_progress_ < progress_interval) return;
    last_progress_ = now;
    sink_.progressed(std::move(progress));
  });
}

}  // namespace reprise::exec
