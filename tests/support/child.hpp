// A program that runs beside the test: what it says is read line by line, and it can be killed at any moment.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace reprise::testing_support {

class Child {
 public:
  // Starts it with its standard output as a pipe to us; standard error stays ours.
  explicit Child(std::vector<std::string> arguments);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills what still runs

  // The next line; std::nullopt: there is none within `patience`, or the output has ended.
  std::optional<std::string> line(std::chrono::milliseconds patience);
  // Reads until a line that contains `words`. False: it never came.
  bool wait_for(std::string_view words, std::chrono::milliseconds patience);

  // Nothing more fits into the pipe of its output: it waits for us to read.
  bool is_held_up() const;

  void signal(int number) const;
  // Waits for its end. 128 + n when signal n ended it.
  int join();

  const std::string& said() const noexcept { return said_; }  // all that was read so far

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string said_;
  std::size_t taken_ = 0;  // how much of it line() has given away
};

}  // namespace reprise::testing_support
