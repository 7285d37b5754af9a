#include "exec/fiber/fiber.hpp"

#include <cxxabi.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <cstring>
#include <utility>

#ifdef __has_feature
#define REPRISE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define REPRISE_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || REPRISE_HAS_FEATURE(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define REPRISE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) || REPRISE_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define REPRISE_TSAN 1
#endif

namespace reprise::exec {

namespace context = boost::context::detail;

struct Fiber::Switch {
  static_assert(sizeof(ExceptionState) >= sizeof(void*) + sizeof(unsigned int));

  static void enter(context::transfer_t from) {
    Fiber& self = *static_cast<Fiber*>(from.data);
    self.outside_ = from.fctx;
    arrived_inside(self, nullptr);
    self.body_();
    self.ended_ = true;
    leaves_inside(self, true);
    context::jump_fcontext(self.outside_, nullptr);
    std::abort();  // nobody resumes one that has ended
  }

  static void swap(ExceptionState& kept) {
    ExceptionState& current = *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
    std::swap(current.caught, kept.caught);
    std::swap(current.uncaught, kept.uncaught);
  }

#ifdef REPRISE_ASAN
  static void leaves_outside(Fiber& fiber, void*& shadow) {
    __sanitizer_start_switch_fiber(&shadow, fiber.stack_.bottom(), fiber.stack_.size);
  }
  static void arrived_outside(void* shadow) { __sanitizer_finish_switch_fiber(shadow, nullptr, nullptr); }
  static void arrived_inside(Fiber& fiber, void* shadow) {
    __sanitizer_finish_switch_fiber(shadow, &fiber.outside_bottom_, &fiber.outside_size_);
  }
  static void leaves_inside(Fiber& fiber, bool for_ever) {
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fiber.shadow_, fiber.outside_bottom_, fiber.outside_size_);
    tell_watcher(fiber.watcher_outside_);
  }
#else
  static void leaves_outside(Fiber&, void*&) {}
  static void arrived_outside(void*) {}
  static void arrived_inside(Fiber&, void*) {}
  static void leaves_inside(Fiber& fiber, bool) { tell_watcher(fiber.watcher_outside_); }
#endif
#ifdef REPRISE_TSAN
  static void tell_watcher(void* watcher) { __tsan_switch_to_fiber(watcher, 0); }
#else
  static void tell_watcher(void*) {}
#endif
};

Fiber::Fiber(StackPool& stacks, std::size_t stack_size, std::move_only_function<void()> body)
    : stacks_{stacks}, stack_{stacks.take(stack_size)}, body_{std::move(body)} {
  inside_ = context::make_fcontext(stack_.top(), stack_.size, &Switch::enter);
#ifdef REPRISE_TSAN
  watcher_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef REPRISE_TSAN
  __tsan_destroy_fiber(watcher_);
#endif
  stacks_.give_back(stack_);
}

void Fiber::resume() {
  void* shadow = nullptr;
#ifdef REPRISE_TSAN
  watcher_outside_ = __tsan_get_current_fiber();
#endif
  Switch::swap(exceptions_);
  Switch::leaves_outside(*this, shadow);
  Switch::tell_watcher(watcher_);
  const context::transfer_t back = context::jump_fcontext(inside_, this);
  inside_ = back.fctx;
  Switch::arrived_outside(shadow);
  Switch::swap(exceptions_);
}

void Fiber::park() {
  Switch::leaves_inside(*this, false);
  const context::transfer_t back = context::jump_fcontext(outside_, nullptr);
  outside_ = back.fctx;
  Switch::arrived_inside(*this, shadow_);
}

}  // namespace reprise::exec
