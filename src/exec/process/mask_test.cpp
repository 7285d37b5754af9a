// Masker: no byte of a secret gets through, wherever the pieces are cut, and nothing else is touched.
#include "exec/process/mask.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace reprise::exec {
namespace {

std::string masked(const std::vector<std::string>& secrets, const std::vector<std::string>& pieces) {
  Masker masker{std::make_shared<const SecretTable>(secrets)};
  std::string out;
  for (const std::string& piece : pieces) masker.feed(piece, out);
  masker.finish(out);
  return out;
}

// The same, said slowly: mark every byte of every occurrence, then write each stretch of overlapping occurrences as ***.
std::string masked_slowly(const std::vector<std::string>& secrets, const std::string& text) {
  std::string out;
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t longest = 0;
    for (const std::string& secret : secrets) {
      if (!secret.empty() && text.compare(at, secret.size(), secret) == 0) longest = std::max(longest, secret.size());
    }
    if (longest > 0 && at >= end) out += "***";
    end = std::max(end, longest > 0 ? at + longest : 0);
    if (at >= end) out += text[at];
  }
  return out;
}

TEST(ExecMask, ReplacesSecrets) {
  EXPECT_EQ(masked({"hunter2"}, {"my hunter2, yes"}), "my ***, yes");
  EXPECT_EQ(masked({"hunter2"}, {"hunter2"}), "***");
  EXPECT_EQ(masked({"hunter2"}, {"hunter"}), "hunter");
  EXPECT_EQ(masked({"a\nb"}, {"xa\nby"}), "x***y");
}

TEST(ExecMask, FindsSecretsThatStraddlePieces) {
  EXPECT_EQ(masked({"hunter2"}, {"my hun", "te", "r2!"}), "my ***!");
  EXPECT_EQ(masked({"hunter2"}, {"h", "u", "n", "t", "e", "r", "2"}), "***");
  EXPECT_EQ(masked({"hunter2"}, {"hunt", "hunter2"}), "hunt***");
}

TEST(ExecMask, TheLongerOfTwoIsGoneWhole) {
  EXPECT_EQ(masked({"key", "key-123"}, {"<key-123>"}), "<***>");
  EXPECT_EQ(masked({"key", "key-123"}, {"<key", "-123>"}), "<***>");
  EXPECT_EQ(masked({"key", "key-123"}, {"<key", "-9>"}), "<***-9>");
  EXPECT_EQ(masked({"key", "key-123"}, {"<key"}), "<***");
}

TEST(ExecMask, OverlapsAreGoneWhole) {
  EXPECT_EQ(masked({"abcd", "cdef"}, {"-abcdef-"}), "-***-");
  EXPECT_EQ(masked({"abcd", "cdef"}, {"-abcd", "ef-"}), "-***-");
  EXPECT_EQ(masked({"abcd", "cdef"}, {"-abcd", "e-"}), "-***e-");
}

TEST(ExecMask, NothingSecretChangesNothing) {
  EXPECT_TRUE(Masker{}.is_idle());
  EXPECT_TRUE(Masker{nullptr}.is_idle());
  EXPECT_TRUE(Masker{std::make_shared<const SecretTable>(std::vector<std::string>{""})}.is_idle());
  EXPECT_EQ(masked({""}, {"text"}), "text");
}

TEST(ExecMask, HoldsBackOnlyWhatMayBecomeASecret) {
  Masker masker{std::make_shared<const SecretTable>(std::vector<std::string>{"hunter2"})};
  std::string out;
  masker.feed("password: ", out);
  EXPECT_EQ(out, "password: ");
  masker.feed("hun", out);
  EXPECT_EQ(out, "password: ");
  masker.feed("gry", out);
  EXPECT_EQ(out, "password: hungry");
}

TEST(ExecMask, CutsMakeNoDifference) {
  EXPECT_TRUE(rc::check("any text, any secrets, any cuts", [] {
    const auto letters = [](int max) {
      return rc::gen::resize(max, rc::gen::container<std::string>(rc::gen::elementOf(std::string{"ab*"})));
    };
    const auto secrets = *rc::gen::resize(4, rc::gen::container<std::vector<std::string>>(letters(5)));
    const auto pieces = *rc::gen::resize(12, rc::gen::container<std::vector<std::string>>(letters(8)));
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    RC_ASSERT(masked(secrets, pieces) == masked_slowly(secrets, text));
  }));
}

}  // namespace
}  // namespace reprise::exec
