// How fast something goes, by what happened lately: since a moment that is between one and two spans ago.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include <reprise/event.hpp>

namespace reprise::observe {

class Rate {
 public:
  void note(WallTime now, std::uint64_t done) {
    if (!last_ || done < last_->done ||
        now < last_->time - span) {  // it begins, begins again, or the clock was set back
      before_ = last_ = Sample{now, done};
    } else if (now - last_->time >= span) {
      before_ = last_;
      last_ = Sample{now, done};
    }
  }

  // Nothing when too little is known.
  std::optional<double> per_second(WallTime now, std::uint64_t done) const {
    if (!before_ || now - before_->time < shortest || done <= before_->done) return std::nullopt;
    return static_cast<double>(done - before_->done) / std::chrono::duration<double>(now - before_->time).count();
  }

 private:
  static constexpr Duration span = std::chrono::seconds{10};
  static constexpr Duration shortest = std::chrono::milliseconds{500};
  struct Sample {
    WallTime time;
    std::uint64_t done;
  };
  std::optional<Sample> before_;
  std::optional<Sample> last_;
};

}  // namespace reprise::observe
