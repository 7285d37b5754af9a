#include "core/item_policies.hpp"

#include <map>

#include "core/facts.hpp"
#include "event/codec.hpp"

namespace reprise::core {

std::string encode_item_policies(std::span<const std::optional<Policy>> policies) {
  std::map<std::string, std::uint32_t> numbers;
  std::string bodies;
  std::string runs;
  std::uint64_t run_count = 0;
  std::uint64_t length = 0;
  std::uint32_t current = 0;
  const auto end_run = [&] {
    if (length == 0) return;
    event::put_varint(runs, length);
    event::put_varint(runs, current);
    ++run_count;
    length = 0;
  };
  for (const std::optional<Policy>& policy : policies) {
    std::uint32_t number = 0;
    if (policy) {
      const auto [place, is_new] =
          numbers.emplace(encode_policy(*policy), static_cast<std::uint32_t>(numbers.size() + 1));
      if (is_new) event::put_bytes(bodies, place->first);
      number = place->second;
    }
    if (number != current) end_run();
    current = number;
    ++length;
  }
  end_run();
  if (numbers.empty()) return {};
  std::string out;
  event::put_varint(out, numbers.size());
  out += bodies;
  event::put_varint(out, run_count);
  return out + runs;
}

std::shared_ptr<const ItemPolicies> read_item_policies(std::string_view bytes, FactsDecoder& decoder,
                                                       const TypeTree* types) {
  auto read = std::make_shared<ItemPolicies>();
  read->bytes = bytes;
  event::ByteReader in{bytes};
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    auto policy = decoder.policy(in.bytes());
    if (policy == nullptr) return nullptr;
    if (types != nullptr) {
      auto own = std::make_shared<Policy>(*policy);
      own->types = types;
      policy = std::move(own);
    }
    read->policies.push_back(std::move(policy));
  }
  for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) {
    const std::uint64_t length = in.varint();
    const std::uint32_t number = in.varint32();
    if (number > read->policies.size() || length > item_policies_max - read->of_item.size()) in.fail();
    if (in.ok()) read->of_item.insert(read->of_item.end(), length, number);
  }
  return in.ok() ? read : nullptr;
}

}  // namespace reprise::core
