// What <reprise/function.hpp> declares: functions of an engine, and small things around them.
#include <reprise/function.hpp>

#include <array>
#include <string>
#include <utility>

#include "base/hex.hpp"
#include "exec/fiber/function_executor.hpp"
#include "runtime/engine_access.hpp"

namespace reprise {

CallFailed::CallFailed(CallError error)
    : std::runtime_error{error.failure.message.empty() ? error.failure.type : error.failure.message},
      error_{std::move(error)} {}

// Version 4: all bits drawn but those that say so.
std::string detail::new_uuid(Random& random) {
  RunId id;
  for (std::size_t index = 0; index < id.bytes.size(); index += sizeof(std::uint64_t)) {
    std::uint64_t bits = random.next();
    for (std::size_t byte = 0; byte < sizeof bits; ++byte, bits >>= 8U)
      id.bytes[index + byte] = static_cast<std::uint8_t>(bits & 0xFFU);
  }
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0FU) | 0x40U);
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3FU) | 0x80U);
  return to_string(id);
}

namespace {

// The same closures for every closure's attempt: which one is meant stands in its key.
Handler closure_handler(std::shared_ptr<exec::Closures> closures) {
  return [closures = std::move(closures)](Work& work) -> std::expected<std::string, Failure> {
    const std::string_view key = work.idempotency_key();
    return closures->call(runtime::EngineAccess::number_of(work.run()), std::string{key.substr(key.find('/') + 1)},
                         work.stop_token());
  };
}

exec::FunctionExecutor& executor_of(Engine& engine, const FunctionSettings& settings, bool& is_new) {
  is_new = false;
  exec::Executor& executor = runtime::EngineAccess::functions(engine, [&](exec::Sink& sink, exec::PayloadLoader load) {
    is_new = true;
    return std::make_unique<exec::FunctionExecutor>(sink, std::move(load), settings);
  });
  auto& functions = static_cast<exec::FunctionExecutor&>(executor);
  if (is_new) runtime::EngineAccess::add_closures(engine, closure_handler(functions.closures()));
  return functions;
}

}  // namespace

std::expected<void, Error> use_functions(Engine& engine, FunctionSettings settings) {
  bool is_new = false;
  executor_of(engine, settings, is_new);
  if (is_new) return {};
  return std::unexpected{Error{ErrorCode::invalid, "the engine has functions already: say this before the first one"}};
}

std::expected<void, Error> detail::add_function(Engine& engine, std::string name, FunctionBody body,
                                                const FunctionOptions& options) {
  bool is_new = false;
  exec::FunctionExecutor& executor = executor_of(engine, {}, is_new);
  const std::uint32_t number = executor.add({name, std::move(body), options});
  return runtime::EngineAccess::add_function(engine, name, options.version, number);
}

}  // namespace reprise
