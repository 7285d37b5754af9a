// Keeps the beginning and the end of a stream, however long the stream is.
//
//   Capture capture{{.head = 64 << 10, .tail = 64 << 10}};
//   capture.add(piece);  …  CapturedText text = capture.take();
//
// Bounds: head + 2 * tail bytes (whole + 2 * tail, when a whole is wanted). Adding costs the copy of the bytes that are kept, no more.
// Thread safety: none; one stream, one capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "exec/process/process_runner.hpp"

namespace reprise::exec {

struct CaptureLimits {
  std::size_t head = 0;
  std::size_t tail = 0;
  std::size_t whole = 0;  // up to this size nothing goes missing either; of a longer stream head and tail are left
};

class Capture {
 public:
  Capture() = default;
  explicit Capture(CaptureLimits limits) noexcept : limits_{limits} {}

  void add(std::string_view piece);
  CapturedText take();

 private:
  void cut_to_limits();

  CaptureLimits limits_;
  std::string head_;
  std::string tail_;
  std::uint64_t size_ = 0;
};

}  // namespace reprise::exec
