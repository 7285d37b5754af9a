// One of the two output streams of a command: the pipe, what is kept of it, and where else it goes.
//
//   pipe → mask → kept, log file (shared by both streams), our own stdout or stderr if wanted
//        → the whole, unmasked, if wanted
//
// Ours may be a pipe that nobody reads, or a terminal that was stopped. What it does not take at once waits here, and is_held_up()
// tells the owner to read no more until relay() has got rid of it: the command has to wait then, the others do not.
//
// Thread safety: none; the thread of the runner. Bounds: what is kept, and one buffer that our stderr has not taken yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "exec/process/capture.hpp"
#include "exec/process/output_file.hpp"
#include "exec/process/whole_output.hpp"
#include "exec/secrets/mask.hpp"

namespace reprise::exec {

class CommandStream {
 public:
  CommandStream(CaptureLimits limits, std::shared_ptr<const SecretTable> secrets, OutputFile* log)
      : mask_{std::move(secrets)}, kept_{limits}, log_{log} {}

  void also_to(WholeOutput* whole) noexcept { whole_ = whole; }
  void also_to(int descriptor) noexcept { relay_to_ = descriptor; }  // our stdout or stderr

  // Makes the pipe and returns the end for the child, numbered at least 3. Not open: errno tells why.
  Descriptor open();
  bool is_open() const noexcept { return pipe_.is_open(); }

  // Has the pipe reported by epoll, until pause() or the end of the stream.
  bool listen(int epoll, std::uint64_t token);
  void pause() noexcept;
  bool is_paused() const noexcept { return epoll_ < 0; }

  std::size_t read_some(std::span<char> buffer);  // one piece; closes at the end of the stream. How many bytes
  void read_rest(std::span<char> buffer);         // what is in the pipe now; then closes, whoever else may hold it

  bool is_held_up() const noexcept { return !unrelayed_.empty(); }
  void relay();
  void give_up_relaying() noexcept { unrelayed_.clear(); }

  int relay_errno() const noexcept { return relay_errno_; }  // why our stdout has not got all of it; 0: it has

  CapturedText take() { return kept_.take(); }

 private:
  void take_in(std::string_view piece);
  void pass_on(std::string_view masked);
  void close();
  void stop_relaying(int why);

  Descriptor pipe_;
  int epoll_ = -1;  // that reports it; -1 = none
  bool is_large_ = false;
  Masker mask_;
  Capture kept_;
  OutputFile* log_;
  WholeOutput* whole_ = nullptr;
  int relay_to_ = -1;  // -1 = nowhere
  int relay_errno_ = 0;
  std::string unrelayed_;
};

}  // namespace reprise::exec
