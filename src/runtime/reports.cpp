// Attempts whose work was accepted elsewhere: they are `outside` until somebody reports their end.
//
// A report is judged by the executor, which has the document, and then recorded like the end of any attempt; whoever brought it is thanked when
// that is durable, so a report that a crash has swallowed is sent again. What comes before the work itself was accepted is kept for that moment:
// its sender may be about to accept, and cannot wait. A crash loses such an attempt and the report with it, and it is made again.
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

// Tells whoever has reported, once what it reported is durable.
class ReportReply final : public Reply {
 public:
  ReportReply(std::function<void(exec::ReportTaken)> tell, exec::ReportTaken taken)
      : tell_{std::move(tell)}, taken_{taken} {}
  void done(std::expected<void, Error> answer) override { tell_(answer ? taken_ : exec::ReportTaken::not_now); }

 private:
  std::function<void(exec::ReportTaken)> tell_;
  exec::ReportTaken taken_;
};

Failure canceled() {
  return {.type = "CanceledError", .message = "canceled while it ran", .failure_class = FailureClass::canceled};
}

}  // namespace

void Loop::take(exec::Accepted&& accepted, Time now) {
  const core::Run* const run = core_.run_of(accepted.id);
  if (run == nullptr) return core_.settle_unless_open(accepted.id);  // it is over meanwhile
  if (run->cancel_requested) {
    core_.failed(accepted.id, canceled(), false, now);
    return core_.settle_unless_open(accepted.id);
  }
  core_.handed_over(accepted.id,
                    {.callback = accepted.callback,
                     .due = accepted.time_left > Duration{0} ? core::later(now, accepted.time_left.count()) : 0,
                     .overdue = accepted.overdue.get()},
                    now);
  if (!early_.empty()) judge_early(accepted.id, now);
}

bool Loop::take(Reported&& reported, Time now) {
  exec::Report& report = reported.report;
  const auto answer = [&](exec::ReportTaken taken) {
    answer_later(std::make_shared<ReportReply>(std::move(report.answer), taken), {});
    return true;
  };
  if (trouble_ || !starting_ || slot_in(secret_, report.run) != slot_) return answer(exec::ReportTaken::not_now);
  const auto looked = load(report.run);
  if (!looked) return false;
  const auto& found = *looked;
  if (!found) return answer(exec::ReportTaken::not_now);
  if (found->run == nullptr) return answer(exec::ReportTaken::over);
  core::Run& run = *found->run;
  if (!run.has_ended() && !core_.is_allowed(run)) {
    unload(*found);
    return answer(exec::ReportTaken::not_now);
  }
  if (!run.live && !run.has_ended()) adopt(run, now);
  const event::AttemptId id{run.number, report.step, report.item, report.attempt};
  switch (core_.use_of({.id = id, .visit = report.visit, .success = report.success, .only_own = report.only_own})) {
    case core::Core::ReportUse::judge:
      judge(id, std::move(report.body), std::move(report.answer), now);
      return true;
    case core::Core::ReportUse::early:
      if (early_.size() >= early_max) return answer(exec::ReportTaken::not_now);
      early_.try_emplace(key_of(id), std::move(report.body));
      return answer(exec::ReportTaken::yes);
    case core::Core::ReportUse::known:
      answer(exec::ReportTaken::known);
      break;
    case core::Core::ReportUse::over:
      answer(exec::ReportTaken::over);
      break;
  }
  unload(*found);
  return true;
}

// The first report of an attempt is judged; what comes meanwhile shares its answer.
void Loop::judge(const event::AttemptId& id, std::string body, std::function<void(exec::ReportTaken)> answer, Time) {
  const auto [place, is_first] = judging_.try_emplace(key_of(id));
  if (answer) place->second.push_back(std::move(answer));
  if (!is_first) return;
  core::Run* const run = core_.find(id.run);
  const std::uint32_t attempt = run->steps[id.step].touched(id.item)->attempt;
  std::vector<exec::Job> jobs;
  jobs.push_back(job_of({id, attempt, run, std::make_shared<const Payload>(Payload::of(std::move(body)))}));
  executors_[core_.address_of(*run, id.step).executor]->start(jobs);
}

void Loop::judge_early(const event::AttemptId& id, Time now) {
  auto early = early_.extract(key_of(id));
  if (!early.empty()) judge(id, std::move(early.mapped()), {}, now);
}

// The request of an attempt has failed whose report is there already: what was reported is its end. False: there is none.
bool Loop::take_early(const exec::Outcome& outcome, Time now) {
  const auto early = early_.find(key_of(outcome.id));
  if (early == early_.end()) return false;
  const core::Run* const run = core_.run_of(outcome.id);
  const bool has_failed = std::holds_alternative<exec::Failed>(outcome.end);
  if (!has_failed || run == nullptr || run->cancel_requested || !starting_) {
    early_.erase(early);
    return false;
  }
  core_.handed_over(outcome.id, {.callback = run->extra != nullptr ? run->extra->callback : std::string_view{}}, now);
  judge_early(outcome.id, now);
  return true;
}

// False: it is no report that has been judged.
bool Loop::take_judged(Ended& ended, Time now) {
  const event::AttemptId& id = ended.outcome.id;
  auto judged = judging_.extract(key_of(id));
  if (judged.empty()) return false;
  exec::ReportTaken taken = exec::ReportTaken::not_now;
  if (auto* const success = std::get_if<exec::Succeeded>(&ended.outcome.end)) {
    const bool counts = core_.reported(id, success->output.view(), now);
    if (counts && success->output.hashed) put_payload(id.run, success->output, std::move(ended.body));
    taken = counts ? exec::ReportTaken::yes : exec::ReportTaken::known;
  } else if (const auto* const failure = std::get_if<exec::Failed>(&ended.outcome.end)) {
    // Of an earlier attempt only success counts.
    const bool counts = core_.run_of(id) != nullptr && core_.failed(id, *failure->failure, false, now);
    taken = counts ? exec::ReportTaken::yes : exec::ReportTaken::known;
  }
  for (auto& answer : judged.mapped()) answer_later(std::make_shared<ReportReply>(std::move(answer), taken), {});
  return true;
}

// One that was cancelled is about to be resumed.
void Loop::listen_again(const core::Run& run) {
  if (run.has_ended() && run.status != RunStatus::canceled) return;
  if (run.extra == nullptr || run.extra->callback.empty()) return;
  for (exec::Executor* const executor : executors_) executor->listen_again(run.extra->callback);
}

void Loop::answer_reports(exec::ReportTaken taken) {
  for (auto& [id, answers] : std::exchange(judging_, {})) {
    for (const auto& answer : answers) answer(taken);
  }
}

}  // namespace reprise::runtime
