#include "store/sqlite/owner_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/private_file.hpp"
#include "store/sqlite/connection.hpp"

namespace reprise::store::sqlite {
namespace {

std::string holder_of(int file) {
  std::array<char, 32> text{};
  const ssize_t length = pread(file, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t at = 0;
       at < length && text[static_cast<std::size_t>(at)] >= '0' && text[static_cast<std::size_t>(at)] <= '9'; ++at) {
    digits += text[static_cast<std::size_t>(at)];
  }
  return digits.empty() ? "another process" : "process " + digits;
}

Error locked(int file, const std::string& store_path) {
  return {ErrorCode::store_locked, "Cannot open " + store_path + ": " + holder_of(file) +
                                       " owns it. Stop that process, or use another store, such as memory:."};
}

}  // namespace

OwnerLock::~OwnerLock() {
  if (file_ < 0) return;
  [[maybe_unused]] const int truncated = ftruncate(file_, 0);  // only so that nobody is told a stale id
  close(file_);
}

Result<OwnerLock> OwnerLock::take(const std::string& store_path) {
  OwnerLock lock;
  lock.path_ = store_path + "-owner";
  if (auto made = base::make_private_file(lock.path_); !made)
    return std::unexpected{error_from_errno(made.error().value(), store_path, "open")};
  const int file = open(lock.path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::unexpected{error_from_errno(errno, store_path, "open")};
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    const Error error = errno == EWOULDBLOCK ? locked(file, store_path) : error_from_errno(errno, store_path, "lock");
    close(file);
    return std::unexpected{error};
  }
  lock.file_ = file;
  const std::string id = std::to_string(getpid()) + "\n";
  // Without the id (a full disk) the lock still holds; only the message to the next one is poorer.
  [[maybe_unused]] const bool written =
      ftruncate(file, 0) == 0 && pwrite(file, id.data(), id.size(), 0) == static_cast<ssize_t>(id.size());
  return lock;
}

bool OwnerLock::still_holds() const {
  struct stat mine {};
  struct stat there {};
  return file_ >= 0 && fstat(file_, &mine) == 0 && stat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

}  // namespace reprise::store::sqlite
