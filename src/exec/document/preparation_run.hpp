// What is found out before a step begins: its condition, its items, and (when it has but one) its precondition.
//
// Thread safety: the serial queue's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/document/command_run.hpp"

namespace reprise::exec {

class PreparationRun : public std::enable_shared_from_this<PreparationRun> {
 public:
  using Done = std::function<void(Prepared&&)>;

  PreparationRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Step& step, const AttemptId& id,
                 Done done);

  void start();
  void cancel();  // Done does not come any more
  void broke(std::string_view why) { fail(broken_off(why)); }

 private:
  void find_items();
  void items_in_text(std::string_view text, std::string_view where);
  void items_in_value(const json::Json& value, std::string_view where);
  void begin_with(std::vector<std::string> items);
  void begin(Prepared&& prepared, const std::vector<std::string>& items);
  std::expected<std::string, std::string> item_policies(const std::vector<std::string>& items) const;
  void check_precondition();
  void run(const flow::Command& command, bool whole_output, std::function<void(Judged)> then);  // we live until `then`
  void fail(Failure failure);
  void fail(std::string message);
  void finish(Prepared&& prepared);
  Judge judge() const { return {scope_->facts().program->flow, step_, {}, scope_->facts().context->by_first_rules}; }

  Services& services_;
  std::shared_ptr<StepScope> scope_;
  const flow::Step& step_;
  AttemptId id_;
  Done done_;
  std::shared_ptr<CommandRun> current_;
};

}  // namespace reprise::exec
