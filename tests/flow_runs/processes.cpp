// What processes.hpp promises, read from /proc. A process may go away while it is looked at: then it was not there.
#include "flow_runs/processes.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace reprise::testing_support {
namespace {

namespace fs = std::filesystem;

// Empty when there is nothing to read: a process may end after its file was opened, and that is no exception here.
std::string content_of(const std::string& file) {
  const std::ifstream stream{file, std::ios::binary};
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

// The value of a line such as "State: S (sleeping)".
std::string field_of(const std::string& status, const std::string& name) {
  const std::size_t at = status.find(name + ":\t");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return status.substr(begin, status.find('\n', begin) - begin);
}

bool belongs_to(const std::string& process, const std::string& folder) {
  std::error_code gone;
  const std::string works_in = fs::read_symlink(process + "/cwd", gone).string();
  if (!gone && (works_in == folder || works_in.starts_with(folder + "/"))) return true;
  const std::string environment = '\0' + content_of(process + "/environ");
  return environment.find('\0' + ("HOME=" + folder) + '\0') != std::string::npos;
}

}  // namespace

std::vector<LivingProcess> processes_in(const std::string& folder) {
  std::vector<LivingProcess> found;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator{"/proc", problem}) {
    const std::string number = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), pid);
    if (error != std::errc{} || end != number.data() + number.size() || pid == ::getpid()) continue;
    if (!belongs_to(entry.path().string(), folder)) continue;
    const std::string status = content_of(entry.path().string() + "/status");
    const std::string state = field_of(status, "State");
    if (state.empty() || state.starts_with('Z') || state.starts_with('X')) continue;
    std::string words = content_of(entry.path().string() + "/cmdline");
    std::ranges::replace(words, '\0', ' ');
    found.push_back({pid, field_of(status, "Name"), std::move(words)});
  }
  return found;
}

std::string leftovers_in(const std::string& folder) {
  std::string words;
  eventually([&] {
    words.clear();
    for (const LivingProcess& process : processes_in(folder))
      words += std::to_string(process.pid) + " " + process.name + ": " + process.command_line + "\n";
    return words.empty();
  });
  return words;
}

pid_t reprise_in(const std::string& folder) {
  for (const LivingProcess& process : processes_in(folder)) {
    if (process.name == "reprise") return process.pid;
  }
  return 0;
}

std::uint64_t peak_memory_mib(pid_t pid) {
  const std::string peak = field_of(content_of("/proc/" + std::to_string(pid) + "/status"), "VmHWM");
  const std::size_t begin = peak.find_first_not_of(' ');
  std::uint64_t kib = 0;
  if (begin != std::string::npos) std::from_chars(peak.data() + begin, peak.data() + peak.size(), kib);
  return kib / 1024;
}

bool eventually(const std::function<bool()>& is_true) {
  constexpr int looks = 12'000;
  for (int look = 0; look < looks; ++look) {
    if (is_true()) return true;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

}  // namespace reprise::testing_support
