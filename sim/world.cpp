// The heap of happenings.
#include "sim/world.hpp"

#include <algorithm>
#include <bit>

namespace reprise::sim {

void World::at(Time when, std::function<void()> what) {
  queue_.push_back({std::max(when, now_), order_++, std::move(what)});
  std::ranges::push_heap(queue_, is_later);
}

void World::run_next() {
  std::ranges::pop_heap(queue_, is_later);
  Happening happening = std::move(queue_.back());
  queue_.pop_back();
  now_ = happening.when;
  happening.what();
}

Time World::span(Time low, Time high) {
  const auto bits_low = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(std::max<Time>(low, 1))));
  const auto bits_high = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(std::max<Time>(high, 1))));
  const Time top = Time{1} << between(bits_low, bits_high);
  return std::clamp(between(top / 2, top), low, high);
}

}  // namespace reprise::sim
