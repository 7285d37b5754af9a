// The parsed form of an expression, between expression_parser.cpp that makes it and expression_eval.cpp that computes it.
//
// Chains such as a + b - c are one node with many operands, so that the tree is never deeper than its brackets (nesting_max): neither
// computing nor destroying it can run out of stack. Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"

namespace reprise::flow::detail {

inline constexpr std::size_t expression_bytes_max = std::size_t{64} * 1024;
inline constexpr std::size_t template_bytes_max = std::size_t{1024} * 1024;
inline constexpr std::size_t nesting_max = 64;
inline constexpr std::size_t result_bytes_max = std::size_t{16} * 1024 * 1024;

enum class Operator : std::uint8_t {
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  add,
  subtract,
  multiply,
  divide,
  remainder
};
inline constexpr std::array<std::string_view, 11> operator_words{
    "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"};

enum class Function : std::uint8_t { length, contains, default_value, json, words };
inline constexpr std::array<std::string_view, 5> function_names{"length", "contains", "default", "json", "words"};
inline constexpr std::array<std::size_t, 5> function_arities{1, 2, 2, 1, 1};

struct Expr {
  enum class Kind : std::uint8_t {
    literal,  // value
    path,     // names, and then the operands, each of which gives a member or an index
    access,   // operands[0] is looked into; the others as for a path
    call,     // function(operands…)
    negate,   // - operands[0]
    invert,   // not operands[0]
    any,      // operands joined by `or`
    all,      // operands joined by `and`
    compare,  // two operands, one operator
    chain,    // operands joined by + and -, or by * / %: operators[i] stands before operands[i + 1]
  };
  Kind kind = Kind::literal;
  Function function = Function::length;
  std::size_t offset = 0;
  Json value = {};
  std::vector<std::string> names = {};
  std::vector<Expr> operands = {};
  std::vector<Operator> operators = {};
};

}  // namespace reprise::flow::detail
