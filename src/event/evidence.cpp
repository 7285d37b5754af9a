#include "event/evidence.hpp"

#include <algorithm>

#include "event/codec.hpp"

namespace reprise::event {
namespace {

// The numbers are stored: never change one, never use one again.
namespace tag {
constexpr std::uint64_t out = 1;
constexpr std::uint64_t err = 2;
constexpr std::uint64_t mistake = 3;  // once for each
constexpr std::uint64_t failing = 4;  // once for each
constexpr std::uint64_t done = 5;     // once for each, also for what is empty
}  // namespace tag

void put(std::string& bytes, std::uint64_t tag, std::string_view text) {
  if (text.empty()) return;
  put_varint(bytes, tag);
  put_bytes(bytes, text);
}

bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

void add_lines(std::string& text, std::string_view title, std::string_view lines) {
  if (lines.empty()) return;
  text += "\n" + std::string{title} + ":\n" + std::string{lines};
  if (!text.ends_with('\n')) text += '\n';
}

void add_list(std::string& text, std::string_view title, const std::vector<std::string>& list) {
  if (list.empty()) return;
  text += "\n" + std::string{title} + ":\n";
  for (const std::string& each : list) text += "- " + each + "\n";
}

}  // namespace

std::string FailureEvidence::output() const {
  if (out.empty() || err.empty()) return out + err;
  return out + (out.ends_with('\n') ? "" : "\n") + err;
}

std::string_view tail_of(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::string_view tail = text.substr(text.size() - bytes_max);
  const bool begins_a_line = text[text.size() - bytes_max - 1] == '\n';
  if (begins_a_line) return tail;
  const std::size_t line_end = tail.find('\n');
  if (line_end != std::string_view::npos && line_end + 1 < tail.size()) return tail.substr(line_end + 1);
  while (!tail.empty() && is_continuation(tail.front())) tail.remove_prefix(1);
  return tail;
}

std::string encode(const FailureEvidence& evidence) {
  std::string bytes;
  put(bytes, tag::out, evidence.out);
  put(bytes, tag::err, evidence.err);
  for (const std::string& mistake : evidence.mistakes) put(bytes, tag::mistake, mistake);
  for (const std::string& line : evidence.failing) put(bytes, tag::failing, line);
  for (const std::string& output : evidence.done) {
    put_varint(bytes, tag::done);
    put_bytes(bytes, output);
  }
  return bytes;
}

std::optional<FailureEvidence> decode_evidence(std::string_view bytes) {
  ByteReader in{bytes};
  FailureEvidence evidence;
  while (!in.at_end() && in.ok()) {
    const std::uint64_t tag = in.varint();
    const std::string_view text = in.bytes();
    if (tag == tag::out) evidence.out = text;
    if (tag == tag::err) evidence.err = text;
    if (tag == tag::mistake) evidence.mistakes.emplace_back(text);
    if (tag == tag::failing) evidence.failing.emplace_back(text);
    if (tag == tag::done) evidence.done.emplace_back(text);
  }
  if (!in.ok()) return std::nullopt;
  return evidence;
}

FailureEvidence evidence_in(const Failure& failure) {
  if (is_kept_apart(failure)) return {};
  return decode_evidence(failure.evidence).value_or(FailureEvidence{});
}

std::string in_full(const Failure& failure, const FailureEvidence& evidence) {
  std::string text = failure.message + "\n";
  add_list(text, "mistakes", evidence.mistakes);
  add_list(text, "failing", evidence.failing);
  add_lines(text, "stdout", evidence.out);
  add_lines(text, "stderr", evidence.err);
  return text;
}

}  // namespace reprise::event
