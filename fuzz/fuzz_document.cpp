// YAML and JSON documents: limits hold, places lie inside the text, and each refusal can be shown to a person and to a program.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "require.hpp"
#include "text/document.hpp"
#include "text/place.hpp"
#include "text/value.hpp"

namespace {

using reprise::Diagnostic;
using reprise::fuzz::require;
using reprise::text::Document;
using reprise::text::Node;
using reprise::text::NodeType;

constexpr std::size_t nodes_visited_max = 100;  // aliases make trees far larger than their text

void check_diagnostics(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) {
    require(diagnostic.line >= 1 && diagnostic.column >= 1 && diagnostic.length >= 1, "places count from one");
    require(!diagnostic.message.empty(), "a diagnostic says something");
  }
  require(!reprise::render(diagnostics).empty(), "there is something to show");
  const std::string json = reprise::render_json(diagnostics);
  const auto again = reprise::text::read_document(json, "json");
  require(again.has_value(), "diagnostics as JSON are JSON", json);
  require(again->root().items.size() == diagnostics.size(), "every diagnostic is in the JSON", json);
}

void check_node(const Document& document, const Node& node, std::uint32_t depth, std::size_t& left) {
  const reprise::text::Limits limits;
  require(depth <= limits.depth_max, "no node lies deeper than the limit");
  require(node.weight <= limits.nodes_max, "no tree is heavier than the limit");
  require(node.is_scalar() || node.text.empty(), "only scalars have text");
  if (left == 0) return;
  --left;
  const std::string words = reprise::text::describe(node);
  check_diagnostics({reprise::text::diagnostic_at(document, reprise::Severity::error, node.place, words, "")});
  for (const Node* item : node.items) check_node(document, *item, depth + 1, left);
  for (const Node::Member& member : node.members) {
    require(node.find(member.key->text) == member.value, "each key is there once");
    check_node(document, *member.key, depth + 1, left);
    check_node(document, *member.value, depth + 1, left);
  }
}

reprise::text::Value value_of(const Node& node, std::size_t& left) {
  using reprise::text::Value;
  if (left == 0) return {};
  --left;
  switch (node.type) {
    case NodeType::null:
      return {};
    case NodeType::boolean:
    case NodeType::integer:
    case NodeType::number:
    case NodeType::string:
      return Value{node.text};
    case NodeType::sequence: {
      Value list = Value::list();
      for (const Node* item : node.items) list.add(value_of(*item, left));
      return list;
    }
    case NodeType::mapping: {
      Value map = Value::map();
      for (const Node::Member& member : node.members) map.set(member.key->text, value_of(*member.value, left));
      return map;
    }
  }
  return {};
}

// All scalars as text, so that trees can be compared whatever they were written as.
bool same(const Node& left, const Node& right) {
  if (left.is_scalar() && right.is_scalar()) return left.type == NodeType::null || left.text == right.text;
  if (left.type != right.type || left.items.size() != right.items.size() || left.members.size() != right.members.size())
    return false;
  for (std::size_t index = 0; index < left.items.size(); ++index) {
    if (!same(*left.items[index], *right.items[index])) return false;
  }
  for (std::size_t index = 0; index < left.members.size(); ++index) {
    const Node::Member& one = left.members[index];
    const Node::Member& other = right.members[index];
    if (one.key->text != other.key->text || !same(*one.value, *other.value)) return false;
  }
  return true;
}

// Our own writers and our own reader are each other's test.
void check_writers(const Document& document) {
  std::size_t left = nodes_visited_max;
  const reprise::text::Value value = value_of(document.root(), left);
  if (left == 0) return;  // not the whole tree
  for (const std::string& written :
       {reprise::text::to_yaml(value), reprise::text::to_json(value), reprise::text::to_json(value, 2)}) {
    const auto again = reprise::text::read_document(written, "written");
    require(again.has_value(), "what is written can be read", written);
    require(same(document.root(), again->root()), "what is written reads back the same", written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = reprise::text::read_document(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!document) {
    require(!document.error().empty(), "a refusal has a reason");
    check_diagnostics(document.error());
    return 0;
  }
  std::size_t left = nodes_visited_max;
  check_node(*document, document->root(), 0, left);
  check_writers(*document);
  return 0;
}
