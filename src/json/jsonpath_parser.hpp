// The grammar of RFC 9535 and its rules of well-typedness: text → Query.
//
// Thread safety: a pure function.
#pragma once

#include <expected>
#include <string_view>

#include "json/jsonpath.hpp"
#include "json/jsonpath_query.hpp"

namespace reprise::json::jsonpath {

std::expected<Query, JsonPathMistake> parse_query(std::string_view text);

}  // namespace reprise::json::jsonpath
