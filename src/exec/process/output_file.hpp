// A file that takes output as it comes, and says in words why it could not.
//
// Pieces are written at once: they come as large as the pipe had them, and people watch these files with tail -f. After the first
// problem nothing more is written, so that a file never has a hole.
// Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace reprise::exec {

using base::Descriptor;

class OutputFile {
 public:
  enum class Existing : std::uint8_t { append, replace };

  OutputFile() = default;  // takes nothing
  OutputFile(std::string path, Existing existing) : path_{std::move(path)}, existing_{existing} {}

  bool open();                         // with its parent folders; the first write() does it too
  void write(std::string_view piece);  // nothing, when there is no path or there was a problem
  int error() const noexcept { return error_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  bool fail(int error, const char* what);

  std::string path_;
  Existing existing_ = Existing::append;
  Descriptor file_;
  std::uint64_t written_ = 0;
  int error_ = 0;
  std::string problem_;
};

}  // namespace reprise::exec
