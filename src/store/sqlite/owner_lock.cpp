#include "store/sqlite/owner_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/private_file.hpp"
#include "store/sqlite/connection.hpp"

namespace reprise::store::sqlite {
namespace {

constexpr mode_t owner_only = 0600;

std::string beside(const std::string& path) { return path + "-owner"; }

// The kernel's list and stat() do not agree on the device everywhere (overlayfs, btrfs): then the inode alone has to do.
std::string holder_in_kernel(const std::optional<FileId>& file) {
  if (!file) return {};
  std::array<char, 24> device{};
  std::snprintf(device.data(), device.size(), "%02x:%02x", major(file->device), minor(file->device));
  const std::string inode = ":" + std::to_string(file->inode);
  std::string likely;
  std::ifstream locks{"/proc/locks"};
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words{line};
    std::array<std::string, 6> word;  // 1: FLOCK ADVISORY WRITE 4711 08:01:131090 0 EOF
    for (std::string& each : word) words >> each;
    if (word[1] != "FLOCK" || !word[5].ends_with(inode)) continue;
    if (word[5].starts_with(device.data())) return word[4];
    likely = word[4];
  }
  return likely;
}

std::string id_written_in(const std::string& path) {
  std::ifstream file{path};
  std::string digits;
  file >> digits;
  return digits.find_first_not_of("0123456789") == std::string::npos ? digits : std::string{};
}

Error locked(const std::string& path) {
  std::string holder = owner_of(path);
  if (holder.empty()) holder = id_written_in(beside(path));
  return {ErrorCode::store_locked, "Cannot open " + path + ": " +
                                       (holder.empty() ? "another process" : "process " + holder) +
                                       " owns it. Stop that process, or use another store, such as memory:."};
}

Error unsafe(const std::string& path, std::string_view why) {
  return {ErrorCode::store_unavailable, "Cannot open " + path + ": " + std::string{why}};
}

}  // namespace

std::string owner_of(const std::string& path) {
  const std::string holder = holder_in_kernel(file_id_at(path));
  return holder.empty() ? holder_in_kernel(file_id_at(beside(path))) : holder;
}

OwnerLock::~OwnerLock() {
  if (beside_ >= 0) {
    [[maybe_unused]] const int truncated = ftruncate(beside_, 0);  // so that the next one knows that we did not die
    close(beside_);
  }
  if (database_ < 0) return;
  flock(database_, LOCK_UN);  // its closing may have to wait
  close_when_unused(database_);
}

Result<OwnerLock> OwnerLock::take(const std::string& path) {
  OwnerLock lock;
  lock.path_ = path;
  if (auto locked = lock.lock_database(); !locked) return std::unexpected{locked.error()};
  if (auto locked = lock.lock_beside(); !locked) return std::unexpected{locked.error()};
  return lock;
}

Result<void> OwnerLock::lock_database() {
  database_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, owner_only);
  struct stat info {};
  if (database_ < 0 || fstat(database_, &info) != 0) return std::unexpected{error_from_errno(errno, path_, "open")};
  if (!S_ISREG(info.st_mode)) return std::unexpected{unsafe(path_, "it is not a file. Choose another path.")};
  if (flock(database_, LOCK_EX | LOCK_NB) != 0)
    return std::unexpected{errno == EWOULDBLOCK ? locked(path_) : error_from_errno(errno, path_, "lock")};
  file_ = {info.st_dev, info.st_ino};
  if (!is_at_its_path()) return std::unexpected{unsafe(path_, "it was replaced at this moment. Try again.")};
  if (info.st_nlink > 1) {
    return std::unexpected{
        unsafe(path_, "the file has " + std::to_string(info.st_nlink) +
                          " names (hard links), and what was committed last stands beside one of them only. Remove the "
                          "others, or make a copy (cp) and use that.")};
  }
  return {};
}

Result<void> OwnerLock::lock_beside() {
  if (auto made = base::make_private_file(beside(path_)); !made)
    return std::unexpected{error_from_errno(made.error().value(), path_, "open")};
  beside_ = open(beside(path_).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (beside_ < 0) return std::unexpected{error_from_errno(errno, path_, "open")};
  if (flock(beside_, LOCK_EX | LOCK_NB) != 0) {
    const Error error = errno == EWOULDBLOCK ? locked(path_) : error_from_errno(errno, path_, "lock");
    close(std::exchange(beside_, -1));  // the id in it is the other's
    return std::unexpected{error};
  }
  struct stat before {};
  was_left_behind_ = fstat(beside_, &before) == 0 && before.st_size > 0;
  const std::string id = std::to_string(getpid()) + "\n";
  // Without the id (a full disk) the lock still holds; only the message to the next one is poorer.
  [[maybe_unused]] const bool written =
      ftruncate(beside_, 0) == 0 && pwrite(beside_, id.data(), id.size(), 0) == static_cast<ssize_t>(id.size());
  return {};
}

}  // namespace reprise::store::sqlite
