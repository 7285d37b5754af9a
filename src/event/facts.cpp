#include "event/facts.hpp"

namespace reprise::event {

void put_fact(std::string& facts, FactTag tag, std::string_view bytes) {
  put_varint(facts, static_cast<std::uint32_t>(tag));
  put_bytes(facts, bytes);
}

bool FactReader::next(Fact& fact) noexcept {
  if (in_.at_end()) return false;
  const std::uint32_t tag = in_.varint32();
  const std::string_view bytes = in_.bytes();
  if (tag <= last_) in_.fail();
  if (!in_.ok()) return false;
  last_ = tag;
  fact = {static_cast<FactTag>(tag), bytes};
  return true;
}

}  // namespace reprise::event
