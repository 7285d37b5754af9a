// One process, and within it one store, owns a file at a time: PATH-owner is locked while it does.
//
// The lock is the kernel's (flock), so it ends with the process however that ends; the file stays, and holds the owner's
// process id for the message to whoever comes second. Thread safety: none; owned by one store.
#pragma once

#include <string>
#include <utility>

#include "store/store.hpp"

namespace reprise::store::sqlite {

class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(OwnerLock&& other) noexcept : file_{std::exchange(other.file_, -1)}, path_{std::move(other.path_)} {}
  OwnerLock& operator=(OwnerLock&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~OwnerLock();

  static Result<OwnerLock> take(const std::string& store_path);
  bool still_holds() const;  // false when somebody has deleted or replaced the lock's file

 private:
  int file_ = -1;
  std::string path_;
};

}  // namespace reprise::store::sqlite
