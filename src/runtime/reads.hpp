// What the loop wants to know from its store, as requests and answers: whoever drives the loop does the reading, on another thread or at
// another time.
//
// Thread safety: values; perform() from any thread, as the store's reading functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/retention.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

// Two kinds, which do not wait for each other: what inputs and runs wait for, and lists, which may take long.
enum class Reading : std::uint8_t { look_ups, listings };
inline constexpr Reading readings[] = {Reading::look_ups, Reading::listings};
constexpr std::size_t index_of(Reading kind) noexcept { return static_cast<std::size_t>(kind); }

// Everything of a kind that is wanted at a time.
struct ReadRequest {
  struct OpenRuns {
    std::uint64_t after = 0;
    std::size_t limit = 0;
  };
  struct DueRuns {
    event::Time before = 0;
    store::DueCursor after;
    std::size_t limit = 0;
  };
  struct Listing {
    store::RunFilter filter;
    std::uint64_t below = 0;
    std::size_t limit = 0;
  };
  std::vector<std::string> keys;
  std::vector<std::uint64_t> runs;
  std::vector<std::string> lists;  // hashes of payloads: how many elements have they?
  std::optional<OpenRuns> open;
  std::optional<DueRuns> due;
  std::optional<Listing> find;
  std::optional<Retention::Question> expired;

  bool is_empty() const noexcept;
};

struct KeyOwner {
  std::uint64_t run = 0;
  std::optional<event::Time> created = {};  // std::nullopt: it has no row (yet)
};

using Rows = std::vector<store::StoredRun>;

// To each question of the request, in its order.
struct ReadAnswer {
  std::vector<store::Result<std::optional<KeyOwner>>> keys;
  std::vector<store::Result<std::optional<store::StoredRun>>> runs;
  std::vector<store::Result<std::optional<std::uint32_t>>> lists;  // std::nullopt: it is none
  std::optional<store::Result<Rows>> open;
  std::optional<store::Result<Rows>> due;
  std::optional<store::Result<std::optional<event::Time>>>
      next_due;  // after the last of `due`, unless there are more of those
  std::optional<store::Result<Rows>> find;
  std::optional<store::Result<std::vector<std::uint64_t>>> expired;

  bool has_error() const;
};

ReadAnswer perform(store::Store& store, const ReadRequest& request);

}  // namespace reprise::runtime
