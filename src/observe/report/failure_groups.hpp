// Failures by cause: those with the same fingerprint are one group, the largest first.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "observe/report/run_report.hpp"

namespace reprise::observe {

struct FailureGroup {
  std::string fingerprint;  // hexadecimal
  std::uint32_t step = 0;
  std::uint64_t count = 0;
  std::uint64_t dead_letters = 0;
  WallTime first = {};  // when the first of them failed for good, and the last
  WallTime last = {};
  TroubledItem sample = {};               // the first
  std::vector<std::uint32_t> items = {};  // their numbers, and labels, in order
  std::vector<std::string> labels = {};
};

struct FailedPiece {
  const TroubledItem* trouble = nullptr;
  std::string fingerprint;
};

std::vector<FailureGroup> failure_groups(std::span<const FailedPiece> failures);

}  // namespace reprise::observe
