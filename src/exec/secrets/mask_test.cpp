// Masker: no byte of a secret gets through, wherever the pieces are cut, and nothing else is touched.
#include "exec/secrets/mask.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace reprise::exec {
namespace {

std::string in_pieces(const std::vector<std::string>& secrets, const std::vector<std::string>& pieces) {
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
  EXPECT_EQ(in_pieces({"hunter2"}, {"my hunter2, yes"}), "my ***, yes");
  EXPECT_EQ(in_pieces({"hunter2"}, {"hunter2"}), "***");
  EXPECT_EQ(in_pieces({"hunter2"}, {"hunter"}), "hunter");
  EXPECT_EQ(in_pieces({"a\nb"}, {"xa\nby"}), "x***y");
}

TEST(ExecMask, FindsSecretsThatStraddlePieces) {
  EXPECT_EQ(in_pieces({"hunter2"}, {"my hun", "te", "r2!"}), "my ***!");
  EXPECT_EQ(in_pieces({"hunter2"}, {"h", "u", "n", "t", "e", "r", "2"}), "***");
  EXPECT_EQ(in_pieces({"hunter2"}, {"hunt", "hunter2"}), "hunt***");
}

TEST(ExecMask, TheLongerOfTwoIsGoneWhole) {
  EXPECT_EQ(in_pieces({"key", "key-123"}, {"<key-123>"}), "<***>");
  EXPECT_EQ(in_pieces({"key", "key-123"}, {"<key", "-123>"}), "<***>");
  EXPECT_EQ(in_pieces({"key", "key-123"}, {"<key", "-9>"}), "<***-9>");
  EXPECT_EQ(in_pieces({"key", "key-123"}, {"<key"}), "<***");
}

TEST(ExecMask, OverlapsAreGoneWhole) {
  EXPECT_EQ(in_pieces({"abcd", "cdef"}, {"-abcdef-"}), "-***-");
  EXPECT_EQ(in_pieces({"abcd", "cdef"}, {"-abcd", "ef-"}), "-***-");
  EXPECT_EQ(in_pieces({"abcd", "cdef"}, {"-abcd", "e-"}), "-***e-");
}

TEST(ExecMask, NothingSecretChangesNothing) {
  EXPECT_TRUE(Masker{}.is_idle());
  EXPECT_TRUE(Masker{nullptr}.is_idle());
  EXPECT_TRUE(Masker{std::make_shared<const SecretTable>(std::vector<std::string>{""})}.is_idle());
  EXPECT_EQ(in_pieces({""}, {"text"}), "text");
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
    RC_ASSERT(in_pieces(secrets, pieces) == masked_slowly(secrets, text));
  }));
}

// ---- forms ----------------------------------------

// Each character of it changes in some form: a blank, quotes of both kinds, / % \ $ +, one of two bytes and one of four.
const std::string hostile = "to ken'/%\"\\$+\xC3\xBC\xF0\x9F\x94\x91z";

struct Form {
  std::string name;
  std::string written;
};

const std::vector<Form> forms = {
    {"as it is", hostile},
    {"percent", "to%20ken%27%2F%25%22%5C%24%2B%C3%BC%F0%9F%94%91z"},
    {"percent, small", "to%20ken%27%2f%25%22%5c%24%2b%c3%bc%f0%9f%94%91z"},
    {"percent, twice", "to%2520ken%2527%252F%2525%2522%255C%2524%252B%25C3%25BC%25F0%259F%2594%2591z"},
    {"percent, / left alone", "to%20ken'/%25%22%5C$%2B%C3%BC%F0%9F%94%91z"},
    {"a form", "to+ken%27%2F%25%22%5C%24%2B%C3%BC%F0%9F%94%91z"},
    {"JSON", "to ken'/%\\\"\\\\$+\xC3\xBC\xF0\x9F\x94\x91z"},
    {"JSON, ASCII", R"(to ken'/%\"\\$+\u00fc\ud83d\udd11z)"},
    {"JSON, ASCII, capitals", R"(to ken'\/%\"\\$+\u00FC\uD83D\uDD11z)"},
    {"JSON in JSON", R"(to ken'/%\\\"\\\\$+\\u00fc\\ud83d\\udd11z)"},
    {"sh, single quotes", "to ken'\\''/%\"\\$+\xC3\xBC\xF0\x9F\x94\x91z"},
    {"sh -x of dash", "to ken'\"'\"'/%\"\\$+\xC3\xBC\xF0\x9F\x94\x91z"},
    {"sh, double quotes", "to ken'/%\\\"\\\\\\$+\xC3\xBC\xF0\x9F\x94\x91z"},
    {"sh in JSON", R"(to ken'\\''/%\"\\$+\u00fc\ud83d\udd11z)"},
};

TEST(ExecMask, FindsEachFormWhereverThePiecesAreCut) {
  for (const Form& form : forms) {
    const std::string text = "<" + form.written + ">";
    EXPECT_EQ(in_pieces({hostile}, {text}), "<***>") << form.name;
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      EXPECT_EQ(in_pieces({hostile}, {text.substr(0, cut), text.substr(cut)}), "<***>") << form.name << ", " << cut;
  }
}

TEST(ExecMask, WhatOnlyBeginsLikeAFormIsLeftAlone) {
  for (const Form& form : forms) {
    const std::string text = "<" + form.written.substr(0, form.written.size() - 1) + "y>";
    EXPECT_EQ(in_pieces({hostile}, {text}), text) << form.name;
  }
  for (const std::string text :
       {"100%", "100% of \\", "C:\\new\\table", "%2", "\\u00f", "\\ud83d\\u", "to+", "''", "t…"})
    EXPECT_EQ(in_pieces({hostile}, {text}), text);
}

// Of base64 one character at the front may be shared with what stands before the secret, and stays.
TEST(ExecMask, FindsWhatBase64MakesOfIt) {
  EXPECT_EQ(in_pieces({"open sesame!"}, {"Basic b3BlbiBzZXNhbWUh."}), "Basic ***.");  // alone
  EXPECT_EQ(in_pieces({"open sesame"}, {"Basic b3BlbiBzZXNhbWU=."}), "Basic ***=.");  // its last character is its own
  EXPECT_EQ(in_pieces({"open sesame"}, {"Basic YWxpOm9wZW4gc2VzYW1l."}), "Basic YWxpOm***.");         // ali:
  EXPECT_EQ(in_pieces({"open sesame"}, {"Basic dXNlcjpvcGVuIHNlc2FtZQ==."}), "Basic dXNlcjp***==.");  // user:
  EXPECT_EQ(in_pieces({"\xFB\xEF\xBE\xFB\xEF\xBE"}, {"++++ ---- ++-_", "++++ "}), "++++ ---- ++-_++++ ");
  EXPECT_EQ(in_pieces({"\xFB\xEF\xBE\xFB\xEF\xBE"}, {"<--------> <++++++++> <%2B%2b%2B%2B++++>"}), "<***> <***> <***>");
  EXPECT_EQ(in_pieces({"abc"}, {"YWJj"}), "YWJj");  // too short to be looked for
}

TEST(ExecMask, FindsEachLineOfAKeyAndTheSecretWithoutItsBlanks) {
  const std::string key = "-----BEGIN KEY-----\n  MIIEvQIBADANBg\r\n}\nkqhkiG9w0BAQEF\n-----END KEY-----\n";
  EXPECT_EQ(in_pieces({key}, {"[" + key + "]"}), "[***]");
  EXPECT_EQ(in_pieces({key}, {"1: MIIEvQIBADANBg; 2: }; 3: kqhkiG9w0BAQEF"}), "1: ***; 2: }; 3: ***");
  EXPECT_EQ(in_pieces({" ab\n"}, {"<ab>"}), "<***>");
}

TEST(ExecMask, FindsASecretOfWhichTheEndWasCutOff) {
  EXPECT_EQ(in_pieces({hostile}, {"found \"to ke…\""}), "found \"***…\"");
  EXPECT_EQ(in_pieces({hostile}, {"found to%20ken%27%2…"}), "found ***…");
  EXPECT_EQ(in_pieces({hostile}, {R"(found to ken'/%\"\\$+\u00…)"}), "found ***…");
  EXPECT_EQ(in_pieces({hostile}, {"to … and to k"}), "to … and to k");
}

TEST(ExecMask, WhatIsNotFitToBeShownIsFoundAlsoWhereItWasReplaced) {
  EXPECT_EQ(in_pieces({"\xFF\xFEsecret"}, {"<\xFF\xFEsecret> <\xEF\xBF\xBD\xEF\xBF\xBDsecret> <%ff%FEsecret>"}),
            "<***> <***> <***>");
  EXPECT_EQ(in_pieces({"\x1B[secret\tof\nthis"}, {"<\x1B[secret\tof\nthis> <\xEF\xBF\xBD[secret of this>"}),
            "<***> <***>");
}

// Every form of one character could be followed by every form of the next; the time must not multiply.
TEST(ExecMask, BackslashesWithoutEndCostNoTime) {
  const std::string text(20'000, '\\');
  EXPECT_EQ(in_pieces({std::string(40, '\\') + "end"}, {text}), text);
}

TEST(ExecMask, AnyCutOfAnyForm) {
  EXPECT_TRUE(rc::check("forms between other text, in any pieces", [] {
    std::string text;
    std::string expected;
    for (const std::size_t index : *rc::gen::resize(
             6, rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, forms.size())))) {
      text += forms[index].written + " | ";
      expected += "*** | ";
    }
    std::vector<std::string> pieces;
    while (!text.empty()) {
      const auto size = *rc::gen::inRange<std::size_t>(1, text.size() + 1);
      pieces.push_back(text.substr(0, size));
      text.erase(0, size);
    }
    RC_ASSERT(in_pieces({hostile}, pieces) == expected);
  }));
}

}  // namespace
}  // namespace reprise::exec
