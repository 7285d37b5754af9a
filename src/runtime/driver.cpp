#include "runtime/driver.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "exec/time_limit.hpp"
#include "runtime/ids.hpp"

namespace reprise::runtime {
namespace {

constexpr std::size_t small_commit = 24U << 10U;  // bytes that are written at once rather than handed to the writer
constexpr std::size_t worth_waking = 256;         // inputs, while a commit is on its way

// After Ctrl-Z, a debugger, a paused container: ends of attempts and signals that waited outside come before the timers that they beat.
constexpr Duration for_others_to_catch_up = std::chrono::milliseconds{250};

EngineStats sum_of(const EngineStats& left, const EngineStats& right) {
  return {.open = left.open + right.open,
          .resident = left.resident + right.resident,
          .resident_bytes = left.resident_bytes + right.resident_bytes,
          .ready = left.ready + right.ready,
          .running = left.running + right.running,
          .waiting = left.waiting + right.waiting,
          .accepted = left.accepted + right.accepted,
          .succeeded = left.succeeded + right.succeeded,
          .failed = left.failed + right.failed,
          .canceled = left.canceled + right.canceled,
          .attempts = left.attempts + right.attempts,
          .retries = left.retries + right.retries,
          .late = left.late + right.late,
          .commits = left.commits + right.commits,
          .committed_bytes = left.committed_bytes + right.committed_bytes,
          .events = left.events + right.events,
          .loading = left.loading || right.loading,
          .trouble = left.trouble.empty() ? right.trouble : left.trouble};
}

}  // namespace

Env::TimePoint Clock::steady(Time wall) const {
  constexpr std::int64_t far = std::int64_t{1} << 60U;
  return start_ + Duration{std::clamp<std::int64_t>(wall - wall_, -far, far)};
}

Driver::Driver(Loop& loop, store::Store& store, const Clock& clock, std::size_t inbox_max)
    : Driver{{{&loop, &store}}, clock, inbox_max} {}

Driver::Driver(const std::vector<DrivenShard>& shards, const Clock& clock, std::size_t inbox_max, store::Ledger* ledger)
    : ledger_{ledger}, clock_{clock}, inbox_max_{inbox_max} {
  for (const DrivenShard& shard : shards) shards_.push_back({shard.loop, shard.store});
}

Driver::~Driver() { finish(); }

void Driver::start() {
  publish_stats();
  loop_thread_ = std::thread{[this] { run(); }};
  writer_thread_ = std::thread{[this] { run_writer(); }};
}

template <class F>
void Driver::for_each_live(const F& visit) const {
  for (const Driven& shard : shards_) {
    if (!shard.dropped) visit(*shard.loop);
  }
}

template <class F>
bool Driver::any_live(const F& is) const {
  return std::ranges::any_of(shards_, [&](const Driven& shard) { return !shard.dropped && is(*shard.loop); });
}

// ---- the inbox ----------------------------------------

Driver::Addressed Driver::addressed(Input&& input, ShardIndex shard) const {
  if (!shard && shards_.size() > 1) {
    const RunId* const run = run_named_in(input);
    const auto at = std::ranges::find_if(shards_, [&](const Driven& driven) {
      return run != nullptr && slot_in(driven.loop->secret(), *run) == driven.loop->slot();
    });
    if (at != shards_.end()) shard = static_cast<std::size_t>(at - shards_.begin());
  }
  return {std::move(input), shard.value_or(0)};
}

bool Driver::put(Addressed&& input) {
  inbox_.push_back(std::move(input));
  const bool wake = sleeping_ && inbox_.size() >= threshold_;
  if (wake) sleeping_ = false;  // one is enough
  return wake;
}

void Driver::push(Input&& input, ShardIndex shard) {
  Addressed wanted = addressed(std::move(input), shard);
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    wake = put(std::move(wanted));
  }
  if (wake) wake_.notify_one();
}

std::expected<void, Error> Driver::try_push(Input&& input, ShardIndex shard) {
  bool wake = false;
  {
    const std::lock_guard lock{mutex_};
    if (ended_ || finishing_) return std::unexpected{Error{ErrorCode::stopped, "the engine has stopped"}};
    if (inbox_.size() >= inbox_max_) {
      return std::unexpected{
          Error{ErrorCode::full, std::to_string(inbox_max_) + " requests wait already (max_inbox): try again later"}};
    }
    wake = put(addressed(std::move(input), shard));
  }
  if (wake) wake_.notify_one();
  return {};
}

bool Driver::push_when_room(Input&& input, ShardIndex shard) {
  {
    std::unique_lock lock{mutex_};
    room_.wait(lock, [&] { return inbox_.size() < inbox_max_ || ended_ || finishing_; });
    if (ended_ || finishing_) return false;
  }
  push(std::move(input), shard);
  return true;
}

// ---- the end ----------------------------------------

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
  {
    const std::lock_guard lock{mutex_};
    readers_end_ = true;
  }
  for (Reader& reader : readers_) {
    reader.wake.notify_one();
    if (reader.thread.joinable()) reader.thread.join();
  }
}

EngineStats Driver::stats() const {
  const std::lock_guard lock{mutex_};
  return stats_;
}

// ---- the loops' thread ----------------------------------------

std::size_t Driver::wake_threshold() const {
  std::size_t least = SIZE_MAX;
  for_each_live([&](const Loop& loop) {
    // In trouble the commit may take for ever, and who asks is told so.
    const bool at_once = loop.outstanding() == 0 || loop.in_trouble();
    least = std::min(least, at_once ? 1 : loop.outstanding() == 1 ? worth_waking : SIZE_MAX);
  });
  return any_live([](const Loop&) { return true; }) ? least : 1;
}

bool Driver::wait_for_work(bool more, std::vector<Addressed>& inputs) {
  bool overslept = false;
  std::unique_lock lock{mutex_};
  threshold_ = wake_threshold();
  const auto has_work = [&] {
    return inbox_.size() >= threshold_ || !written_.empty() || readers_[0].state == Reader::State::told ||
           readers_[1].state == Reader::State::told || stop_starting_ || finishing_;
  };
  if (!more && !has_work()) {
    sleeping_ = true;
    std::optional<Time> next;
    for_each_live([&](const Loop& loop) {
      if (const auto wakeup = loop.next_wakeup()) next = std::min(*wakeup, next.value_or(INT64_MAX));
    });
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
  std::vector<Addressed> inputs;
  while (step(inputs)) {
  }
  for (const Driven& shard : shards_) shard.loop->abandon_replies({ErrorCode::stopped, "the engine has stopped"});
  const std::lock_guard lock{mutex_};
  ended_ = true;
  calm_.notify_all();
  room_.notify_all();
}

// One round. False: everything is recorded and the engine is to end.
bool Driver::step(std::vector<Addressed>& inputs) {
  Time now = clock_.now();
  bool more = false;
  for_each_live([&](Loop& loop) {
    more |= loop.turn(now);
    loop.build(now);
  });
  write(now);
  read(now);
  publish_stats();

  more |= any_live([](const Loop& loop) { return loop.has_news_now(); });
  const bool overslept = wait_for_work(more, inputs);
  now = clock_.now();
  std::vector<store::Result<void>> written;
  bool finishing = false;
  bool stops_starting = false;
  {
    const std::lock_guard lock{mutex_};
    written.swap(written_);
    finishing = finishing_;
    stops_starting = std::exchange(stop_starting_, false);
  }
  for_each_live([&](Loop& loop) {
    if (overslept) loop.hold_timers_until(now + for_others_to_catch_up.count());
    if (stops_starting) loop.stop_starting();  // without our lock: executors take theirs, and push to us under it
  });
  if (!written.empty()) end_writes(written, now);
  for (const Reading kind : readings) end_reads(kind, now);
  const bool had_inputs = !inputs.empty();
  for (Addressed& input : inputs) take(std::move(input), now);
  inputs.clear();
  // With the store in trouble there is nothing to wait for: what is not recorded will be decided again after the next start.
  return !finishing || had_inputs || any_live([](const Loop& loop) {
    return !loop.in_trouble() && (loop.has_news() || loop.outstanding() > 0 || loop.waits_for_store());
  });
}

void Driver::take(Addressed&& input, Time now) {
  Driven& shard = shards_[input.shard];
  if (shard.dropped) return shard.loop->refuse(input.input, *shard.dropped);
  shard.loop->handle(std::move(input.input), now);
}

// ---- writing ----------------------------------------

void Driver::write(Time now) {
  while (writes_.empty()) {
    std::size_t bytes = 0;
    bool is_slow = false;
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      if (shards_[shard].dropped) continue;
      const auto writing = shards_[shard].loop->begin_write(now);
      if (!writing) continue;
      writes_.push_back({shard, *writing});
      bytes += writing->commit->bytes.size();
      is_slow |= writing->verify;
    }
    if (writes_.empty()) return;
    if (bytes > small_commit || is_slow || is_reading()) {
      const std::lock_guard lock{writer_mutex_};
      has_to_write_ = true;
      writer_wake_.notify_one();
      return;
    }
    append(results_);
    now = clock_.now();
    end_writes(results_, now);
  }
}

// Everything that is on its way: one append, after those were looked at that were tried before.
void Driver::append(std::vector<store::Result<void>>& results) {
  results.clear();
  if (writes_.size() == 1) {
    const auto& [shard, writing] = writes_.front();
    results.push_back(write_commit(*shards_[shard].store, *writing.commit, writing.verify));
    return;
  }
  std::vector<store::ShardCommit> commits;
  std::vector<std::size_t> places;
  for (std::size_t index = 0; index < writes_.size(); ++index) {
    const auto& [shard, writing] = writes_[index];
    store::Store& store = *shards_[shard].store;
    const auto is_there = writing.verify ? is_written(store, *writing.commit) : false;
    results.push_back(is_there ? store::Result<void>{} : std::unexpected{is_there.error()});
    if (!is_there || *is_there) continue;
    commits.push_back({&store, writing.commit});
    places.push_back(index);
  }
  const auto appended = ledger_ != nullptr ? ledger_->append(commits) : store::append_each(commits);
  for (std::size_t index = 0; index < places.size(); ++index) results[places[index]] = appended[index];
}

void Driver::end_writes(std::vector<store::Result<void>>& results, Time now) {
  std::vector<Write> writes;
  writes.swap(writes_);
  for (std::size_t index = 0; index < writes.size(); ++index) {
    Driven& shard = shards_[writes[index].shard];
    const bool is_fenced = !results[index] && results[index].error().code == ErrorCode::fenced;
    if (is_fenced) shard.dropped = results[index].error();
    shard.loop->end_write(std::move(results[index]), now);
    if (is_fenced && when_dropped_) when_dropped_(writes[index].shard);
  }
  writes.clear();
  if (writes_.empty()) writes_.swap(writes);  // its memory is used again
}

void Driver::publish_stats() {
  EngineStats sum = shards_.front().loop->stats();
  if (shards_.front().dropped) sum = {.trouble = shards_.front().dropped->message};
  for (std::size_t index = 1; index < shards_.size(); ++index) {
    const Driven& shard = shards_[index];
    sum = sum_of(sum, shard.dropped ? EngineStats{.trouble = shard.dropped->message} : shard.loop->stats());
  }
  const bool is_busy = any_live([](const Loop& loop) {
    return loop.has_reserved() || loop.outstanding() > 0 || loop.has_news() || loop.waits_for_store();
  });
  const std::lock_guard lock{mutex_};
  stats_ = std::move(sum);
  is_calm_ = stats_.running == 0 && !is_busy && inbox_.empty();
  if (is_calm_) calm_.notify_all();
}

// ---- the writer's thread ----------------------------------------

void Driver::run_writer() {
  for (;;) {
    {
      std::unique_lock lock{writer_mutex_};
      writer_wake_.wait(lock, [&] { return has_to_write_ || writer_ends_; });
      if (!std::exchange(has_to_write_, false)) return;
    }
    std::vector<store::Result<void>> results;
    append(results);
    const std::lock_guard lock{mutex_};
    written_ = std::move(results);
    if (sleeping_) wake_.notify_one();
  }
}

// ---- reading ----------------------------------------

// Asked by the loops' thread, which alone begins to read and takes the answers.
bool Driver::is_reading() const {
  return std::ranges::any_of(readers_, [](const Reader& reader) { return !reader.reads.empty(); });
}

void Driver::read(Time now) {
  for (const Reading kind : readings) {
    Reader& reader = readers_[index_of(kind)];
    if (!reader.reads.empty()) continue;
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      if (shards_[shard].dropped) continue;
      if (const auto* const request = shards_[shard].loop->begin_read(kind, now))
        reader.reads.push_back({shard, request});
    }
    if (reader.reads.empty()) continue;
    if (!has_thread(kind)) {
      for (Read& read : reader.reads) read.answer = perform(*shards_[read.shard].store, *read.request);
    }
    const std::lock_guard lock{mutex_};
    reader.state = reader.thread.joinable() ? Reader::State::asked : Reader::State::told;
    reader.wake.notify_one();
  }
}

// False: the system has no thread for it now, so this one reads; the next time is another try.
bool Driver::has_thread(Reading kind) {
  Reader& reader = readers_[index_of(kind)];
  if (reader.thread.joinable()) return true;
  try {
    reader.thread = std::thread{[this, kind] { run_reader(kind); }};
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void Driver::end_reads(Reading kind, Time now) {
  Reader& reader = readers_[index_of(kind)];
  {
    const std::lock_guard lock{mutex_};
    if (reader.state != Reader::State::told) return;
    reader.state = Reader::State::idle;
  }
  for (Read& read : std::exchange(reader.reads, {})) {
    if (!shards_[read.shard].dropped) shards_[read.shard].loop->end_read(kind, std::move(read.answer), now);
  }
}

void Driver::run_reader(Reading kind) {
  Reader& reader = readers_[index_of(kind)];
  std::unique_lock lock{mutex_};
  for (;;) {
    reader.wake.wait(lock, [&] { return reader.state == Reader::State::asked || readers_end_; });
    if (readers_end_) return;
    lock.unlock();
    for (Read& read : reader.reads) read.answer = perform(*shards_[read.shard].store, *read.request);
    lock.lock();
    reader.state = Reader::State::told;
    if (sleeping_) wake_.notify_one();
  }
}

}  // namespace reprise::runtime
