#include "exec/process/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/saturating_time.hpp"
#include "exec/time_limit.hpp"

namespace reprise::exec {
namespace {

using TimePoint = Env::TimePoint;

constexpr int looks_per_stall = 8;  // so that a stall is seen at most an eighth of its time late
constexpr Duration look_every_min = std::chrono::milliseconds{1};
constexpr Duration relay_every = std::chrono::milliseconds{20};
constexpr Duration tell_every = std::chrono::milliseconds{100};

// O_NONBLOCK only for the opening: a FIFO without a writer must not hold up the other commands.
std::expected<Descriptor, SpawnProblem> open_input(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.is_open()) return std::unexpected{explain_input_problem(path, errno)};
  struct stat status = {};
  if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode))
    return std::unexpected{explain_input_problem(path, EISDIR)};
  ::fcntl(file.get(), F_SETFL, 0);
  if (file.get() <= STDERR_FILENO) file = Descriptor{::fcntl(file.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  return file;
}

}  // namespace

Command::Command(ProcessSpec spec, ProcessRunner::Done done_callback, ProcessRunner::SignOfLife progress_callback,
                 Guardian* guardian)
    : done{std::move(done_callback)},
      progress{std::move(progress_callback)},
      spec_{std::move(spec)},
      guardian_{guardian},
      log_{spec_.log_file, OutputFile::Existing::append, spec_.private_folder},
      whole_{spec_.stdout_file, spec_.private_folder, spec_.keep_head + spec_.keep_tail},
      out_{{.head = spec_.keep_head, .tail = spec_.keep_tail, .whole = spec_.stdout_max}, spec_.secrets, &log_},
      err_{{.head = spec_.keep_head, .tail = spec_.keep_tail}, spec_.secrets, &log_} {
  if (!spec_.stdout_file.empty()) out_.also_to(&whole_);
  if (spec_.stderr_through) err_.also_to(STDERR_FILENO);
  if (spec_.stdout_through) out_.also_to(STDOUT_FILENO);
}

Command::~Command() {
  if (group_ == 0) return;
  signal_group(SIGKILL);
  reap();
}

std::optional<SpawnProblem> Command::start(Spawner& spawner, int null_input, TimePoint now) {
  Descriptor input;
  if (!spec_.stdin_file.empty()) {
    std::expected<Descriptor, SpawnProblem> opened = open_input(spec_.stdin_file);
    if (!opened) return std::move(opened).error();
    input = *std::move(opened);
  }
  const Descriptor out = out_.open();
  const Descriptor err = out.is_open() ? err_.open() : Descriptor{};
  if (!err.is_open())
    return SpawnProblem{errno, "no pipe could be made for its output: " + std::generic_category().message(errno)};

  if (spec_.stall_timeout > Duration{0}) progress_file_ = look_at_progress_file();
  slot_ = guardian_ != nullptr ? guardian_->take() : nullptr;
  std::expected<Spawned, SpawnProblem> spawned = spawner.spawn(
      spec_, {.in = input.is_open() ? input.get() : null_input, .out = out.get(), .err = err.get()}, slot_);
  if (!spawned) {
    if (guardian_ != nullptr) guardian_->give_back(std::exchange(slot_, nullptr));
    return std::move(spawned).error();
  }
  group_ = spawned->pid;
  process_ = std::move(spawned->process);
  began_ = last_sign_ = last_look_ = now;
  last_told_ = now - tell_every;
  if (spec_.timeout > Duration{0}) timeout_at_ = base::later(now, spec_.timeout);
  return std::nullopt;
}

bool Command::read(CommandStream& stream, std::span<char> buffer, TimePoint now) {
  return stream.read_some(buffer) > 0 && note_sign_of_life(now);
}

bool Command::note_sign_of_life(TimePoint now) noexcept {
  last_sign_ = now;
  if (now - last_told_ < tell_every) return false;
  last_told_ = now;
  return true;
}

// ---- When it has to be stopped ----------------------------------------

Duration Command::look_every() const noexcept {
  if (spec_.progress_file.empty()) return spec_.stall_timeout;
  return std::max<Duration>(spec_.stall_timeout / looks_per_stall, look_every_min);
}

TimePoint Command::next_look() const noexcept {
  TimePoint next = never;
  if (!has_exited_ && !was_asked_to_stop_) {
    next = timeout_at_;
    if (spec_.stall_timeout > Duration{0}) {
      next = std::min(next, base::later(last_sign_, spec_.stall_timeout));
      next = std::min(next, base::later(std::max(last_look_, last_sign_), look_every()));
    }
  } else if (!has_exited_ && !was_killed_) {
    next = kill_at_;
  }
  return is_held_up() ? std::min(next, base::later(last_look_, relay_every)) : next;
}

bool Command::look(TimePoint now) {
  last_look_ = now;
  for (CommandStream* const stream : {&out_, &err_}) {
    if (stream->is_held_up()) stream->relay();
  }
  if (has_exited_) {
    if (now >= timeout_at_) give_up_relaying();
    return false;
  }
  timeout_at_ = fair_due(timeout_at_, spec_.timeout, now);
  if (was_asked_to_stop_) {
    if (now >= kill_at_ && !was_killed_) {
      end_.had_to_kill = true;
      kill();
    }
  } else if (now >= timeout_at_) {
    stop(StopCause::timeout, now);
  } else if (spec_.stall_timeout > Duration{0}) {
    return look_for_stall(now);
  }
  return false;
}

bool Command::look_for_stall(TimePoint now) {
  bool tell = false;
  if (const FileState state = look_at_progress_file(); state != progress_file_) {
    progress_file_ = state;
    tell = note_sign_of_life(now);
  }
  if (is_held_up()) last_sign_ = now;  // it waits for our own stderr and is not to blame
  last_sign_ = fair_due(base::later(last_sign_, spec_.stall_timeout), spec_.stall_timeout, now) - spec_.stall_timeout;
  if (now - last_sign_ >= spec_.stall_timeout) stop(StopCause::stall, now);
  return tell;
}

Command::FileState Command::look_at_progress_file() const {
  struct stat status = {};
  if (spec_.progress_file.empty() || ::stat(spec_.progress_file.c_str(), &status) != 0) return {};
  return {.exists = true,
          .inode = status.st_ino,
          .size = status.st_size,
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

bool Command::has_ended_unseen() const noexcept {
  pollfd process{.fd = process_.get(), .events = POLLIN, .revents = 0};
  return !has_exited_ && ::poll(&process, 1, 0) > 0;
}

void Command::stop(StopCause cause, TimePoint now) {
  if (cause == StopCause::cancel) end_.canceled = true;
  if (has_exited_) return give_up_relaying();
  if (std::exchange(was_asked_to_stop_, true)) return;
  if (cause == StopCause::timeout) end_.timed_out = true;
  if (cause == StopCause::stall) end_.stalled = true;
  kill_at_ = base::later(now, spec_.grace);
  signal_group(SIGTERM);
  signal_group(SIGCONT);  // one that was halted has to wake up to hear the other
}

void Command::give_up_relaying() noexcept {
  out_.give_up_relaying();
  err_.give_up_relaying();
}

void Command::kill() {
  was_killed_ = true;
  signal_group(SIGKILL);
}

void Command::signal_group(int number) noexcept {
  if (group_ > 1) ::kill(-group_, number);
}

// ---- The end ----------------------------------------

void Command::exited(std::span<char> buffer, TimePoint now) {
  has_exited_ = true;
  end_.ran = now - began_;
  out_.read_rest(buffer);
  err_.read_rest(buffer);
  if (was_asked_to_stop_) give_up_relaying();
  // The leader is still a zombie: until it is reaped its number cannot belong to another group.
  signal_group(SIGKILL);
  reap();
}

void Command::reap() {
  if (guardian_ != nullptr) guardian_->give_back(std::exchange(slot_, nullptr));
  siginfo_t info = {};
  int result = 0;
  do {
    result = ::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED);
  } while (result < 0 && errno == EINTR);
  group_ = 0;
  process_.close();
  if (result < 0) {
    end_.spawn_errno = errno;
    end_.spawn_problem =
        "how the command ended is not known: another part of this program waits for all children, or ignores SIGCHLD";
  } else if (info.si_code == CLD_EXITED) {
    end_.exit_code = info.si_status;
  } else {
    end_.signal = info.si_status;
  }
}

ProcessEnd Command::take_end() {
  end_.out = out_.take();
  end_.err = err_.take();
  end_.log_problem = log_.problem();
  end_.relay_errno = out_.relay_errno();
  if (end_.exit_code != 0) return std::move(end_);  // nobody gets the output of an attempt that has failed
  if (auto kept = whole_.finish(end_.out.head)) {
    end_.kept_stdout = *std::move(kept);
  } else {
    end_.stdout_problem = std::move(kept).error();
  }
  return std::move(end_);
}

}  // namespace reprise::exec
