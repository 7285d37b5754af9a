// Runs a program and waits for it: what it wrote, and how it ended.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::testing_support {

struct Outcome {
  int exit_code = -1;  // 128 + n when signal n ended it; -1 when it could not be started
  std::string out;
  std::string err;
};

struct Setting {
  std::string name;
  std::string value;
};

// The environment is empty but for PATH and `settings`, so that nothing of the caller's shell changes an answer.
Outcome run_program(const std::vector<std::string>& arguments, std::string_view input = {},
                    const std::vector<Setting>& settings = {});

// A directory that disappears with its content.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const noexcept { return path_; }
  std::string write(std::string_view name, std::string_view content) const;  // gives the file's path

 private:
  std::string path_;
};

}  // namespace reprise::testing_support
