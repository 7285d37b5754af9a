// The Unix socket under the control channel: its place, how it is bound without robbing a living owner, and who is at the other end.
//
// Thread safety: free functions without state.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/descriptor.hpp"

namespace reprise::runtime {

// Which file was bound, so that only our own is removed.
struct BoundSocket {
  base::Descriptor listener;  // not open: no socket could be made
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
};

BoundSocket bind_control_socket(const std::string& path);
void remove_control_socket(const BoundSocket& socket) noexcept;

// Not open: `errno` says why.
base::Descriptor connect_control_socket(const std::string& path, int time_max_ms);

bool peer_is_same_user(int socket) noexcept;

}  // namespace reprise::runtime
