#include "env/who.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace reprise {

std::string program_name() { return program_invocation_short_name; }

std::string user_and_host() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const uid_t user = geteuid();
  const bool has_name = getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  const std::string name = has_name ? found->pw_name : std::to_string(user);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return name;
  return name + "@" + host.data();
}

}  // namespace reprise
