// Random commits, and the comparison of two stores through everything that can be read from them.
//
// Thread safety: none; one test uses it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "store/store.hpp"

namespace reprise::testing_support {

// Draws commits that make sense one after the other, of few runs, keys, payloads and plans, so that they meet again and again.
class CommitSource {
 public:
  explicit CommitSource(std::uint64_t seed) : random_{seed} {}

  const store::Commit& next();  // the one after the last
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

 private:
  void add_image(std::uint64_t run);
  std::string text(std::size_t size_max);

  std::mt19937_64 random_;
  store::Commit commit_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_run_ = 0;
  std::uint64_t sequence_ = 1;
  store::Time now_ = 1'700'000'000'000'000'000;
};

// Fails the current test (GoogleTest) where the two do not answer the same.
void expect_same(store::Store& expected, store::Store& actual, std::uint64_t seed);

}  // namespace reprise::testing_support
