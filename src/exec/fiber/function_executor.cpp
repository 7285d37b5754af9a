#include "exec/fiber/function_executor.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/block_signals.hpp"

namespace reprise::exec {
namespace {

// How long the loop waits for what functions decide. They only decide, so most are quicker than a sync of the disk.
constexpr std::chrono::milliseconds moment{1};

Decided failed_to_decide(const AttemptId& id, const char* why) {
  Decided decided;
  decided.id = id;
  decided.divergence = why;
  return decided;
}

}  // namespace

// ---- one thread ----------------------------------------

FunctionExecutor::Worker::Worker(FunctionExecutor& executor, bool has_thread) : executor_{executor}, has_thread_{has_thread} {
  if (has_thread) thread_ = std::thread{[this] { work(); }};
}

FunctionExecutor::Worker::~Worker() { stop(); }

void FunctionExecutor::Worker::stop() {
  {
    const std::lock_guard lock{mutex_};
    stops_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) {
    thread_.join();
  } else {
    residents_.clear();
  }
}

void FunctionExecutor::Worker::do_later(std::function<void()> task) {
  std::unique_lock lock{mutex_};
  if (stops_) return;
  if (!has_thread_) {
    lock.unlock();
    return task();
  }
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

void FunctionExecutor::Worker::work() {
  base::block_signals();
  std::vector<std::function<void()>> tasks;
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      wake_.wait(lock, [&] { return !tasks_.empty() || stops_; });
      if (stops_) break;
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    tasks.clear();
  }
  residents_.clear();  // on their own thread
}

void FunctionExecutor::Worker::take(News&& news, const std::shared_ptr<Round>& round) {
  Decided decided = decide(std::move(news));
  std::unique_lock lock{round->mutex};
  if (round->is_closed) {
    lock.unlock();
    return executor_.sink_.decided(std::move(decided));
  }
  round->decided.push_back(std::move(decided));
  if (--round->open == 0) round->answered.notify_one();
}

Decided FunctionExecutor::Worker::decide(News&& news) {
  const AttemptId id = news.id;
  if (news.begins) forget(id.run);
  const auto found = residents_.find(id.run);
  if (!news.begins && (found == residents_.end() || found->second.token != id.token)) {
    Decided decided;
    decided.id = id;
    decided.is_unknown = true;
    return decided;
  }
  try {
    if (news.begins) {
      const auto code = executor_.code(news.handler);
      if (code == nullptr) return failed_to_decide(id, "there is no such function");
      const auto used = used_.insert(used_.end(), id.run);
      Worker* const self = this;
      auto run = std::make_unique<FunctionRun>(
          code, news,
          FunctionRun::Surroundings{stacks_, executor_.payloads_, *executor_.closures_,
                                    [self, id] { self->do_later([self, id] { self->go_on(id.run, id.token); }); }});
      residents_.insert_or_assign(id.run, Resident{std::move(run), used, id.token});
    }
    Resident& resident = residents_.at(id.run);
    used_.splice(used_.end(), used_, resident.used);
    Decided decided = resident.run->take(std::move(news));
    settle(id.run, decided);
    return decided;
  } catch (const std::exception& failed) {
    forget(id.run);
    return failed_to_decide(id, failed.what());
  }
}

void FunctionExecutor::Worker::go_on(std::uint64_t run, std::uint32_t token) {
  const auto found = residents_.find(run);
  if (found == residents_.end() || found->second.token != token) return;
  Decided decided = found->second.run->go_on();
  settle(run, decided);
  executor_.sink_.decided(std::move(decided));
}

void FunctionExecutor::Worker::settle(std::uint64_t run, Decided& decided) {
  if (decided.end || !decided.divergence.empty()) forget(run);
  make_room();
}

void FunctionExecutor::Worker::forget(std::uint64_t run) {
  const auto found = residents_.find(run);
  if (found == residents_.end()) return;
  used_.erase(found->second.used);
  residents_.erase(found);
}

// Those that nobody has told anything for longest go first.
void FunctionExecutor::Worker::make_room() {
  for (auto at = used_.begin(); at != used_.end() && stacks_.bytes() > executor_.memory_of_a_worker_;) {
    const std::uint64_t run = *at++;
    if (residents_.size() > 1 && !residents_.at(run).run->is_pinned()) forget(run);
  }
}

// ---- all of them ----------------------------------------

FunctionExecutor::FunctionExecutor(Sink& sink, PayloadLoader load, FunctionSettings settings)
    : sink_{sink},
      payloads_{std::move(load)},
      memory_of_a_worker_{settings.memory / std::max(1U, settings.threads)} {
  for (unsigned count = 0; count < std::max(1U, settings.threads); ++count)
    workers_.push_back(std::make_unique<Worker>(*this, settings.threads > 0));
}

FunctionExecutor::~FunctionExecutor() { shut_down(); }

std::uint32_t FunctionExecutor::add(FunctionCode code) {
  const std::lock_guard lock{mutex_};
  const auto same = std::ranges::find_if(codes_, [&](const auto& known) {
    return known->name == code.name && known->options.version == code.options.version;
  });
  auto kept = std::make_shared<const FunctionCode>(std::move(code));
  if (same != codes_.end()) {
    *same = std::move(kept);
    return static_cast<std::uint32_t>(same - codes_.begin());
  }
  codes_.push_back(std::move(kept));
  return static_cast<std::uint32_t>(codes_.size() - 1);
}

std::shared_ptr<const FunctionCode> FunctionExecutor::code(std::uint32_t handler) {
  const std::lock_guard lock{mutex_};
  return handler < codes_.size() ? codes_[handler] : nullptr;
}

void FunctionExecutor::decide(std::vector<News>& news, std::vector<Decided>& decided) {
  auto round = std::make_shared<Round>();
  round->open = news.size();
  for (News& one : news) {
    Worker& worker = worker_of(one.id.run);
    // std::function copies what it is given.
    auto moved = std::make_shared<News>(std::move(one));
    worker.do_later([&worker, moved, round] { worker.take(std::move(*moved), round); });
  }
  news.clear();
  std::unique_lock lock{round->mutex};
  round->answered.wait_for(lock, moment, [&] { return round->open == 0; });
  round->is_closed = true;
  for (Decided& one : round->decided) decided.push_back(std::move(one));
}

void FunctionExecutor::forget(const AttemptId& id) {
  Worker& worker = worker_of(id.run);
  worker.do_later([&worker, run = id.run] { worker.forget(run); });
}

void FunctionExecutor::shut_down() {
  for (const auto& worker : workers_) worker->stop();
}

}  // namespace reprise::exec
