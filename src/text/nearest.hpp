// The word somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace reprise::text {

// The closest candidate within a third of the word's length (two edits at least), without regard to case; "" if none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// The end of a sentence about an unknown word: "; did you mean retry?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

// a, b or c
std::string join_words(std::span<const std::string_view> words, std::string_view last_joint = "or");

}  // namespace reprise::text
