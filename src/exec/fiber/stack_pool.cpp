#include "exec/fiber/stack_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace reprise::exec {
namespace {

std::size_t page() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

void unmap(const Stack& stack) noexcept { ::munmap(stack.mapped, stack.size + page()); }

}  // namespace

void* Stack::bottom() const noexcept { return static_cast<char*>(mapped) + page(); }
void* Stack::top() const noexcept { return static_cast<char*>(bottom()) + size; }

StackPool::~StackPool() { std::ranges::for_each(spare_, unmap); }

Stack StackPool::take(std::size_t size) {
  const std::size_t smallest = 4 * page();
  size = (std::max(size, smallest) + page() - 1) / page() * page();
  const auto found = std::ranges::find(spare_, size, &Stack::size);
  if (found != spare_.end()) {
    const Stack stack = *found;
    *found = spare_.back();
    spare_.pop_back();
    bytes_ += stack.size;
    return stack;
  }
  void* const mapped = ::mmap(nullptr, size + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc{};
  const Stack stack{mapped, size};
  if (::mprotect(mapped, page(), PROT_NONE) != 0) {
    unmap(stack);
    throw std::bad_alloc{};
  }
  bytes_ += size;
  return stack;
}

void StackPool::give_back(Stack stack) noexcept {
  bytes_ -= stack.size;
  if (spare_.size() == spare_max) return unmap(stack);
  spare_.push_back(stack);
}

}  // namespace reprise::exec
