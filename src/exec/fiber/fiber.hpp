// A piece of code with a stack of its own: it runs until it parks, and goes on there when it is resumed.
//
// The state of C++ exceptions belongs to the thread, so it is saved and restored with each switch: two fibers that park inside `catch` would
// swap their exceptions otherwise. The body must not throw, and must have ended before the fiber is destroyed.
// Thread safety: none; resume() always from the same thread.
#pragma once

#include <cstddef>
#include <functional>

#include "exec/fiber/stack_pool.hpp"

namespace reprise::exec {

class Fiber {
 public:
  Fiber(StackPool& stacks, std::size_t stack_size, std::move_only_function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  void resume();  // from outside of it; returns when it parks or has ended
  void park();    // from inside of it; returns when it is resumed
  bool has_ended() const noexcept { return ended_; }

 private:
  struct Switch;  // how one is made; knows the library that does it
  struct ExceptionState {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };

  StackPool& stacks_;
  Stack stack_;
  std::move_only_function<void()> body_;
  void* inside_ = nullptr;   // where to resume it
  void* outside_ = nullptr;  // who has resumed it
  ExceptionState exceptions_;
  bool ended_ = false;
  // For the sanitizers, which have to know on which stack the code runs.
  void* watcher_ = nullptr;
  void* watcher_outside_ = nullptr;
  void* shadow_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace reprise::exec
