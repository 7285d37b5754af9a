// Runs the steps of documents: attempts come in as jobs, commands and requests go out, and each job is answered once.
//
// The run's input brings the document along, so a run needs no registration: it is read when its first job comes, and kept for the next.
// Who has read it to submit it hands it on.
// Thread safety: as Executor; kill_all() and hand_on() from any thread. Bounds: settings.attempts_max attempts at a time.
#pragma once

#include <memory>

#include "exec/document/services.hpp"
#include "exec/executor.hpp"
#include "exec/payloads.hpp"

namespace reprise::exec {

class DocumentExecutor final : public Executor {
 public:
  DocumentExecutor(DocumentSettings settings, Sink& sink, PayloadLoader load);
  ~DocumentExecutor() override;

  void start(std::vector<Job>& jobs) override;
  void cancel(const AttemptId& id) override;
  std::size_t capacity(std::uint32_t handler) override;
  std::size_t ahead(std::uint32_t handler, std::uint32_t places) override;
  void take_back(const AttemptId& id) override;
  void take_back_all() override;
  void settled(const AttemptId& id) override;
  void prepare(Preparation&& preparation) override;
  void shut_down() override;
  void listen_again(std::string_view callback) override;
  void kill_all();                            // every command is killed at once
  std::expected<void, std::string> listen();  // for webhooks, at once rather than when the first is expected
  // A run with that input is about to begin, and this is its program, whole: nothing is read a second time. One is kept until it begins.
  void hand_on(std::string input, std::shared_ptr<const Program> program);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::exec
