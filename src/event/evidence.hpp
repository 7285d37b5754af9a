// What a failed attempt left behind for who repairs it: the ends of what it wrote, and what was wrong with its result.
//
//   failure.evidence = encode(FailureEvidence{.err = tail_of(text)});
//   if (is_kept_apart(failure)) …  // longer ones are in the store, under the hash that stands in their place
//
// Bounds: tail_bytes_max of each stream, mistakes_max mistakes, failing_lines_max lines; a cut is at the end of a line.
// Thread safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/failure.hpp>

namespace reprise::event {

struct FailureEvidence {
  static constexpr std::size_t tail_bytes_max = 4096;
  static constexpr std::size_t mistakes_max = 20;
  static constexpr std::size_t inline_bytes_max = 512;  // what is longer is kept apart: a million items may be waiting

  std::string out = {};                    // of standard output, or of the body of an answer
  std::string err = {};                    // of standard error
  std::vector<std::string> mistakes = {};  // all that a check of the result found
  std::vector<std::string> failing = {};   // lines that name which tests failed
  std::vector<std::string> done = {};      // what the commands before this one have given, when it alone is tried again

  bool empty() const noexcept {
    return out.empty() && err.empty() && mistakes.empty() && failing.empty() && done.empty();
  }
  // What was written, as one text.
  std::string output() const;
  bool operator==(const FailureEvidence&) const = default;
};

// The last whole lines; of a single line that is longer, its last characters.
std::string_view tail_of(std::string_view text, std::size_t bytes_max = FailureEvidence::tail_bytes_max) noexcept;

// Empty evidence gives no bytes. Tags that are not known are passed by when it is read; std::nullopt: it is damaged.
std::string encode(const FailureEvidence& evidence);
std::optional<FailureEvidence> decode_evidence(std::string_view bytes);

inline bool is_kept_apart(const Failure& failure) noexcept { return failure.evidence_size > failure.evidence.size(); }
// What stands in the failure itself; empty when there is none, or it is kept apart.
FailureEvidence evidence_in(const Failure& failure);

// For people and programs that read it as a file: the message, then each part under its name.
std::string in_full(const Failure& failure, const FailureEvidence& evidence);

}  // namespace reprise::event
