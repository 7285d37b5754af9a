// SIGINT, SIGTERM and SIGHUP as calls instead of the end of the program; and, for those who draw on the terminal, a word before Ctrl-Z stops it
// and when it goes on. SIGHUP that was ignored from the start (nohup) stays ignored.
//
// Made before any other thread is, so that all of them leave these signals alone. Commands that are started get them back as usual.
// Thread safety: the handler is called from a thread of its own, one call at a time.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace reprise::cli {

class Interrupts {
 public:
  using Handler = std::function<void(int signal)>;

  struct Stops {  // both are called from the handler's thread
    std::function<void()> before;
    std::function<void()> after;
  };

  explicit Interrupts(bool also_stops = false);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  // Until handle(): waits until there is something to read (or its end), or a signal has come. Gives the signal, or 0.
  int wait_to_read(int descriptor) const;

  // The same without anything to read, for so long.
  int wait_for(std::chrono::milliseconds time) const;

  void handle(Handler handler, Stops stops = {});  // from now on; signals that came before are told at once
  void stop();  // the handler is not called any more, nor running; signals are ignored

 private:
  void take(int signal, const Handler& handler, const Stops& stops) const;

  int signals_ = -1;
  int quit_ = -1;
  std::thread thread_;
};

}  // namespace reprise::cli
