// A JSONPath query as a tree, between the parser (jsonpath_parser.hpp) and the evaluator (jsonpath_evaluate.hpp).
//
// The names are RFC 9535's. What the parser lets through is well-typed: the evaluator asks nothing of that kind again.
// Thread safety: immutable once parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "json/json.hpp"
#include "json/regex_to_re2.hpp"

namespace reprise::json::jsonpath {

inline constexpr std::size_t query_bytes_max = 4096;
inline constexpr int nesting_max = 64;

struct Logical;

struct NameSelector {
  std::string name;
};
struct WildcardSelector {};
struct IndexSelector {
  std::int64_t index = 0;  // negative: from the end
};
struct SliceSelector {
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> end = {};
  std::int64_t step = 1;
};
struct FilterSelector {
  std::shared_ptr<const Logical> condition;
};
using Selector = std::variant<NameSelector, WildcardSelector, IndexSelector, SliceSelector, FilterSelector>;

struct Segment {
  bool descendant = false;
  std::vector<Selector> selectors;
};

struct Query {
  bool absolute = true;  // from $, not from @
  std::vector<Segment> segments;

  // Selects at most one node by its form: names and indexes only.
  bool is_singular() const noexcept {
    for (const Segment& segment : segments) {
      if (segment.descendant || segment.selectors.size() != 1) return false;
      const Selector& only = segment.selectors.front();
      if (!std::holds_alternative<NameSelector>(only) && !std::holds_alternative<IndexSelector>(only)) return false;
    }
    return true;
  }
};

struct Call;

// What a comparison compares and a function takes.
using Operand = std::variant<Json, Query, std::shared_ptr<const Call>>;

enum class Function : unsigned char { length, count, match, search, value };

struct Call {
  Function function = Function::length;
  std::vector<Operand> arguments;
  // match, search: compiled already when the expression is written in the query; nullptr when it is no I-Regexp, which matches nothing.
  std::optional<Pattern> pattern = {};
};

enum class Comparison : unsigned char { equal, not_equal, less, less_equal, greater, greater_equal };

struct Compare {
  Operand left;
  Comparison comparison = Comparison::equal;
  Operand right;
};
struct AnyOf {
  std::vector<Logical> terms;
};
struct AllOf {
  std::vector<Logical> terms;
};
struct Not {
  std::shared_ptr<const Logical> term;
};
struct Exists {
  Query query;
};
struct Holds {  // match() or search()
  std::shared_ptr<const Call> call;
};

struct Logical {
  std::variant<AnyOf, AllOf, Not, Exists, Holds, Compare> form;
};

}  // namespace reprise::json::jsonpath
