// Who this process is, for the record of what it asks for.
//
// Thread safety: may be called from any thread.
#pragma once

#include <string>

namespace reprise {

std::string program_name();   // of the executable, without its folder
std::string user_and_host();  // ada@host; a number where the user has no name

}  // namespace reprise
