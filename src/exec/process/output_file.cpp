#include "exec/process/output_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace reprise::exec {

bool OutputFile::open() {
  std::error_code ignored;  // open() below says it better
  const std::filesystem::path folder = std::filesystem::path{path_}.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  // O_NONBLOCK: a FIFO that nobody reads must not hold up the other commands.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  file_ = Descriptor{::open(path_.c_str(), flags | (existing_ == Existing::append ? O_APPEND : O_TRUNC), 0666)};
  return file_.is_open() || fail(errno, "opened");
}

void OutputFile::write(std::string_view piece) {
  if (path_.empty() || error_ != 0 || piece.empty()) return;
  if (!file_.is_open() && !open()) return;
  while (!piece.empty()) {
    const ssize_t count = ::write(file_.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      fail(errno, "written");
      return;
    }
    written_ += static_cast<std::uint64_t>(count);
    piece.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool OutputFile::fail(int error, const char* what) {
  error_ = error;
  problem_ = "the file \"" + path_ + "\" could not be " + what + ": " + std::generic_category().message(error);
  if (written_ > 0) problem_ += "; it ends after " + std::to_string(written_) + " bytes of this command's output";
  return false;
}

}  // namespace reprise::exec
