#include "text/nearest.hpp"

#include <algorithm>
#include <vector>

#include "text/ascii.hpp"

namespace reprise::text {
namespace {

// Insertions, deletions, replacements and swaps of neighbours.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before_previous(right.size() + 1);
  std::vector<std::size_t> previous(right.size() + 1);
  std::vector<std::size_t> current(right.size() + 1);
  for (std::size_t column = 0; column <= right.size(); ++column) previous[column] = column;
  for (std::size_t row = 1; row <= left.size(); ++row) {
    current[0] = row;
    for (std::size_t column = 1; column <= right.size(); ++column) {
      const std::size_t replaced =
          previous[column - 1] + (to_lower(left[row - 1]) == to_lower(right[column - 1]) ? 0 : 1);
      current[column] = std::min({previous[column] + 1, current[column - 1] + 1, replaced});
      const bool swapped = row > 1 && column > 1 && to_lower(left[row - 1]) == to_lower(right[column - 2]) &&
                           to_lower(left[row - 2]) == to_lower(right[column - 1]);
      if (swapped) current[column] = std::min(current[column], before_previous[column - 2] + 1);
    }
    before_previous.swap(previous);
    previous.swap(current);
  }
  return previous[right.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr std::size_t word_max = 64;  // nobody misspells a longer one; keeps the work bounded
  if (word.empty() || word.size() > word_max) return {};
  std::size_t closest = std::max<std::size_t>(2, word.size() / 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < closest && distance < candidate.size()) {
      closest = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view close = nearest(word, candidates);
  return close.empty() ? "" : "; did you mean " + std::string{close} + "?";
}

std::string join_words(std::span<const std::string_view> words, std::string_view last_joint) {
  std::string joined;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) joined += index + 1 == words.size() ? " " + std::string{last_joint} + " " : ", ";
    joined += words[index];
  }
  return joined;
}

}  // namespace reprise::text
