// Evidence of a failure as bytes: six for the numbers and flags, then lines of text. The seeds are packed by the same file that
// unpacks them, so that they cannot disagree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include <reprise/classify.hpp>

namespace reprise::fuzz {

// After the head: type \n spawn error \n Retry-After \n message, which may have line ends of its own.
constexpr std::size_t evidence_head_bytes = 6;
constexpr int absent = 0xFF;  // a byte of a number that was not seen

struct EvidenceBytes {
  Evidence evidence;
  std::string_view retry_after;
};

inline std::uint8_t flags_of(const Evidence& evidence) noexcept {
  const bool flags[] = {
      evidence.timed_out, evidence.stalled,   evidence.canceled,      evidence.worker_lost,
      evidence.dns_error, evidence.test_step, evidence.schema_failed, evidence.permanent.value_or(false)};
  unsigned bits = 0;
  for (unsigned index = 0; index < std::size(flags); ++index) bits |= static_cast<unsigned>(flags[index]) << index;
  return static_cast<std::uint8_t>(bits);
}

inline std::string pack(const Evidence& evidence, std::string_view retry_after) {
  const int http = evidence.http_status.value_or(0);
  const int kind = evidence.failure_class ? static_cast<int>(*evidence.failure_class) : absent;
  std::string bytes;
  for (const int byte : {evidence.exit_code.value_or(absent), evidence.signal.value_or(absent), http / 256, http % 256,
                         kind, static_cast<int>(flags_of(evidence))}) {
    bytes += static_cast<char>(byte);
  }
  for (const std::string_view line : {evidence.type, evidence.spawn_error, retry_after}) bytes.append(line) += '\n';
  return bytes.append(evidence.message);
}

// What is not there stays empty; the texts are views into `bytes`.
inline EvidenceBytes unpack(std::string_view bytes) {
  std::string head{bytes.substr(0, evidence_head_bytes)};
  head.resize(evidence_head_bytes, static_cast<char>(absent));
  std::string_view rest = bytes.substr(std::min(bytes.size(), evidence_head_bytes));
  const auto number = [&](std::size_t at) { return static_cast<int>(static_cast<unsigned char>(head[at])); };
  const auto take_line = [&] {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return line;
  };

  EvidenceBytes unpacked;
  Evidence& evidence = unpacked.evidence;
  if (number(0) != absent) evidence.exit_code = number(0);
  if (number(1) != absent) evidence.signal = number(1);
  if (const int http = number(2) * 256 + number(3); http != 0) evidence.http_status = http;
  if (number(4) != absent) evidence.failure_class = static_cast<FailureClass>(number(4) % 6);
  const int flags = number(5);
  evidence.timed_out = (flags & 1) != 0;
  evidence.stalled = (flags & 2) != 0;
  evidence.canceled = (flags & 4) != 0;
  evidence.worker_lost = (flags & 8) != 0;
  evidence.dns_error = (flags & 16) != 0;
  evidence.test_step = (flags & 32) != 0;
  evidence.schema_failed = (flags & 64) != 0;
  if ((flags & 128) != 0) evidence.permanent = true;
  evidence.type = take_line();
  evidence.spawn_error = take_line();
  unpacked.retry_after = take_line();
  evidence.message = rest;
  return unpacked;
}

}  // namespace reprise::fuzz
