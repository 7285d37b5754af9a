// Which nodes of a value a query selects: RFC 9535, section 2.
//
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "json/jsonpath_query.hpp"

namespace reprise::json::jsonpath {

struct EvaluationLimits {
  std::size_t steps_max = 100'000'000;          // nodes looked at, long texts counted by their length
  std::size_t selected_nodes_max = 10'000'000;  // also in between, after each segment
};

// The error says which bound was reached.
std::expected<std::vector<const Json*>, std::string> evaluate(const Query& query, const Json& root,
                                                              EvaluationLimits limits = {});

}  // namespace reprise::json::jsonpath
