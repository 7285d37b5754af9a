// Who asks for a change of a run, as its events tell it later.
//
// Thread safety: may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "runtime/inputs.hpp"

namespace reprise::cli {

std::string asker_name(std::string_view command);  // ada@host: reprise cancel
// A new request of this command.
runtime::Requester asker(std::string_view command, std::string_view why = {});

}  // namespace reprise::cli
