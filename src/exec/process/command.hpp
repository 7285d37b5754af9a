// One command from its start to its end: what it was asked, its process, its streams, and when it has to be stopped.
//
// It acts only when the runner calls it, and never waits. Thread safety: none; the thread of the runner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include <reprise/env.hpp>

#include "exec/process/command_stream.hpp"
#include "exec/process/process_runner.hpp"
#include "exec/process/spawn.hpp"

namespace reprise::exec {

enum class StopCause : std::uint8_t { timeout, stall, cancel };

class Command {
 public:
  using TimePoint = Env::TimePoint;
  static constexpr TimePoint never = TimePoint::max();

  Command(ProcessSpec spec, ProcessRunner::Done done, ProcessRunner::SignOfLife progress, Guardian* guardian);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();  // kills and reaps what still runs

  std::optional<SpawnProblem> start(Spawner& spawner, int null_input, TimePoint now);

  int process() const noexcept { return process_.get(); }
  CommandStream& out() noexcept { return out_; }
  CommandStream& err() noexcept { return err_; }

  // True: the runner should tell others about this sign of life.
  bool read(CommandStream& stream, std::span<char> buffer, TimePoint now);

  TimePoint next_look() const noexcept;
  bool look(TimePoint now);  // whatever is due. True: a sign of life to tell

  bool has_exited() const noexcept { return has_exited_; }
  bool has_ended_unseen() const noexcept;  // its process is over, and exited() was not called yet

  void stop(StopCause cause, TimePoint now);  // TERM now, KILL when the grace is over
  void kill();                                // KILL now

  // The process has exited. The command is over when is_over() says so: our stderr may still have to take what it wrote.
  void exited(std::span<char> buffer, TimePoint now);
  bool is_over() const noexcept { return has_exited_ && !is_held_up(); }
  bool is_held_up() const noexcept { return out_.is_held_up() || err_.is_held_up(); }
  ProcessEnd take_end();

  ProcessRunner::Done done;
  ProcessRunner::SignOfLife progress;
  TimePoint armed_for = never;  // the timer that the runner has set for it

 private:
  void give_up_relaying() noexcept;
  struct FileState {
    bool exists = false;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    bool operator==(const FileState&) const = default;
  };

  FileState look_at_progress_file() const;
  bool note_sign_of_life(TimePoint now) noexcept;
  bool look_for_stall(TimePoint now);  // True: there was a sign of life to tell
  void signal_group(int number) noexcept;
  void reap();
  Duration look_every() const noexcept;

  ProcessSpec spec_;
  Guardian* guardian_;
  Guardian::Slot* slot_ = nullptr;
  pid_t group_ = 0;  // 0: there is none, or it is gone
  Descriptor process_;
  OutputFile log_;
  WholeOutput whole_;
  CommandStream out_;
  CommandStream err_;
  ProcessEnd end_;

  TimePoint began_{};
  TimePoint timeout_at_ = never;
  TimePoint kill_at_ = never;
  TimePoint last_sign_{};
  TimePoint last_told_{};
  TimePoint last_look_{};
  FileState progress_file_;
  bool was_asked_to_stop_ = false;
  bool was_killed_ = false;
  bool has_exited_ = false;
};

}  // namespace reprise::exec
