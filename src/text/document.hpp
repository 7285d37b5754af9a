// YAML and JSON text as one tree of nodes, each with its place in the text.
//
// libyaml does the reading; this room adds types, limits and the refusal of duplicate keys. Scalars follow YAML 1.2's core
// schema (so `on` and `yes` are words, not booleans), except that numbers are decimal. Nodes live as long as their Document.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/diagnostic.hpp>

namespace reprise::text {

struct Place {
  std::uint32_t line = 1;    // 1-based
  std::uint32_t column = 1;  // 1-based, in characters
  std::uint32_t length = 1;
};

enum class NodeType : std::uint8_t { null, boolean, integer, number, string, sequence, mapping };

struct Node {
  struct Member {
    const Node* key;
    const Node* value;
  };

  NodeType type = NodeType::null;
  Place place{};
  std::string text = {};                // scalars: as written, escapes resolved
  std::vector<const Node*> items = {};  // sequence
  std::vector<Member> members = {};     // mapping, in the order of the text
  std::uint32_t weight = 1;             // nodes below and their text; aliases count as often as they are used

  bool is_scalar() const noexcept { return type != NodeType::sequence && type != NodeType::mapping; }
  const Node* find(std::string_view key) const noexcept;
};

// What is refused, and where. The numbers are far above anything a person writes.
struct Limits {
  std::size_t bytes_max = 1024 * 1024;
  std::uint32_t depth_max = 64;
  std::uint32_t nodes_max = 200'000;  // after aliases are expanded
};

class Document {
 public:
  const Node& root() const noexcept { return *root_; }
  const std::string& name() const noexcept { return name_; }
  std::string_view line(std::uint32_t number) const noexcept;  // without its end; "" if there is no such line

 private:
  friend class Reader;
  std::string name_;
  std::string source_;
  std::vector<std::size_t> line_starts_;
  std::deque<Node> nodes_;
  const Node* root_ = nullptr;
};

using Diagnostics = std::vector<Diagnostic>;

// `name` is what diagnostics call the text: a file name, or "-".
std::expected<Document, Diagnostics> read_document(std::string source, std::string name, const Limits& limits = {});

Diagnostic diagnostic_at(const Document& document, Severity severity, Place place, std::string message,
                         std::string help);

// A node in words for messages: `"3" (text)`, `null`, `a list`.
std::string describe(const Node& node);

}  // namespace reprise::text
