#include "store/sqlite/wal_preallocation.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

namespace reprise::store::sqlite {
namespace {

constexpr std::uint64_t header_bytes = 32;
constexpr std::uint64_t frame_bytes = 24 + 4096;  // a page and its header
constexpr std::uint64_t pages_ahead = 16;         // what most commits take
constexpr std::uint64_t step_min = 64U << 10U;
constexpr std::uint64_t step_max = 1U << 20U;
constexpr std::uint64_t pages_between_looks = 64;  // at the free space of the disk
constexpr std::uint64_t free_min = 64U << 20U;     // on a disk that is nearly full every byte is for data

}  // namespace

WalPreallocation::WalPreallocation(sqlite3* database, std::uint32_t checkpoint_pages)
    : checkpoint_pages_{checkpoint_pages} {
  const char* const name = sqlite3_db_filename(database, "main");
  if (name != nullptr && *name != '\0') path_ = sqlite3_filename_wal(name);
  is_off_ = path_.empty();
  sqlite3_wal_hook(database, committed, this);
}

WalPreallocation::~WalPreallocation() {
  if (file_ >= 0) ::close(file_);
}

int WalPreallocation::committed(void* self, sqlite3* database, const char* name, int pages) {
  auto& wal = *static_cast<WalPreallocation*>(self);
  const auto now = static_cast<std::uint64_t>(pages);
  if (now < wal.pages_) {  // written from its beginning again; it may have been cut back
    wal.preallocated_ = 0;
    wal.space_checked_at_ = 0;
  }
  wal.pages_ = now;
  // As SQLite's own hook does: whatever hinders a checkpoint, the commit has happened.
  if (wal.is_time_for_checkpoint())
    sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  return SQLITE_OK;
}

bool WalPreallocation::is_time_for_checkpoint() {
  if (pages_ >= checkpoint_pages_) return true;
  if (pages_ < space_checked_at_ + pages_between_looks) return false;
  space_checked_at_ = pages_;
  struct statvfs disk {};
  return ::statvfs(path_.c_str(), &disk) == 0 && std::uint64_t{disk.f_bavail} * disk.f_frsize < pages_ * frame_bytes;
}

void WalPreallocation::prepare() {
  const std::uint64_t needed = header_bytes + (pages_ + pages_ahead) * frame_bytes;
  if (is_off_ || needed <= preallocated_) return;
  grow(needed);
}

void WalPreallocation::grow(std::uint64_t needed) {
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat info {};
  struct statvfs disk {};
  is_off_ = file_ < 0 || ::fstat(file_, &info) != 0 || ::fstatvfs(file_, &disk) != 0 ||
            std::uint64_t{disk.f_bavail} * disk.f_frsize < free_min;
  if (is_off_) return;
  preallocated_ = static_cast<std::uint64_t>(info.st_size);
  if (preallocated_ >= needed) return;
  static constexpr char zeros[step_min] = {};
  const std::uint64_t target = std::max(needed, preallocated_ + std::clamp(preallocated_, step_min, step_max));
  while (preallocated_ < target) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(sizeof zeros, target - preallocated_));
    const ssize_t written = ::pwrite(file_, zeros, size, static_cast<off_t>(preallocated_));
    is_off_ = written <= 0;
    if (is_off_) return;
    preallocated_ += static_cast<std::uint64_t>(written);
  }
}

}  // namespace reprise::store::sqlite
