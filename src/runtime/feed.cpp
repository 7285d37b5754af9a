#include "runtime/feed.hpp"

#include <algorithm>

#include "event/codec.hpp"

namespace reprise::runtime {

// One run: was it read, dropped or added before?
bool Feed::is_known(const Event& event) const {
  const std::uint64_t last_past = past.empty() ? 0 : past.back().sequence;
  return event.sequence <= std::max({taken, subscription.after, last_past});
}

void Feed::add(const Event& event) {
  const std::lock_guard lock{mutex};
  if (is_known(event)) return;
  if (!events.empty() && event.sequence >= events.front().sequence) {
    // Published meanwhile, perhaps by somebody who joined in the middle: the past knows more about it.
    const std::uint64_t index = event.sequence - events.front().sequence;
    if (index < events.size() && events[index].sequence == event.sequence) events[index] = event;
    return;
  }
  past.push_back(event);
  drop_oldest();
}

void Feed::publish(const Event& event, bool is_sure) {
  const std::lock_guard lock{mutex};
  if (subscription.run && is_known(event)) return;
  if (!is_sure) unsure_until = event.sequence;
  events.push_back(event);
  drop_oldest();
  wake.notify_one();
}

void Feed::drop_oldest() {
  if (past.size() + events.size() <= std::max<std::size_t>(1, subscription.buffer)) return;
  (void)take();
  ++dropped;
}

std::optional<Event> Feed::take() {
  std::deque<Event>& from = past.empty() ? events : past;
  if (from.empty()) return std::nullopt;
  Event event = std::move(from.front());
  from.pop_front();
  taken = event.sequence;
  return event;
}

void Feed::close() {
  const std::lock_guard lock{mutex};
  open = false;
  wake.notify_all();
}

std::shared_ptr<Feed> Feeds::add(Subscription subscription) {
  auto feed = std::make_shared<Feed>(std::move(subscription));
  const std::lock_guard lock{mutex_};
  feeds_.push_back(feed);
  watching_ = true;
  return feed;
}

void Feeds::close() {
  const std::lock_guard lock{mutex_};
  for (const auto& weak : feeds_) {
    if (const auto feed = weak.lock()) feed->close();
  }
}

void Feeds::prime(const RunId& run, event::EventHistory history, std::uint64_t last_sequence) {
  const std::lock_guard lock{mutex_};
  const auto found = histories_.find(run);
  if (found != histories_.end() && found->second.next > last_sequence + 1) return;
  histories_.insert_or_assign(run, Known{std::move(history), last_sequence + 1, true});
}

bool Feeds::knows(const RunId& run) {
  const std::lock_guard lock{mutex_};
  return histories_.contains(run);
}

void Feeds::published(const RunId& run, const core::Plan& plan, std::uint64_t chunk_first, std::uint64_t new_first,
                      std::string_view chunk) {
  constexpr std::size_t histories_max = 100'000;
  const std::lock_guard lock{mutex_};
  std::erase_if(feeds_, [](const std::weak_ptr<Feed>& feed) { return feed.expired(); });
  if (feeds_.empty()) {
    watching_ = false;
    histories_.clear();
    return;
  }
  auto found = histories_.find(run);
  bool is_new = found == histories_.end();
  if (is_new) {
    if (histories_.size() >= histories_max) histories_.clear();
    found =
        histories_.emplace(run, Known{event::EventHistory{run, core::step_labels(plan)}, 1, chunk_first == 1}).first;
  }
  event::ChunkReader reader{chunk, chunk_first};
  event::Record record;
  bool ended = false;
  while (reader.next(record)) {
    if (record.sequence < new_first && !is_new) continue;  // known from the time before
    Known& known = found->second;
    // What was read as the past a moment ago is told without what depends on it: whoever read it knows.
    const bool was_read = record.sequence < known.next;
    const Event event =
        was_read ? event::EventHistory{run, core::step_labels(plan)}.add(record) : known.history.add(record);
    known.next = std::max(known.next, record.sequence + 1);
    ended = record.type == EventType::ended;
    if (record.sequence < new_first) continue;
    for (const auto& weak : feeds_) {
      const auto feed = weak.lock();
      if (feed != nullptr && (!feed->subscription.run || *feed->subscription.run == run))
        feed->publish(event, known.is_complete && !was_read);
    }
  }
  if (ended) histories_.erase(found);
}

}  // namespace reprise::runtime

namespace reprise {

Events::Events(std::shared_ptr<runtime::Feed> feed) noexcept : feed_{std::move(feed)} {}
Events::Events(Events&&) noexcept = default;
Events& Events::operator=(Events&&) noexcept = default;
Events::~Events() = default;

std::optional<Event> Events::next(Duration patience) {
  std::unique_lock lock{feed_->mutex};
  const auto has_news = [&] { return !feed_->past.empty() || !feed_->events.empty() || !feed_->open; };
  if (!feed_->wake.wait_for(lock, patience, has_news)) return std::nullopt;
  return feed_->take();
}

std::uint64_t Events::dropped() const noexcept {
  const std::lock_guard lock{feed_->mutex};
  return feed_->dropped;
}

}  // namespace reprise
