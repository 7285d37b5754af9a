// Which files this process uses through SQLite, and what a path leads to at this moment.
//
// POSIX has a trap: a process that closes any descriptor of a file loses all its locks on that file. SQLite minds this for its own
// descriptors and cannot know ours. So every connection is counted here, and a descriptor of ours is closed with the last of them.
// Thread safety: any thread; one mutex guards the table. Bounded by the connections that are open.
#pragma once

#include <sys/types.h>

#include <compare>
#include <optional>
#include <string>

namespace reprise::store::sqlite {

// The file itself, whatever its names are.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;

  auto operator<=>(const FileId&) const = default;
};

std::optional<FileId> file_id_of(int descriptor);
std::optional<FileId> file_id_at(const std::string& path);  // links are followed; std::nullopt: nothing is there

// One connection uses this file for as long as this lives. Nothing for a file that is not on a disk.
class FileUse {
 public:
  FileUse() = default;
  explicit FileUse(std::optional<FileId> file);
  FileUse(FileUse&& other) noexcept;
  FileUse& operator=(FileUse&& other) noexcept;
  ~FileUse();

 private:
  std::optional<FileId> file_;
};

// Now, or when the last connection of this process to its file has ended.
void close_when_unused(int descriptor);

}  // namespace reprise::store::sqlite
