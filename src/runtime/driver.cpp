#include "runtime/driver.hpp"

#include <algorithm>
#include <utility>

#include "exec/time_limit.hpp"

namespace reprise::runtime {
namespace {

constexpr std::size_t small_commit = 24U << 10U;  // bytes that are written at once rather than handed to the writer
constexpr std::size_t worth_waking = 256;         // inputs, while a commit is on its way

// After Ctrl-Z, a debugger, a paused container: ends of attempts and signals that waited outside come before the timers that they beat.
constexpr Duration for_others_to_catch_up = std::chrono::milliseconds{250};

}  // namespace

Env::TimePoint Clock::steady(Time wall) const {
  constexpr std::int64_t far = std::int64_t{1} << 60U;
  return start_ + Duration{std::clamp<std::int64_t>(wall - wall_, -far, far)};
}

Driver::Driver(Loop& loop, store::Store& store, const Clock& clock, std::size_t inbox_max)
    : loop_{loop}, store_{store}, clock_{clock}, inbox_max_{inbox_max} {}

Driver::~Driver() { finish(); }

void Driver::start() {
  publish_stats();
  loop_thread_ = std::thread{[this] { run(); }};
  writer_thread_ = std::thread{[this] { run_writer(); }};
}

bool Driver::put(Input&& input) {
  inbox_.push_back(std::move(input));
  const bool wake = sleeping_ && inbox_.size() >= threshold_;
  if (wake) sleeping_ = false;  // one is enough
  return wake;
}

void Driver::push(Input&& input) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    wake = put(std::move(input));
  }
  if (wake) wake_.notify_one();
}

std::expected<void, Error> Driver::try_push(Input&& input) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    if (ended_ || finishing_) return std::unexpected{Error{ErrorCode::stopped, "the engine has stopped"}};
    if (inbox_.size() >= inbox_max_) {
      return std::unexpected{Error{ErrorCode::full, std::to_string(inbox_max_) +
                                                        " requests wait already (max_inbox): try again later"}};
    }
    wake = put(std::move(input));
  }
  if (wake) wake_.notify_one();
  return {};
}

bool Driver::push_when_room(Input&& input) {
  {
    std::unique_lock lock{mutex_};
    room_.wait(lock, [&] { return inbox_.size() < inbox_max_ || ended_ || finishing_; });
    if (ended_ || finishing_) return false;
  }
  push(std::move(input));
  return true;
}

void Driver::stop_starting() {
  const std::lock_guard lock{mutex_};
  stop_starting_ = true;
  is_calm_ = false;
  wake_.notify_one();
}

bool Driver::drain(Duration patience) {
  std::unique_lock lock{mutex_};
  const auto until = clock_.steady(clock_.now()) + patience;
  return calm_.wait_until(lock, until, [&] { return is_calm_ || ended_; }) && is_calm_;
}

void Driver::finish() {
  {
    const std::lock_guard lock{mutex_};
    finishing_ = true;
    wake_.notify_one();
    room_.notify_all();
  }
  if (loop_thread_.joinable()) loop_thread_.join();
  {
    const std::lock_guard lock{writer_mutex_};
    writer_ends_ = true;
    writer_wake_.notify_one();
  }
  if (writer_thread_.joinable()) writer_thread_.join();
}

EngineStats Driver::stats() const {
  const std::lock_guard lock{mutex_};
  return stats_;
}

// ---- the loop's thread ----------------------------------------

std::size_t Driver::wake_threshold() const {
  if (loop_.outstanding() == 0 || loop_.in_trouble())
    return 1;  // in trouble the commit may take for ever, and who asks is told so
  return loop_.outstanding() == 1 ? worth_waking : SIZE_MAX;
}

bool Driver::wait_for_work(bool more, std::vector<Input>& inputs) {
  bool overslept = false;
  std::unique_lock lock{mutex_};
  threshold_ = wake_threshold();
  const auto has_work = [&] {
    return inbox_.size() >= threshold_ || written_.has_value() || stop_starting_ || finishing_;
  };
  if (!more && !has_work()) {
    sleeping_ = true;
    const std::optional<Time> next = loop_.next_wakeup();
    if (next) {
      const Time at_the_latest = std::max(*next, clock_.now());
      wake_.wait_until(lock, clock_.steady(*next), has_work);
      overslept = clock_.now() - at_the_latest > exec::late_without_excuse.count();
    } else {
      wake_.wait(lock, has_work);
    }
    sleeping_ = false;
  }
  inputs.swap(inbox_);
  if (inputs.size() >= inbox_max_) room_.notify_all();
  return overslept;
}

void Driver::run() {
  std::vector<Input> inputs;
  while (step(inputs)) {
  }
  loop_.abandon_replies({ErrorCode::stopped, "the engine has stopped"});
  const std::lock_guard lock{mutex_};
  ended_ = true;
  calm_.notify_all();
  room_.notify_all();
}

// One round. False: everything is recorded and the engine is to end.
bool Driver::step(std::vector<Input>& inputs) {
  Time now = clock_.now();
  const bool more = loop_.turn(now);
  loop_.build(now);
  write(now);
  publish_stats();

  const bool overslept = wait_for_work(more || loop_.has_news_now(), inputs);
  now = clock_.now();
  if (overslept) loop_.hold_timers_until(now + for_others_to_catch_up.count());
  std::optional<store::Result<void>> written;
  bool finishing = false;
  bool stops_starting = false;
  {
    const std::lock_guard lock{mutex_};
    written.swap(written_);
    finishing = finishing_;
    stops_starting = std::exchange(stop_starting_, false);
  }
  if (stops_starting) loop_.stop_starting();  // without our lock: executors take theirs, and push to us under it
  if (written) loop_.end_write(*std::move(written), now);
  const bool had_inputs = !inputs.empty();
  for (Input& input : inputs) loop_.handle(std::move(input), now);
  inputs.clear();
  // With the store in trouble there is nothing to wait for: what is not recorded will be decided again after the next start.
  return !finishing || had_inputs || (!loop_.in_trouble() && (loop_.has_news() || loop_.outstanding() > 0));
}

void Driver::write(Time now) {
  while (const std::optional<Loop::Writing> writing = loop_.begin_write(now)) {
    if (writing->commit->bytes.size() > small_commit || writing->verify) {
      const std::lock_guard lock{writer_mutex_};
      to_write_ = writing;
      writer_wake_.notify_one();
      return;
    }
    store::Result<void> result = write_commit(store_, *writing->commit, false);
    now = clock_.now();
    loop_.end_write(std::move(result), now);
  }
}

void Driver::publish_stats() {
  const std::lock_guard lock{mutex_};
  stats_ = loop_.stats();
  is_calm_ = stats_.running == 0 && !loop_.has_reserved() && loop_.outstanding() == 0 && !loop_.has_news() && inbox_.empty();
  if (is_calm_) calm_.notify_all();
}

// ---- the writer's thread ----------------------------------------

void Driver::run_writer() {
  for (;;) {
    Loop::Writing writing;
    {
      std::unique_lock lock{writer_mutex_};
      writer_wake_.wait(lock, [&] { return to_write_.has_value() || writer_ends_; });
      if (!to_write_) return;
      writing = *to_write_;
      to_write_.reset();
    }
    store::Result<void> result = write_commit(store_, *writing.commit, writing.verify);
    const std::lock_guard lock{mutex_};
    written_ = std::move(result);
    if (sleeping_) wake_.notify_one();
  }
}

}  // namespace reprise::runtime
