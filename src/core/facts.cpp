#include "core/facts.hpp"

#include "event/facts.hpp"

namespace reprise::core {

using event::FactTag;

namespace {

std::string encoded(const Parent& parent) {
  std::string bytes;
  for (const std::uint8_t byte : parent.run.bytes) event::put_byte(bytes, byte);
  event::put_varint(bytes, parent.step);
  event::put_varint(bytes, parent.item);
  event::put_varint(bytes, parent.token);
  return bytes;
}

using Types = std::vector<std::pair<std::string, std::string>>;

std::string encoded(const Types& types) {
  std::string bytes;
  for (const auto& [type, parent] : types) {
    event::put_bytes(bytes, type);
    event::put_bytes(bytes, parent);
  }
  return bytes;
}

Types read_types(event::ByteReader& in) {
  Types types;
  while (in.ok() && !in.at_end()) {
    std::string type{in.bytes()};
    types.emplace_back(std::move(type), in.bytes());
  }
  return types;
}

Parent read_parent(event::ByteReader& in) {
  Parent parent;
  for (std::uint8_t& byte : parent.run.bytes) byte = in.byte();
  parent.step = in.varint32();
  parent.item = in.varint32();
  parent.token = in.varint32();
  return parent;
}

}  // namespace

std::string encode_facts(const RunFacts& facts, std::string_view attributes) {
  std::string out;
  if (facts.deadline > 0) {
    std::string deadline;
    event::put_signed(deadline, facts.deadline);
    event::put_fact(out, FactTag::deadline, deadline);
  }
  if (facts.policy != nullptr) event::put_fact(out, FactTag::policy, encode_policy(*facts.policy));
  if (facts.parent) event::put_fact(out, FactTag::parent, encoded(*facts.parent));
  out += attributes;  // their tags stand between these
  if (!facts.types.empty()) event::put_fact(out, FactTag::types, encoded(facts.types));
  return out;
}

std::unique_ptr<const RunFacts> FactsDecoder::read(std::string_view bytes) {
  auto facts = std::make_unique<RunFacts>();
  facts->bytes = bytes;
  event::FactReader reader{bytes};
  event::Fact fact;
  std::string_view policy_bytes;
  std::string_view type_bytes;
  while (reader.next(fact)) {
    event::ByteReader in{fact.bytes};
    switch (fact.tag) {
      case FactTag::deadline:
        facts->deadline = in.signed_varint();
        if (!in.ok() || facts->deadline <= 0) return nullptr;
        break;
      case FactTag::policy:
        policy_bytes = fact.bytes;
        break;
      case FactTag::types:
        type_bytes = fact.bytes;
        facts->types = read_types(in);
        if (!in.ok()) return nullptr;
        break;
      case FactTag::parent:
        facts->parent = read_parent(in);
        if (!in.ok()) return nullptr;
        break;
      default:
        break;  // attributes, and what is unknown: kept in `bytes`
    }
  }
  if (!policy_bytes.empty() && (facts->policy = policy(policy_bytes, type_bytes)) == nullptr) return nullptr;
  return reader.ok() ? std::move(facts) : nullptr;
}

std::shared_ptr<const Policy> FactsDecoder::policy(std::string_view bytes, std::string_view types) {
  if (types.empty()) return policy(bytes);
  const std::string both = std::string{bytes} + std::string{types};  // a policy's bytes tell where they end
  if (const auto* const known = policies_.find(both); known != nullptr) return *known;
  struct WithTypes {
    TypeTree tree;
    Policy policy;
  };
  auto read = decode_policy(bytes, compile_, types_);
  if (!read) return nullptr;
  auto own = std::make_shared<WithTypes>(TypeTree{}, *std::move(read));
  event::ByteReader in{types};
  for (auto& [type, parent] : read_types(in)) own->tree.add(std::move(type), std::move(parent));
  own->policy.types = &own->tree;
  return policies_.put(both, std::shared_ptr<const Policy>{own, &own->policy});
}

std::shared_ptr<const Policy> FactsDecoder::policy(std::string_view bytes) {
  if (const auto* const known = policies_.find(bytes); known != nullptr) return *known;
  auto read = decode_policy(bytes, compile_, types_);
  if (!read) return nullptr;
  return policies_.put(std::string{bytes}, std::make_shared<const Policy>(*std::move(read)));
}

}  // namespace reprise::core
