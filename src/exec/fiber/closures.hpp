// What functions run by themselves (Context::run): closures that wait for a thread of the handlers, by run and path.
//
// A closure looks into its function's stack, so the function stays where it is until the closure has returned, whatever becomes of the run.
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include <reprise/engine.hpp>

namespace reprise::exec {

class Closures {
 public:
  using Closure = std::function<std::expected<std::string, Failure>()>;

  void add(std::uint64_t run, const std::string& path, Closure closure);
  // False: it is running, and `when_it_has_returned` is called from its thread.
  bool remove(std::uint64_t run, const std::string& path, std::function<void()> when_it_has_returned);
  // Removes those of this run; first waits for those that are running. False: one of them does not return.
  bool remove_all(std::uint64_t run);
  // For a thread of the handlers: waits for it a while, because after a restart the function is still to be replayed.
  std::expected<std::string, Failure> call(std::uint64_t run, const std::string& path, const std::stop_token& stop);

 private:
  struct Entry {
    Closure closure;
    bool is_running = false;
    std::function<void()> when_it_has_returned = {};
  };
  using Key = std::pair<std::uint64_t, std::string>;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Key, Entry> entries_;
};

}  // namespace reprise::exec
