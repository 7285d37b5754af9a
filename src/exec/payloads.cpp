#include "exec/payloads.hpp"

#include <utility>

namespace reprise::exec {

Payloads::Bytes Payloads::read(std::string_view hash) {
  const std::shared_lock lock{open_};
  if (!load_) throw EngineError{{ErrorCode::stopped, "the payload cannot be read: the engine has stopped"}};
  std::expected<std::string, Error> bytes = load_(hash);
  if (!bytes) throw EngineError{std::move(bytes).error()};
  return std::make_shared<const std::string>(*std::move(bytes));
}

Payloads::Bytes Payloads::read_list(std::string_view hash) {
  const std::lock_guard lock{lists_mutex_};
  for (const List& list : lists_) {
    if (list.bytes != nullptr && list.hash == hash) return list.bytes;
  }
  Bytes bytes = read(hash);
  lists_[oldest_] = {std::string{hash}, bytes};
  oldest_ = (oldest_ + 1) % lists_max;
  return bytes;
}

void Payloads::close() {
  const std::lock_guard lock{open_};
  load_ = nullptr;
}

}  // namespace reprise::exec
