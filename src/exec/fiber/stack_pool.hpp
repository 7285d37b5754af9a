// Stacks for fibers: memory with a page below it that nobody may touch, so that one which is too small ends the program instead of writing elsewhere.
//
// Thread safety: none; each thread of functions has a pool of its own.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace reprise::exec {

struct Stack {
  void* mapped = nullptr;  // the guard page and what follows
  std::size_t size = 0;    // without the guard page

  void* top() const noexcept;
  void* bottom() const noexcept;
};

class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // Throws std::bad_alloc.
  Stack take(std::size_t size);
  void give_back(Stack stack) noexcept;
  std::size_t bytes() const noexcept { return bytes_; }  // of those that are out

 private:
  static constexpr std::size_t spare_max = 256;

  std::vector<Stack> spare_;
  std::size_t bytes_ = 0;
};

}  // namespace reprise::exec
