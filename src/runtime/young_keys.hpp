// Idempotency keys of runs whose commit is not durable yet: the store cannot be asked for them.
//
// Thread safety: none; it belongs to a loop.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

namespace reprise::runtime {

class YoungKeys {
 public:
  // A key that a run had which is being removed goes to the new one.
  void add(const std::string& key, std::uint64_t run, std::uint64_t commit);
  std::optional<std::uint64_t> find(const std::string& key) const;
  // What was written up to this commit can be asked of the store.
  void written(std::uint64_t commit);
  std::size_t size() const noexcept { return runs_.size(); }

 private:
  struct Entry {
    std::uint64_t commit;
    std::uint64_t run;
    std::string key;
  };

  std::unordered_map<std::string, std::uint64_t> runs_;
  std::deque<Entry> order_;  // by commit
};

}  // namespace reprise::runtime
