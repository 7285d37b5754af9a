#include "exec/fiber/closures.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace reprise::exec {
namespace {

constexpr Duration patience = std::chrono::seconds{10};

Failure not_there() {
  return {.type = "NotThereError",
          .message = "the function that runs this is not in memory",
          .failure_class = FailureClass::transient};
}

}  // namespace

void Closures::add(std::uint64_t run, const std::string& path, Closure closure) {
  const std::lock_guard lock{mutex_};
  entries_.insert_or_assign(Key{run, path}, Entry{std::move(closure)});
  changed_.notify_all();
}

bool Closures::remove(std::uint64_t run, const std::string& path, std::function<void()> when_it_has_returned) {
  const std::lock_guard lock{mutex_};
  const auto found = entries_.find(Key{run, path});
  if (found == entries_.end()) return true;
  if (found->second.is_running) {
    found->second.when_it_has_returned = std::move(when_it_has_returned);
    return false;
  }
  entries_.erase(found);
  return true;
}

bool Closures::remove_all(std::uint64_t run) {
  const auto is_running = [&] {
    return std::ranges::any_of(entries_, [&](const auto& entry) { return entry.first.first == run && entry.second.is_running; });
  };
  std::unique_lock lock{mutex_};
  for (auto& [key, entry] : entries_) {
    if (key.first == run) entry.when_it_has_returned = nullptr;
  }
  if (!changed_.wait_for(lock, patience, [&] { return !is_running(); })) return false;
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.first == run; });
  return true;
}

std::expected<std::string, Failure> Closures::call(std::uint64_t run, const std::string& path, const std::stop_token& stop) {
  const Key key{run, path};
  Entry* entry = nullptr;
  {
    std::unique_lock lock{mutex_};
    if (!changed_.wait_for(lock, stop, patience, [&] { return entries_.contains(key); })) return std::unexpected{not_there()};
    entry = &entries_.at(key);
    entry->is_running = true;  // from now on it stays there
  }
  const auto returned = [&] {
    std::function<void()> tell;
    const std::lock_guard lock{mutex_};
    entry->is_running = false;
    changed_.notify_all();
    if (entry->when_it_has_returned == nullptr) return tell;
    tell = std::move(entry->when_it_has_returned);
    entries_.erase(key);
    return tell;
  };
  std::expected<std::string, Failure> result;
  try {
    result = entry->closure();
  } catch (...) {
    result = std::unexpected{to_failure(std::current_exception())};
  }
  if (const auto tell = returned()) tell();
  return result;
}

}  // namespace reprise::exec
