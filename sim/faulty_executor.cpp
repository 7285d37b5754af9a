// Attempts as happenings of the world: begun, cut, cancelled, answered, and answered again.
#include "sim/faulty_executor.hpp"

#include <algorithm>
#include <utility>

#include <reprise/engine.hpp>

#include "base/sha256.hpp"

namespace reprise::sim {
namespace {

Failure out_of_time() {
  return {.type = "TimeoutError",
          .message = "the attempt took longer than it may",
          .failure_class = FailureClass::transient,
          .kind = FailureKind::timeout};
}

Failure cancelled() {
  return {.type = "Canceled", .message = "the attempt was asked to stop", .failure_class = FailureClass::canceled};
}

}  // namespace

void FaultyExecutor::start(std::vector<exec::Job>& jobs) {
  for (exec::Job& job : jobs) {
    if (job.limits.waits && begins_no_more_) {
      give_back(job.id);
    } else if (places_.enter(job)) {
      begin(std::move(job));
    }
  }
  jobs.clear();
}

void FaultyExecutor::give_back(const event::AttemptId& id) { answer(runtime::Ended{{id, exec::Returned{}}, {}}); }

void FaultyExecutor::take_back(const event::AttemptId& id) {
  if (places_.take_back(id)) give_back(id);
}

void FaultyExecutor::take_back_all() {
  begins_no_more_ = true;
  for (const event::AttemptId& id : places_.take_back_all()) give_back(id);
}

void FaultyExecutor::begin_waiting(std::vector<exec::Job> jobs) {
  for (exec::Job& job : jobs) begin(std::move(job));
  check_limits();
}

// One that comes back from outside goes on at once, also above the limit: it was let in once, and its sub-flow may wait for the same places.
bool FaultyExecutor::has_place(const exec::Job& job) {
  return job.context == nullptr || job.context->brought == nullptr;
}

void FaultyExecutor::leave_place(const exec::Job& job) {
  if (has_place(job)) --running_[job.handler];
}

void FaultyExecutor::begin(exec::Job&& job) {
  model_.begun(job, wall_clock());
  if (job.limits.waits) answer(runtime::Began{job.id, wall_clock()});
  if (running_.size() <= job.handler) running_.resize(job.handler + 1);
  if (has_place(job)) ++running_[job.handler];
  const std::uint64_t number = next_++;
  Running& running = jobs_.emplace(number, Running{std::move(job), {}}).first->second;
  running.act = script(running.job);
  const Time now = world_.now();
  Time limit_at = INT64_MAX;
  if (running.job.timeout.count() > 0) limit_at = now + std::min(running.job.timeout.count(), INT64_MAX - now);
  if (running.job.deadline > 0)
    limit_at = std::min(limit_at, now + std::max<Time>(0, running.job.deadline - wall_clock()));
  running.limit_at = limit_at;
  for (std::uint32_t report = 1; report <= running.act.progress; ++report) {
    const event::AttemptId id = running.job.id;
    const std::uint32_t life = model_.life();
    world_.after(running.act.takes * report / (running.act.progress + 1), [this, id, life] {
      if (model_.life() == life) answer(exec::Progress{id, "on its way"});
    });
  }
  if (limit_at != INT64_MAX && (running.act.hangs || running.act.takes > limit_at - now)) {
    world_.at(limit_at, [this, number] { cut(number); });
  }
  if (!running.act.hangs) finish_at(number, now + running.act.takes);
}

void FaultyExecutor::finish_at(std::uint64_t number, Time when) {
  world_.at(when, [this, number] { finish(number); });
}

void FaultyExecutor::finish(std::uint64_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  Running& running = found->second;
  if (!running.cancelled && !running.answered) leave_place(running.job);
  if (running.act.child && !running.cancelled && !running.answered) {
    const event::AttemptId id = running.job.id;
    hand_over(running);
    jobs_.erase(found);
    return begin_waiting(places_.hand_over(id));
  }
  const event::AttemptId id = running.job.id;
  const bool frees_place = !running.answered && !running.act.failure;
  say(id, running.act);
  if (running.act.again) {
    const std::uint32_t life = model_.life();
    world_.after(*running.act.again, [this, life, id = running.job.id, act = running.act] {
      if (model_.life() == life) say(id, act);
    });
  }
  jobs_.erase(found);
  if (frees_place) begin_waiting(places_.leave(id));
}

// Its time is over. It is answered for now; if it comes back later, that is its own affair.
void FaultyExecutor::cut(std::uint64_t number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end() || found->second.answered) return;
  Running& running = found->second;
  if (!running.cancelled) leave_place(running.job);
  running.answered = true;
  say_failed(running.job.id, out_of_time(), false);
  if (running.act.hangs) jobs_.erase(found);
}

void FaultyExecutor::prepare(exec::Preparation&& preparation) {
  model_.asked(preparation);
  const std::uint64_t number = next_++;
  const Finding& finding =
      questions_.emplace(number, Question{preparation.id, prepare_script(preparation)}).first->second.finding;
  world_.after(finding.takes, [this, number] {
    const auto found = questions_.find(number);
    if (found == questions_.end()) return;
    const Question question = std::move(found->second);
    questions_.erase(found);
    say_prepared(question.id, question.finding);
  });
}

void FaultyExecutor::say_prepared(const event::AttemptId& id, const Finding& finding) {
  runtime::Begins begins;
  begins.prepared.id = id;
  begins.prepared.skip = finding.skip;
  if (finding.failure) begins.prepared.failure = std::make_unique<Failure>(*finding.failure);
  if (model_.is_list(id)) {
    begins.prepared.items = static_cast<std::uint32_t>(finding.elements.size());
    begins.prepared.list = event::Payload::of(encode_list(finding.elements));
    if (event::Payload& list = begins.prepared.list; list.size > event::payload_inline_max) {
      begins.body = std::exchange(list.bytes, base::sha256(list.bytes));
      list.hashed = true;
    }
  }
  answer(std::move(begins));
}

void FaultyExecutor::cancel(const event::AttemptId& id) {
  if (id.token == 0) {
    std::erase_if(questions_, [&](const auto& entry) { return entry.second.id == id && entry.second.finding.obeys; });
    return;
  }
  take_back(id);
  for (auto& [number, running] : jobs_) {
    if (running.job.id != id || running.cancelled || running.answered) continue;
    running.cancelled = true;
    leave_place(running.job);
    if (!running.act.obeys && !running.act.hangs) return;
    running.act.failure = cancelled();
    running.act.precondition = false;
    finish_at(number, world_.now() + running.act.obeys.value_or(second));
    return;
  }
}

std::size_t FaultyExecutor::capacity(std::uint32_t) {
  const auto busy =
      static_cast<std::size_t>(std::ranges::count_if(jobs_, [](const auto& entry) { return !entry.second.answered; }));
  return threads > busy ? threads - busy : 0;
}

void FaultyExecutor::check_limits() const {
  for (std::size_t handler = 0; handler < std::min(running_.size(), limits.size()); ++handler) {
    if (limits[handler] == 0 || running_[handler] <= limits[handler]) continue;
    throw Violation{"more attempts of a handler at once than its concurrency (" + std::to_string(limits[handler]) + ")",
                    0};
  }
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> of_steps;
  std::map<std::uint64_t, std::uint32_t> of_runs;
  for (const auto& [number, running] : jobs_) {
    const exec::Job& job = running.job;
    if (running.cancelled || running.answered || !job.limits.any()) continue;
    if (++of_steps[{job.id.run, job.id.step}] > job.limits.step && job.limits.step > 0)
      throw Violation{"more attempts of a step at once than its max_parallel", job.id.run};
    if (++of_runs[job.id.run] > job.limits.run && job.limits.run > 0)
      throw Violation{"more attempts of a run at once than its max_parallel", job.id.run};
  }
}

void FaultyExecutor::power_off() {
  places_ = {};
  begins_no_more_ = false;
  jobs_.clear();
  questions_.clear();
  running_.clear();
}

std::vector<event::AttemptId> FaultyExecutor::stop() {
  std::vector<event::AttemptId> left;
  for (const auto& [number, running] : jobs_) {
    if (!running.answered) left.push_back(running.job.id);
  }
  power_off();
  return left;
}

void FaultyExecutor::hand_over(const Running& running) {
  const exec::Job& job = running.job;
  const std::size_t depth = depth_of(*job.context->run_input) + 1;
  runtime::HandOver over{job.id, new_child(*running.act.child, "depth " + std::to_string(depth))};
  over.child.key =
      "child " + std::to_string(job.id.run) + "/" + std::to_string(job.id.step) + "/" + std::to_string(job.id.item);
  over.returns = running.act.returns;
  if (running.limit_at != INT64_MAX) {
    over.time_left = Duration{std::max<Time>(1, running.limit_at - world_.now())};
    over.overdue = std::make_unique<Failure>(out_of_time());
    model_.sent(job.id, out_of_time());
  }
  model_.handed(job.id);
  answer(std::move(over));
}

std::size_t depth_of(const event::Payload& input) {
  constexpr std::string_view mark = "depth ";
  return input.bytes.starts_with(mark) ? static_cast<std::size_t>(input.bytes[mark.size()] - '0') : 0;
}

void FaultyExecutor::say(const event::AttemptId& id, const Act& act) {
  if (act.failure) return say_failed(id, *act.failure, act.precondition);
  exec::Succeeded end;
  std::string body;
  if (act.output.size() <= event::payload_inline_max) {
    end.output = event::Payload::of(act.output);
  } else {
    end.output = {base::sha256(act.output), act.output.size(), true};
    body = act.output;
  }
  model_.sent(id, end.output.view());
  answer(runtime::Ended{{id, std::move(end)}, std::move(body)});
}

void FaultyExecutor::say_failed(const event::AttemptId& id, Failure failure, bool precondition) {
  model_.sent(id, failure);
  answer(runtime::Ended{exec::failed(id, std::move(failure), precondition), {}});
}

}  // namespace reprise::sim
