// One process, and within it one store, owns a database file at a time.
//
// The lock is the kernel's (flock) and is on the file itself: whatever name leads to it (a symbolic link, a hard link), there is one lock,
// and it ends with the process however that ends. PATH-owner beside it is locked too, for older programs, which only look
// there; it holds the owner's process id. The lock's descriptor is closed when no connection of this process uses the file any more
// (open_files.hpp).
// Thread safety: none; owned by one store.
#pragma once

#include <string>
#include <utility>

#include "store/sqlite/open_files.hpp"
#include "store/store.hpp"

namespace reprise::store::sqlite {

class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(OwnerLock&& other) noexcept
      : database_{std::exchange(other.database_, -1)},
        beside_{std::exchange(other.beside_, -1)},
        was_left_behind_{other.was_left_behind_},
        file_{other.file_},
        path_{std::move(other.path_)} {}
  OwnerLock& operator=(OwnerLock&& other) noexcept {
    std::swap(database_, other.database_);
    std::swap(beside_, other.beside_);
    std::swap(was_left_behind_, other.was_left_behind_);
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~OwnerLock();

  // Of the file at this path, which is made (empty) when there is none. `store_locked` names the owner if it can be known.
  static Result<OwnerLock> take(const std::string& path);

  // The owner before this one died: who lets go takes its process id out of PATH-owner.
  bool was_left_behind() const noexcept { return was_left_behind_; }
  FileId file() const noexcept { return file_; }
  bool is_at_its_path() const { return file_id_at(path_) == file_; }  // false: it was removed, moved or replaced

 private:
  Result<void> lock_database();
  Result<void> lock_beside();

  int database_ = -1;
  int beside_ = -1;
  bool was_left_behind_ = false;
  FileId file_;
  std::string path_;
};

// The process that has the lock of the store at this path, from the kernel's list; empty: none, or the kernel does not say.
std::string owner_of(const std::string& path);

}  // namespace reprise::store::sqlite
