#include "store/sqlite/open_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise::store::sqlite {
namespace {

struct Used {
  std::size_t connections = 0;
  std::vector<int> to_close;
};

struct Table {
  std::mutex mutex;
  std::map<FileId, Used> files;
};

Table& table() {
  static Table the_table;
  return the_table;
}

// Only the inode is asked for: Linux 6.13 and later write the times of a file that somebody has seen with every write that follows, which
// costs a commit half as much again.
std::optional<FileId> file_id(int folder, const char* path, int flags) {
  struct statx info {};
  if (statx(folder, path, flags, STATX_INO, &info) != 0) return std::nullopt;
  return FileId{makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino};
}

}  // namespace

std::optional<FileId> file_id_of(int descriptor) { return file_id(descriptor, "", AT_EMPTY_PATH); }
std::optional<FileId> file_id_at(const std::string& path) { return file_id(AT_FDCWD, path.c_str(), 0); }

FileUse::FileUse(std::optional<FileId> file) : file_{file} {
  if (!file_) return;
  const std::scoped_lock lock{table().mutex};
  ++table().files[*file_].connections;
}

FileUse::FileUse(FileUse&& other) noexcept : file_{std::exchange(other.file_, std::nullopt)} {}

FileUse& FileUse::operator=(FileUse&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FileUse::~FileUse() {
  if (!file_) return;
  const std::scoped_lock lock{table().mutex};
  const auto used = table().files.find(*file_);
  if (--used->second.connections > 0) return;
  for (const int descriptor : used->second.to_close) close(descriptor);
  table().files.erase(used);
}

void close_when_unused(int descriptor) {
  const std::scoped_lock lock{table().mutex};
  const auto file = file_id_of(descriptor);
  const auto used = file ? table().files.find(*file) : table().files.end();
  if (used != table().files.end()) {
    used->second.to_close.push_back(descriptor);
  } else {
    close(descriptor);
  }
}

}  // namespace reprise::store::sqlite
