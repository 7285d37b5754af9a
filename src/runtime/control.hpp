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
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <reprise/error.hpp>

namespace reprise::runtime {

struct ControlRequest {
  std::string operation = {};  // by its name: run_service.cpp has the list
  std::string run = {};        // a full id
  std::string text = {};       // cancel: why. signal: its name
  std::string payload = {};
};

struct ControlLimits {
  std::size_t line_bytes_max = std::size_t{1024} * 1024;  // of a request or an answer, with its line end
  std::size_t connections_max = 64;                       // at once; others wait until one is served
  std::chrono::milliseconds time_max{10'000};             // for one connection, however slow the other end is
};

class ControlServer {
 public:
  using Handler = std::function<std::expected<void, Error>(const ControlRequest&)>;

  // For the process that owns the store. nullptr when no socket can be made (the file system has none, another server lives there …):
  // the owner works without. What the handler throws is answered as an error.
  static std::unique_ptr<ControlServer> listen(const std::string& store_path, Handler handler,
                                               ControlLimits limits = {});
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();  // waits for a call that is under way, then removes the socket

 private:
  class State;
  explicit ControlServer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// std::nullopt: nobody listens there. Otherwise the owner's answer; `timed_out` after ten seconds, when nobody knows whether it was done.
// The texts of the request must be UTF-8.
std::optional<std::expected<void, Error>> ask_owner(const std::string& store_path, const ControlRequest& request,
                                                    ControlLimits limits = {});

// Where the socket of this store is.
std::string control_socket_path(const std::string& store_path);

}  // namespace reprise::runtime
