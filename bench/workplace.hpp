// What the suites that work on a disk share: a folder that is there for one workload, a clock, and the memory this process takes.
//
// Thread safety: plain functions and values.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>
#include <utility>

#include <reprise/error.hpp>

namespace reprise::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// On the disk of the working directory: /tmp may be memory.
class Folder {
 public:
  Folder() {
    std::string name = "reprise-bench-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::exit(1);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string store() const { return "sqlite:" + path_ + "/bench.db"; }

 private:
  std::string path_;
};

template <class T>
T expect(std::expected<T, Error> result) {
  if (!result) {
    std::fprintf(stderr, "reprise-bench: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

inline std::size_t resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  std::size_t pages = 0;
  std::size_t resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace reprise::bench
