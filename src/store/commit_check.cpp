#include "store/commit_check.hpp"

#include <algorithm>
#include <string>

namespace reprise::store {
namespace {

constexpr std::uint64_t number_max = INT64_MAX;  // SQLite's integers are signed
constexpr std::size_t hash_bytes = 32;

bool is_number(std::uint64_t number) { return number > 0 && number <= number_max; }

bool inside(Slice slice, const std::string& bytes) {
  return slice.offset <= bytes.size() && slice.size <= bytes.size() - slice.offset;
}

const char* trouble_with(const Image& image, const std::string& bytes) {
  if (!is_number(image.run)) return "an image has no run";
  if (image.status > RunStatus::canceled) return "an image has an unknown status";
  if (is_open(image.status) != (image.ended == 0))
    return "an image's status and its time of ending contradict each other";
  if (image.ended < 0 || image.due < 0) return "an image has a time before 1970";
  if (image.due > 0 && image.ended != 0) return "an image of a run that has ended is parked";
  if (image.first_sequence > number_max) return "an image has an impossible sequence";
  if (!inside(image.state, bytes) || !inside(image.events, bytes) || !inside(image.key, bytes)) {
    return "an image looks outside the commit's bytes";
  }
  return nullptr;
}

const char* trouble_with(const NewKey& key, const std::string& bytes) {
  if (!is_number(key.run)) return "a key has no run";
  if (key.key.size == 0) return "a key is empty";
  return inside(key.key, bytes) ? nullptr : "a key looks outside the commit's bytes";
}

const char* trouble_with(const NewPayload& payload, const std::string& bytes) {
  if (!is_number(payload.run)) return "a payload has no run";
  if (payload.hash.size != hash_bytes) return "a payload's hash has not 32 bytes";
  return inside(payload.hash, bytes) && inside(payload.body, bytes) ? nullptr
                                                                    : "a payload looks outside the commit's bytes";
}

const char* trouble_with(const NewPlan& plan, const std::string& bytes) {
  return inside(plan.name, bytes) && inside(plan.body, bytes) ? nullptr : "a plan looks outside the commit's bytes";
}

const char* trouble_with(const Commit& commit) {
  const auto first_in = [&](const auto& parts) -> const char* {
    for (const auto& part : parts) {
      if (const char* trouble = trouble_with(part, commit.bytes)) return trouble;
    }
    return nullptr;
  };
  if (!inside(commit.frame, commit.bytes)) return "its frame looks outside its bytes";
  if (commit.cut > commit.id) return "its cut lies in the future";
  if (!std::ranges::all_of(commit.removals, is_number)) return "a removal has no run";
  if (const char* trouble = first_in(commit.images)) return trouble;
  if (const char* trouble = first_in(commit.keys)) return trouble;
  if (const char* trouble = first_in(commit.payloads)) return trouble;
  return first_in(commit.plans);
}

}  // namespace

Result<void> check(const Commit& commit, std::uint64_t last_commit) {
  if (commit.id != last_commit + 1 || !is_number(commit.id)) {
    return std::unexpected{Error{ErrorCode::invalid, "Commit " + std::to_string(commit.id) + " cannot follow commit " +
                                                         std::to_string(last_commit) + "."}};
  }
  if (const char* trouble = trouble_with(commit)) {
    return std::unexpected{
        Error{ErrorCode::invalid, "Commit " + std::to_string(commit.id) + " is wrong: " + trouble + "."}};
  }
  return {};
}

}  // namespace reprise::store
