// What the journal holds: how long its frames are, and which runs still need which of them.
//
// A run is in the journal from the first of its events that no image has until its next image. A frame can be cut when no run needs it or one
// before it. This class only counts; the loop writes images and tells.
// Thread safety: none; it belongs to a loop.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace reprise::runtime {

class Journal {
 public:
  explicit Journal(std::size_t bytes_max) : bytes_max_{bytes_max} {}

  void add_frame(std::uint64_t commit, std::size_t bytes);
  void add_run(std::uint64_t run, std::uint64_t oldest_commit);  // it needs the frames from this commit on
  // All of it comes from an earlier process. What that left goes with the first commit: many short processes would never come to a
  // long journal, and each would read it all.
  void inherit() noexcept { is_inherited_ = !frames_.empty(); }

  std::size_t bytes() const noexcept { return bytes_; }
  bool is_too_long() const noexcept { return bytes_ > bytes_max_; }

  struct Entry {
    std::uint64_t run;
    std::uint64_t oldest_commit;  // when it was added: a run with another one by now has got an image since
  };
  // The run that has been in it longest.
  const Entry* oldest() const noexcept { return runs_.empty() ? nullptr : &runs_.front(); }
  void drop_oldest() { runs_.pop_front(); }

  // Once all runs that need no frame any more are dropped: the last commit whose frame goes, if any does. Asked for each commit.
  std::optional<std::uint64_t> cut();

 private:
  struct Frame {
    std::uint64_t commit;
    std::size_t bytes;
  };

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  bool is_inherited_ = false;
  std::deque<Frame> frames_;
  std::deque<Entry> runs_;  // the oldest first
};

}  // namespace reprise::runtime
