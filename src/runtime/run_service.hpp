// What may be asked of the runs of one shard, as values, and the one door through which it is asked: by the program itself (Engine), by other
// processes (the control socket), by the command line, and by a server.
//
// Each request has an id, and says who asks and why; both stand in the events that it causes. A request that comes again with its id changes
// nothing: it gets the answer of the first. Remembered are the last 4096 that were answered, as long as the engine lives.
//
//   service.ask({.asked = Asked::pause, .run = run, .by = {.by = "ada@host: reprise pause", .why = "maintenance"}}, [](auto answer) { … });
//
// Thread safety: RunService from any thread; the rest are values.
#pragma once

#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

#include "core/chosen.hpp"
#include "runtime/control.hpp"
#include "runtime/inputs.hpp"

namespace reprise::runtime {

enum class Asked : std::uint8_t { ping, submit, cancel, pause, resume, retry, drop, signal, remove };
std::string_view name_of(Asked asked) noexcept;

struct RunRequest {
  Asked asked = Asked::ping;
  std::optional<RunId> run = {};  // only a ping may name none (somebody is here; with one: and works on it), and submit
  std::string text = {};          // signal: its name
  std::string payload = {};       // of a signal
  WorkChoice choice = {};         // retry, drop
  Requester by = {};              // without an id it gets one
  std::optional<Task> task = {};  // submit
};

struct RunAnswer {
  RunId run = {};  // submit: the run, new or the one that has the key

  bool operator==(const RunAnswer&) const = default;
};
using RunAnswered = std::function<void(std::expected<RunAnswer, Error>)>;

// ---- over the control socket ----------------------------------------

// `invalid`: an unknown operation, no run, not the number of an item.
std::expected<RunRequest, Error> run_request_in(const ControlRequest& request);
ControlRequest control_request_of(const RunRequest& request);
// What a socket is asked goes there, and its answer comes back.
ControlServer::Handler control_handler(std::function<void(RunRequest&&, RunAnswered)> ask);
// Of the owner's answer only whether it was done.
std::expected<void, Error> done_or_error(const ControlAnswer& answer);

// ---- the door ----------------------------------------

class RunService {
 public:
  // Does what is asked and answers once, on any thread.
  using Perform = std::function<void(RunRequest&&, RunAnswered)>;
  static constexpr std::size_t remembered_max = 4096;

  explicit RunService(Perform perform) : perform_{std::move(perform)} {}

  // The answer comes once, at once or later, on any thread: it must not block there. What it says is durable.
  void ask(RunRequest request, RunAnswered answered);

 private:
  struct Known {
    Asked asked;
    std::optional<RunId> run;
    std::optional<std::expected<RunAnswer, Error>> answer;  // std::nullopt: it is being worked on
    std::vector<RunAnswered> waiting;
  };
  void finish(const RunId& request, const std::expected<RunAnswer, Error>& answer);

  Perform perform_;
  std::mutex mutex_;
  std::map<RunId, Known> known_;  // by the id of the request
  std::deque<RunId> answered_;    // oldest first
};

}  // namespace reprise::runtime
