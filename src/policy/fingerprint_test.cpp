// The same failure again, or another one? What varies from attempt to attempt does not count; everything else does.
#include <reprise/classify.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise {
namespace {

std::uint64_t fingerprint_of(std::string_view message) {
  return fingerprint("step", FailureClass::transient, message, 1);
}

TEST(PolicyFingerprint, what_varies_does_not_count) {
  const std::pair<const char*, const char*> same[] = {
      {"at 2026-03-01T10:20:30.123Z: boom", "at 2027-12-31T23:59:59Z: boom"},
      {"2026/03/01 10:20:30 boom", "2025/01/02 00:00:00 boom"},
      {"[10:20:30.5] boom", "[23:59:59] boom"},
      {"on 2026-03-01 boom", "on 2026-03-02 boom"},
      {"id 123e4567-e89b-12d3-a456-426614174000 lost", "id 00000000-0000-0000-0000-00000000000a lost"},
      {"request 123E4567-E89B-12D3-A456-426614174000", "request 123e4567-e89b-12d3-a456-426614174001"},
      {"crash at 0x7ffc12ab", "crash at 0x1"},
      {"commit 1a2b3c4d5e", "commit deadbeef01"},
      {"after 1.5s", "after 300ms"},
      {"after 1h30m", "after 12 seconds"},
      {"took 5 minutes", "took 1 minute"},
      {"cannot open /tmp/abc123/x.json", "cannot open /tmp/zzz/y.json"},
      {"cannot open /var/folders/q/T/x.", "cannot open /tmp/y."},
      {"main.go:12:5: boom", "main.go:7:80: boom"},
      {"main.go:1234 boom", "main.go:8 boom"},
      {"pid 123456 died", "pid 9999 died"},
      {"port localhost:43210 refused", "port localhost:55555 refused"},
      {"Connection Reset", "connection reset"},
      {"a  b\n\tc ", "a b c"},
      {"worker12345 gone", "worker99999 gone"},
  };
  for (const auto& [left, right] : same) {
    EXPECT_EQ(normalize_message(left), normalize_message(right));
    EXPECT_EQ(fingerprint_of(left), fingerprint_of(right)) << left << " / " << right;
  }
}

TEST(PolicyFingerprint, everything_else_counts) {
  const std::pair<const char*, const char*> different[] = {
      {"connection reset", "connection refused"},
      {"exit 3", "exit 4"},
      {"HTTP 503", "HTTP 500"},
      {"main.go:12: boom", "other.go:12: boom"},
      {"cannot open /etc/passwd", "cannot open /etc/hosts"},
      {"after 5s: x", "after 5s: y"},
      {"", "x"},
      {"facade", "decade"},
      {"v1 gone", "v2 gone"},
  };
  for (const auto& [left, right] : different)
    EXPECT_NE(fingerprint_of(left), fingerprint_of(right)) << left << " / " << right;
}

TEST(PolicyFingerprint, step_class_and_exit_code_count) {
  const std::uint64_t base = fingerprint("a", FailureClass::transient, "m", 1);
  EXPECT_EQ(base, fingerprint("a", FailureClass::transient, "m", 1));
  EXPECT_NE(base, fingerprint("b", FailureClass::transient, "m", 1));
  EXPECT_NE(base, fingerprint("a", FailureClass::deterministic, "m", 1));
  EXPECT_NE(base, fingerprint("a", FailureClass::transient, "m", 2));
  EXPECT_NE(base, fingerprint("a", FailureClass::transient, "m", std::nullopt));
  EXPECT_NE(fingerprint("ab", FailureClass::transient, "c", 1), fingerprint("a", FailureClass::transient, "bc", 1))
      << "fields do not run together";
}

TEST(PolicyFingerprint, normalized_messages_read_well) {
  EXPECT_EQ(normalize_message("2026-03-01T10:20:30Z ERROR main.go:12:5: /tmp/x-1 took 1.5s, id 12345 at 0xFF"),
            "<time> error main.go:<line>: <tmp> took <duration>, id <n> at <hex>");
  EXPECT_EQ(normalize_message("  "), "");
  EXPECT_EQ(normalize_message(""), "");
}

TEST(PolicyFingerprint, is_bounded) {
  const std::string long_one(1'000'000, 'x');
  EXPECT_EQ(normalize_message(long_one).size(), 512U);
  EXPECT_EQ(fingerprint_of(long_one), fingerprint_of(long_one + "y"));
  std::string marks;
  for (int count = 0; count < 10'000; ++count) marks += "12345 ";
  EXPECT_LE(normalize_message(marks).size(), 512U);
}

RC_GTEST_PROP(PolicyFingerprintProperty, any_message_is_normalized_within_bounds, ()) {
  const auto piece = rc::gen::element<std::string>(
      "2026-03-01", "T", "10:20:30", ".", ",", ":", " ", "1", "12345", "0x", "ff", "ab12cd34", "/tmp/", "a", "ms", "s",
      "h", "-", "seconds", "Z", "+", "\n", "é", "_", "123e4567-e89b-12d3-a456-426614174000", "\xff");
  std::string message;
  for (const std::string& each : *rc::gen::container<std::vector<std::string>>(piece)) message += each;
  const std::string normalized = normalize_message(message);
  RC_ASSERT(normalized.size() <= 512U);
  RC_ASSERT(fingerprint_of(message) == fingerprint_of(message));
}

}  // namespace
TEST(PolicyFingerprint, a_number_after_a_colon_is_a_line_only_after_a_file_name) {
  EXPECT_EQ(normalize_message("main.go:12: boom"), normalize_message("main.go:99: boom"));
  EXPECT_NE(normalize_message("status:503"), normalize_message("status:404"));
  EXPECT_NE(normalize_message("code:3"), normalize_message("code:4"));
}

}  // namespace reprise
