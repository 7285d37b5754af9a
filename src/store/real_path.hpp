// Where a store really is: one file has one lock, one log, one socket and one folder of logs, whatever link leads to it.
//
// Thread safety: a function of its argument and the file system.
#pragma once

#include <string>
#include <string_view>

namespace reprise::store {

// A full path without symbolic links; of what is not there yet, as far as it is. It stays right when the process changes its folder.
std::string real_path(std::string_view path);

}  // namespace reprise::store
