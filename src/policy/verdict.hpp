// A handler's own word about its work, as a failure: Argyll's {"success": false, "error": …, "permanent": …}.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string_view>

#include <reprise/failure.hpp>

namespace reprise::policy {

inline constexpr std::string_view work_not_completed = "WorkNotCompleted";  // its type

// Such a failure was reported by the handler, and not found out by us.
inline bool is_verdict(const Failure& failure) { return failure.permanent && failure.type == work_not_completed; }

}  // namespace reprise::policy
