// How other processes speak with the one that owns a store: a Unix socket beside it.
//
// The owner listens on PATH.sock (a path too long for a socket: in the temporary directory, named by a hash of the path). One connection,
// one line of JSON each way: {"operation": "cancel", "run": "0191…", "text": "…", "payload": "…"} → {"ok": true} or
// {"ok": false, "code": "invalid", "message": "…"}. Only the same user may connect (mode 0600, and the peer's uid is checked).
// Thread safety: the handler is called from the server's thread, one call at a time.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <reprise/error.hpp>

namespace reprise::runtime {

struct ControlRequest {
  std::string operation;  // cancel, pause, resume, signal, retry, ping
  std::string run;        // a full id
  std::string text;       // cancel: why. signal: its name
  std::string payload;
};

class ControlServer {
 public:
  using Handler = std::function<std::expected<void, Error>(const ControlRequest&)>;

  // nullptr when no socket can be made (the file system has none …): the owner works without.
  static std::unique_ptr<ControlServer> listen(const std::string& store_path, Handler handler);
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  ~ControlServer();  // removes the socket

 private:
  class State;
  explicit ControlServer(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// std::nullopt: nobody listens there. Otherwise the owner's answer; `timed_out` after ten seconds.
std::optional<std::expected<void, Error>> ask_owner(const std::string& store_path, const ControlRequest& request);

}  // namespace reprise::runtime
