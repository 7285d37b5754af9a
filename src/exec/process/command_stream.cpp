#include "exec/process/command_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace reprise::exec {
namespace {

constexpr std::size_t usual_pipe_bytes = std::size_t{64} << 10U;
constexpr int large_pipe_bytes = 1 << 20;
constexpr int first_free = 3;

Descriptor above_standard(Descriptor descriptor) {
  if (descriptor.get() >= first_free) return descriptor;
  return Descriptor{::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, first_free)};
}

}  // namespace

Descriptor CommandStream::open() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  pipe_ = Descriptor{ends[0]};
  // Ours only: a command may take it badly when a write of its own would not block.
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  return above_standard(Descriptor{ends[1]});
}

bool CommandStream::listen(int epoll, std::uint64_t token) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = token}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_.get(), &event) != 0) return false;
  epoll_ = epoll;
  return true;
}

// Not left to close(): a process that was forked elsewhere in this program may hold the pipe too, and epoll would report it for ever.
void CommandStream::pause() noexcept {
  if (!is_paused()) ::epoll_ctl(std::exchange(epoll_, -1), EPOLL_CTL_DEL, pipe_.get(), nullptr);
}

std::size_t CommandStream::read_some(std::span<char> buffer) {
  if (!is_open()) return 0;
  const ssize_t count = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) {
    close();
    return 0;
  }
  const auto size = static_cast<std::size_t>(count);
  // Only for those that write a lot: large pipes are counted per user, and the system gives everybody small ones when they are used up.
  if (size >= usual_pipe_bytes && !is_large_) {
    is_large_ = true;
    ::fcntl(pipe_.get(), F_SETPIPE_SZ, large_pipe_bytes);
  }
  take_in({buffer.data(), size});
  return size;
}

// Not until the end of the stream: a grandchild may hold it open, and write to it, for ever.
void CommandStream::read_rest(std::span<char> buffer) {
  if (!is_open()) return;
  int available = 0;
  if (::ioctl(pipe_.get(), FIONREAD, &available) != 0) available = 0;
  auto left = static_cast<std::size_t>(available);
  while (left > 0) {
    const std::size_t size = read_some(buffer.first(std::min(left, buffer.size())));
    if (size == 0) break;
    left -= size;
  }
  close();
}

void CommandStream::take_in(std::string_view piece) {
  if (whole_ != nullptr) whole_->write(piece);
  if (mask_.is_idle()) return pass_on(piece);
  std::string masked;
  masked.reserve(piece.size());
  mask_.feed(piece, masked);
  pass_on(masked);
}

void CommandStream::pass_on(std::string_view masked) {
  kept_.add(masked);
  log_->write(masked);
  if (relay_to_ < 0 || masked.empty()) return;
  unrelayed_ += masked;
  relay();
}

void CommandStream::close() {
  if (!is_open()) return;
  pause();
  pipe_.close();
  std::string last;
  mask_.finish(last);
  if (!last.empty()) pass_on(last);
}

// Nobody will ever read it. Results that get lost end the command, as they would end it without us: its next write fails.
void CommandStream::stop_relaying(int why) {
  give_up_relaying();
  if (relay_to_ != STDOUT_FILENO) return;
  relay_to_ = -1;
  relay_errno_ = why;
  close();
}

void CommandStream::relay() {
  std::size_t done = 0;
  while (done < unrelayed_.size()) {
    pollfd target{.fd = relay_to_, .events = POLLOUT, .revents = 0};
    if (::poll(&target, 1, 0) == 0) break;
    // So much a pipe that is ready takes without blocking.
    const ssize_t count =
        ::write(relay_to_, unrelayed_.data() + done, std::min<std::size_t>(unrelayed_.size() - done, PIPE_BUF));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return stop_relaying(errno);
    done += static_cast<std::size_t>(count);
  }
  unrelayed_.erase(0, done);
}

}  // namespace reprise::exec
