#include "exec/place_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace reprise::exec {

PlaceKeeper::Limits PlaceKeeper::limits_of(const Job& job) {
  Limits limits;
  if (job.limits.handler > 0) limits.push_back({{Kind::handler, 0, job.handler}, job.limits.handler});
  if (job.limits.step > 0) limits.push_back({{Kind::step, job.id.run, job.id.step}, job.limits.step});
  if (job.limits.run > 0) limits.push_back({{Kind::run, job.id.run, 0}, job.limits.run});
  return limits;
}

const PlaceKeeper::Limit* PlaceKeeper::first_full(const Limits& limits) const {
  const auto found = std::ranges::find_if(limits, [&](const Limit& limit) {
    const auto gate = gates_.find(limit.gate);
    return gate != gates_.end() && gate->second.taken >= limit.max;
  });
  return found != limits.end() ? &*found : nullptr;
}

void PlaceKeeper::take(const AttemptId& id, Limits limits) {
  for (const Limit& limit : limits) ++gates_[limit.gate].taken;
  holders_.emplace(id, std::move(limits));
}

bool PlaceKeeper::enter(Job& job) {
  Limits limits = limits_of(job);
  if (limits.empty()) return true;
  if (const auto holder = holders_.find(job.id); holder != holders_.end()) {  // it was outside, and has its other places
    if (!is_of_handler(limits.front()) || std::ranges::any_of(holder->second, is_of_handler)) return true;
    ++gates_[limits.front().gate].taken;
    holder->second.push_back(limits.front());
    return true;
  }
  const Limit* const full = job.limits.waits ? first_full(limits) : nullptr;
  if (full == nullptr) {
    take(job.id, std::move(limits));
    return true;
  }
  gates_[full->gate].line.push_back(job.id);
  const AttemptId id = job.id;
  waiting_.emplace(id, std::move(job));
  return false;
}

std::vector<Job> PlaceKeeper::leave(const AttemptId& id) {
  const auto holder = holders_.extract(id);
  return holder.empty() ? std::vector<Job>{} : free(holder.mapped());
}

std::vector<Job> PlaceKeeper::hand_over(const AttemptId& id) {
  const auto holder = holders_.find(id);
  if (holder == holders_.end()) return {};
  Limits freed;
  std::ranges::copy_if(holder->second, std::back_inserter(freed), is_of_handler);
  std::erase_if(holder->second, is_of_handler);
  return free(freed);
}

std::vector<Job> PlaceKeeper::free(const Limits& limits) {
  std::vector<Job> begun;
  for (const Limit& limit : limits) --gates_[limit.gate].taken;
  for (const Limit& limit : limits) pass_on(limit.gate, begun);
  for (const Limit& limit : limits) {
    if (const auto gate = gates_.find(limit.gate); gate != gates_.end() && gate->second.taken == 0) gates_.erase(gate);
  }
  return begun;
}

// A job that has a place here may find the next gate full: then it waits there.
void PlaceKeeper::pass_on(const Gate& gate, std::vector<Job>& begun) {
  Standing& standing = gates_[gate];
  while (!standing.line.empty()) {
    const AttemptId id = standing.line.front();
    const auto waiting = waiting_.find(id);
    if (waiting == waiting_.end()) {
      standing.line.pop_front();
      continue;
    }
    Limits limits = limits_of(waiting->second);
    const Limit* const full = first_full(limits);
    if (full != nullptr && full->gate == gate) return;
    standing.line.pop_front();
    if (full != nullptr) {
      gates_[full->gate].line.push_back(id);
      continue;
    }
    take(id, std::move(limits));
    begun.push_back(std::move(waiting->second));
    waiting_.erase(waiting);
  }
}

bool PlaceKeeper::take_back(const AttemptId& id) { return waiting_.erase(id) > 0; }

std::vector<AttemptId> PlaceKeeper::take_back_all() {
  std::vector<AttemptId> ids;
  for (const auto& [id, job] : waiting_) ids.push_back(id);
  waiting_.clear();
  return ids;
}

}  // namespace reprise::exec
