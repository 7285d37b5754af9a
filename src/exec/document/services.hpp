// What the attempts of documents share: who runs commands, sends requests, waits for webhooks, and hears the answers.
//
// Thread safety: owned by DocumentExecutor; used on the serial queue's thread unless a member says otherwise.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <reprise/engine.hpp>
#include <reprise/env.hpp>

#include "env/wall_clock.hpp"
#include "exec/document/file_reader.hpp"
#include "exec/document/program.hpp"
#include "exec/document/schemas.hpp"
#include "exec/document/serial_queue.hpp"
#include "exec/document/webhooks.hpp"
#include "exec/executor.hpp"
#include "exec/http/http_client.hpp"
#include "exec/payloads.hpp"
#include "exec/process/process_runner.hpp"

namespace reprise::exec {

// Who runs a flow inside of a flow: as a run of its own, which the engine connects with the attempt. A run that an earlier attempt had
// begun is gone on with, and what failed in it is tried again. Called from the serial queue's thread.
class SubFlows {
 public:
  SubFlows() = default;
  SubFlows(const SubFlows&) = delete;
  SubFlows& operator=(const SubFlows&) = delete;
  virtual ~SubFlows() = default;
  // The error: the flow cannot be run, and the attempt goes on here.
  virtual std::expected<void, Error> hand_over(HandedOver over, const RunInput& input) = 0;
};

// Makes a run's program of what is recorded: reads its document anew. `read` gives the files of its secrets.
using ProgramLoader = std::function<std::expected<std::shared_ptr<const Program>, std::string>(const RunInput& input,
                                                                                               const ReadFile& read)>;

struct DocumentSettings {
  std::string store_folder = {};             // where the logs go; empty = nowhere
  Duration grace = std::chrono::seconds{5};  // between TERM and KILL
  std::size_t attempts_max = 512;            // at a time
  SubFlows* sub_flows = nullptr;             // nullptr = flows inside of flows are refused
  bool stderr_through = false;               // `exec`: what a command writes there is shown as it comes
  bool stdout_through = false;               // the same of its standard output
  FileReaderSettings files = {};             // how files that documents name are read
  // Called on a thread of its own, so that a large document holds up no attempt; another one for tests.
  ProgramLoader load_program = [](const RunInput& input, const ReadFile& read) {
    return exec::load_program(input, read);
  };
  std::optional<Relocation> moved = {};  // the folder of the runs it resumes is somewhere else now
  CallbackSettings callbacks = {};       // where asynchronous work is reported
};

struct Services {
  Services(DocumentSettings wanted, Sink& answers, PayloadLoader load)
      : settings{std::move(wanted)}, sink{answers}, payloads{std::move(load)} {}

  DocumentSettings settings;
  Sink& sink;
  Payloads payloads;
  Env& env = system_env();
  SerialQueue queue;  // others report to it as long as they live, so it goes after them
  FileReader files{queue, settings.files};
  Schemas schemas;
  ProcessRunner processes{{}};
  std::optional<HttpClient> http_client;  // see http()
  Webhooks webhooks{settings.callbacks, settings.store_folder, sink};

  // Made when it is first needed: it brings a thread, and a library for TLS that takes its time.
  HttpClient& http() { return http_client ? *http_client : http_client.emplace(); }
};

}  // namespace reprise::exec
