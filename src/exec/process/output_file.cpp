#include "exec/process/output_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include "base/private_file.hpp"

namespace reprise::exec {
namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

// The folder that the user has named, and the file below it. A file that stands elsewhere was named by the user itself.
struct Place {
  std::string folder;
  std::string name;
};

Place place_of(const std::string& private_folder, const std::string& path) {
  if (const std::string_view name = base::name_below(private_folder, path); !name.empty())
    return {private_folder, std::string{name}};
  const std::filesystem::path whole{path};
  const std::string folder = whole.parent_path().string();
  return {folder.empty() ? "." : folder, whole.filename().string()};
}

}  // namespace

bool OutputFile::open() {
  // O_NONBLOCK: a FIFO that nobody reads must not hold up the other commands.
  const int flags = O_WRONLY | O_CREAT | O_NONBLOCK | (existing_ == Existing::append ? O_APPEND : O_TRUNC);
  const Place place = place_of(private_folder_, path_);
  // The folder of a store is not made here: one that is gone has been removed under us, and must not come back with a log alone.
  if (place.folder != private_folder_) {
    if (auto made = base::make_private_folder(place.folder); !made) return fail(made.error(), "opened");
  }
  auto opened = base::open_below(place.folder, place.name, flags);
  if (!opened) return fail(opened.error(), "opened");
  file_ = *std::move(opened);
  return true;
}

void OutputFile::write(std::string_view piece) {
  if (path_.empty() || error_ || piece.empty()) return;
  if (!file_.is_open() && !open()) return;
  while (!piece.empty()) {
    const ssize_t count = ::write(file_.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      fail(last_error(), "written");
      return;
    }
    written_ += static_cast<std::uint64_t>(count);
    piece.remove_prefix(static_cast<std::size_t>(count));
  }
}

void OutputFile::remove() {
  const std::string_view name = base::name_below(private_folder_, path_);
  if (!name.empty()) static_cast<void>(base::remove_below(private_folder_, name));
}

bool OutputFile::sync() {
  if (error_ || !file_.is_open()) return !error_;
  const Place place = place_of(private_folder_, path_);
  const auto synced = base::sync_below(place.folder, place.name, file_);
  return synced || fail(synced.error(), "synced to the disk");
}

bool OutputFile::fail(std::error_code error, const char* what) {
  error_ = error;
  problem_ = "the file \"" + path_ + "\" could not be " + what + ": " + base::words_of(error);
  if (written_ > 0) problem_ += "; it ends after " + std::to_string(written_) + " bytes";
  return false;
}

}  // namespace reprise::exec
