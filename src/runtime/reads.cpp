#include "runtime/reads.hpp"

#include <algorithm>

#include "exec/function/list.hpp"

namespace reprise::runtime {
namespace {

store::Result<std::optional<KeyOwner>> owner_of(store::Store& store, const std::string& key) {
  const auto run = store.run_of_key(key);
  if (!run) return std::unexpected{run.error()};
  if (!*run) return std::nullopt;
  const auto row = store.read_run(**run);
  if (!row) return std::unexpected{row.error()};
  KeyOwner owner{.run = **run};
  if (*row) owner.created = (*row)->created;
  return owner;
}

store::Result<std::optional<std::uint32_t>> size_of_list(store::Store& store, const std::string& hash) {
  const auto stored = store.read_payload(hash);
  if (!stored) return std::unexpected{stored.error()};
  if (!*stored) return std::nullopt;
  return exec::list_size(**stored);
}

template <class Answers>
bool any_failed(const Answers& answers) {
  return std::ranges::any_of(answers, [](const auto& answer) { return !answer.has_value(); });
}

}  // namespace

bool ReadRequest::is_empty() const noexcept {
  return keys.empty() && runs.empty() && lists.empty() && !open && !due && !find && !expired;
}

bool ReadAnswer::has_error() const {
  return any_failed(keys) || any_failed(runs) || any_failed(lists) || (open && !*open) || (due && !*due) ||
         (next_due && !*next_due) || (find && !*find) || (expired && !*expired);
}

ReadAnswer perform(store::Store& store, const ReadRequest& request) {
  ReadAnswer answer;
  for (const std::string& key : request.keys) answer.keys.push_back(owner_of(store, key));
  for (const std::uint64_t run : request.runs) answer.runs.push_back(store.read_run(run));
  for (const std::string& hash : request.lists) answer.lists.push_back(size_of_list(store, hash));
  if (request.open) answer.open = store.read_open(request.open->after, request.open->limit);
  if (const auto& due = request.due) {
    answer.due = store.read_due(due->before, due->after, due->limit);
    const Rows* const rows = answer.due->has_value() ? &**answer.due : nullptr;
    if (rows != nullptr && rows->size() < due->limit)
      answer.next_due =
          store.next_due(rows->empty() ? due->after : store::DueCursor{rows->back().due, rows->back().run});
  }
  if (request.find) answer.find = store.find(request.find->filter, request.find->below, request.find->limit);
  if (const auto& question = request.expired)
    answer.expired = store.expired(question->ended_before, question->keep, question->limit);
  return answer;
}

}  // namespace reprise::runtime
