// What people see beside the index of a work item: fetch[28] clang-format-14.
//
// `label:` of the step says it; without that it is the item itself when that is a short text or a number, else its id or name.
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>

#include "flow/flow.hpp"

namespace reprise::flow {

inline constexpr std::size_t label_characters_max = 60;

// One line, not yet safe to show. Empty: there is none. `params` as the run has them.
std::string item_label(const Step& step, const Json& item, std::uint32_t index, const Json& params);

}  // namespace reprise::flow
