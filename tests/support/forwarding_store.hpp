// A store that gives everything to another one; tests take what they want to go wrong out of it.
#pragma once

#include <memory>
#include <utility>

#include "store/store.hpp"

namespace reprise::testing_support {

class ForwardingStore : public store::Store {
 public:
  using Time = event::Time;

  explicit ForwardingStore(std::unique_ptr<store::Store> inner) : inner_{std::move(inner)} {}

  store::Result<void> append(const store::Commit& commit) override { return inner_->append(commit); }
  store::Result<void> reopen() override { return inner_->reopen(); }
  store::Result<std::uint64_t> last_commit() override { return inner_->last_commit(); }
  std::uint64_t secret() override { return inner_->secret(); }
  std::uint32_t slot() override { return inner_->slot(); }
  store::Result<std::uint64_t> last_run() override { return inner_->last_run(); }
  store::Result<void> read_journal(const FrameReader& reader) override { return inner_->read_journal(reader); }
  store::Result<std::optional<store::StoredRun>> read_run(std::uint64_t run) override { return inner_->read_run(run); }
  store::Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override {
    return inner_->read_history(run, reader);
  }
  store::Result<std::vector<store::StoredRun>> read_open(std::uint64_t after, std::size_t limit) override {
    return inner_->read_open(after, limit);
  }
  store::Result<std::vector<store::StoredRun>> read_due(Time before, store::DueCursor after,
                                                        std::size_t limit) override {
    return inner_->read_due(before, after, limit);
  }
  store::Result<std::optional<Time>> next_due(store::DueCursor after) override { return inner_->next_due(after); }
  store::Result<std::vector<store::StoredRun>> find(const store::RunFilter& filter, std::uint64_t below,
                                                    std::size_t limit) override {
    return inner_->find(filter, below, limit);
  }
  store::Result<std::vector<std::uint64_t>> expired(Time before, std::uint64_t keep, std::size_t limit) override {
    return inner_->expired(before, keep, limit);
  }
  store::Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override {
    return inner_->run_of_key(key);
  }
  store::Result<std::optional<std::string>> read_payload(std::string_view hash) override {
    return inner_->read_payload(hash);
  }
  store::Result<std::vector<store::StoredPlan>> read_plans() override { return inner_->read_plans(); }
  store::Result<std::uint64_t> count_open() override { return inner_->count_open(); }

 protected:
  store::Store& inner() noexcept { return *inner_; }

 private:
  std::unique_ptr<store::Store> inner_;
};

}  // namespace reprise::testing_support
