// A file that takes output as it comes, and says in words why it could not.
//
// Pieces are written at once: they come as large as the pipe had them, and people watch these files with tail -f. After the first
// problem nothing more is written, so that a file never has a hole. It is for this user alone; below `private_folder` no link is followed.
// Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"

namespace reprise::exec {

using base::Descriptor;

class OutputFile {
 public:
  enum class Existing : std::uint8_t { append, replace };

  OutputFile() = default;  // takes nothing
  OutputFile(std::string path, Existing existing, std::string private_folder = {})
      : path_{std::move(path)}, private_folder_{std::move(private_folder)}, existing_{existing} {}

  bool open();                         // with its parent folders; the first write() does it too
  void write(std::string_view piece);  // nothing, when there is no path or there was a problem
  bool sync();                         // what was written survives a power cut
  void remove();                       // only below the private folder: what stands elsewhere is the user's
  int error() const noexcept { return error_.value(); }
  const std::string& path() const noexcept { return path_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  bool fail(std::error_code error, const char* what);

  std::string path_;
  std::string private_folder_;
  Existing existing_ = Existing::append;
  Descriptor file_;
  std::uint64_t written_ = 0;
  std::error_code error_;
  std::string problem_;
};

}  // namespace reprise::exec
