// Timing of things that take nanoseconds: many short rounds, all candidates in each round, and the median of them.
//
//   const auto result = compare(1000, [&] { bare(); }, [&] { wrapped(); });
//   // result.above_first[1] is what wrapping costs: the difference within a round, so a noisy machine disturbs both sides alike
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace reprise::bench {

// The loop is part of the candidate's type, so that nothing but the candidate is between two of its calls.
template <class Call>
double ns_per_call(std::size_t calls, Call& call) {
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t index = 0; index < calls; ++index) call();
  const std::chrono::duration<double, std::nano> span = std::chrono::steady_clock::now() - start;
  return span.count() / static_cast<double>(calls);
}

template <std::size_t count>
struct Medians {
  std::array<double, count> ns;           // of each candidate
  std::array<double, count> above_first;  // of the differences to the first candidate, round by round
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Each round times every candidate once, for `calls` calls.
template <class... Calls>
Medians<sizeof...(Calls)> compare(std::size_t calls, Calls&&... candidates) {
  constexpr std::size_t rounds = 501;
  constexpr std::size_t count = sizeof...(Calls);
  std::array<std::vector<double>, count> spans;
  std::array<std::vector<double>, count> differences;
  (ns_per_call(calls, candidates), ...);  // warm up
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::array<double, count> ns{ns_per_call(calls, candidates)...};
    for (std::size_t index = 0; index < count; ++index) {
      spans[index].push_back(ns[index]);
      differences[index].push_back(ns[index] - ns[0]);
    }
  }
  Medians<count> result;
  for (std::size_t index = 0; index < count; ++index) {
    result.ns[index] = median(std::move(spans[index]));
    result.above_first[index] = median(std::move(differences[index]));
  }
  return result;
}

}  // namespace reprise::bench
