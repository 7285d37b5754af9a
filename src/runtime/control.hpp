// How other processes speak with the one that owns a store: a Unix socket beside it.
//
// The owner listens on PATH.sock (a path too long for a socket: in the temporary directory, named by a hash of the path). One connection,
// one line of JSON each way: {"operation": "cancel", "run": "0191…", "text": "…", "payload": "…"} → {"ok": true} or
// {"ok": false, "code": "invalid", "message": "…"}. Only the same user may connect (mode 0600, and both ends check the other's uid).
// A socket whose owner is dead is replaced; one whose owner lives never is: the newer server gets nothing and works without.
// Thread safety: the handler is called from the server's thread, one call at a time; ask_owner() may be called from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reprise/error.hpp>

namespace reprise::runtime {

// submit: what a Task says, with times in milliseconds.
struct ControlTask {
  std::string handler = {};
  std::string flow = {};
  std::string input = {};
  std::vector<std::string> items = {};
  std::string key = {};
  std::uint64_t delay_ms = 0;
  std::uint32_t priority = 5;
  std::optional<std::uint64_t> deadline_ms = {};
  std::map<std::string, std::string> labels = {};
  std::string queue = {};
  std::string tenant = {};
  std::string traceparent = {};
  std::uint64_t max_tokens = 0;  // of its cost; 0 = no limit
  std::uint64_t max_micros = 0;

  bool operator==(const ControlTask&) const = default;
};

// What one end does not know it passes over.
struct ControlRequest {
  std::string operation = {};  // by its name: run_service.cpp has the list
  std::string run = {};        // a full id
  std::string text = {};       // cancel: why. signal: its name. retry, drop: the step
  std::string payload = {};    // signal: what it brings. retry, drop: the number of the item
  std::string request = {};    // its id, a UUID; the same request changes nothing twice
  std::string by = {};         // who asks
  std::string why = {};
  std::optional<ControlTask> task = {};
};

struct ControlDone {
  std::string run = {};  // submit: its id

  bool operator==(const ControlDone&) const = default;
};
using ControlAnswer = std::expected<ControlDone, Error>;

struct ControlLimits {
  std::size_t line_bytes_max = std::size_t{1024} * 1024;  // of a request or an answer, with its line end
  std::size_t connections_max = 64;                       // at once; others wait until one is served
  std::chrono::milliseconds time_max{10'000};             // for one connection, however slow the other end is
};

class ControlServer {
 public:
  // The answer may come from any thread, at once or later; one that comes again, or after the server is gone, is for nobody.
  using Answered = std::function<void(ControlAnswer)>;
  using Handler = std::function<void(const ControlRequest&, Answered)>;

  // For the process that owns the store. nullptr when no socket can be made (the file system has none, another server lives there …):
  // the owner works without. What the handler throws is answered as an error. Its calls come one at a time, from the server's thread: while it
  // blocks, nobody else is served.
  static std::unique_ptr<ControlServer> listen(const std::string& store_path, Handler handler,
                                               ControlLimits limits = {});
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();  // waits until what was asked is answered, as long as a connection may take, then removes the socket

 private:
  class State;
  explicit ControlServer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// std::nullopt: nobody listens there. Otherwise the owner's answer; `timed_out` after ten seconds, when nobody knows whether it was done.
// The texts of the request must be UTF-8.
std::optional<ControlAnswer> ask_owner(const std::string& store_path, const ControlRequest& request,
                                       ControlLimits limits = {});

// Where the socket of this store is.
std::string control_socket_path(const std::string& store_path);

}  // namespace reprise::runtime
