// Sealed text: stored without its secrets, whole again when it is needed, and nobody else can make such a reference.
#include "exec/secrets/sealing.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json/array.hpp>

#include "json/json.hpp"

namespace reprise::exec {
namespace {

using Secrets = std::vector<std::string>;

std::string there_and_back(const Secrets& secrets, const std::string& text) {
  const SecretTable table{secrets};
  return unsealed(&table, sealed(table, text)).value_or("cannot be opened");
}

std::string as_json(std::string_view text) { return json::to_text(json::Json(text)); }

TEST(ExecSealing, RefersToASecretAndPutsItBack) {
  const SecretTable table{{"", "hunter2", "it's \"\\\xC3\xBC"}};
  const std::string text = R"({"a":["--token=hunter2",7],"bit's \"\\)"
                           "\xC3\xBC"
                           R"(":null})";
  const std::string stored = sealed(table, text);
  EXPECT_EQ(stored.find("hunter"), std::string::npos);
  EXPECT_EQ(stored.find("it's"), std::string::npos);
  EXPECT_EQ(shown(stored), R"({"a":["--token=***",7],"b***":null})");
  EXPECT_EQ(unsealed(&table, stored), text);
}

TEST(ExecSealing, TextWithoutSecretsStaysAsItIs) {
  const SecretTable table{{"hunter2"}};
  EXPECT_EQ(sealed(table, R"(["a","hunter"])"), R"(["a","hunter"])");
  EXPECT_EQ(unsealed(nullptr, R"(["a","hunter"])"), R"(["a","hunter"])");
}

TEST(ExecSealing, NumbersAndTextWithinTextComeBackExactly) {
  EXPECT_EQ(there_and_back({"4711"}, R"({"pin":4711,"more":147112})"), R"({"pin":4711,"more":147112})");
  const std::string inner = as_json("quote\" here");
  EXPECT_EQ(there_and_back({"quote\" here"}, as_json(inner)), as_json(inner));
}

TEST(ExecSealing, OverlapsComeBackExactly) {
  for (const std::string text : {R"("abcdef")", R"("xabcdefx")", R"("abcabcdcdef")"})
    EXPECT_EQ(there_and_back({"abcd", "cdef", "abc"}, text), text);
}

TEST(ExecSealing, ALineOfAKeyComesBackExactly) {
  const std::string key = "first line\nsecond line\nthird line";
  const SecretTable table{{key}};
  const std::string text = as_json("two: second line!");
  EXPECT_EQ(shown(sealed(table, text)), R"("two: ***!")");
  EXPECT_EQ(unsealed(&table, sealed(table, text)), text);
}

TEST(ExecSealing, AFormWithoutReferenceIsGone) {
  EXPECT_EQ(there_and_back({"a b/c d"}, R"("a%20b%2fc+d")"), R"("***")");
}

TEST(ExecSealing, TheValueIsTheOneOfToday) {
  const SecretTable before{{"old", "x"}};
  const SecretTable after{{"new \"", "x"}};
  EXPECT_EQ(unsealed(&after, sealed(before, R"(["old"])")), R"(["new \""])");
  const SecretTable gone{{"", "x"}};
  EXPECT_FALSE(unsealed(&gone, sealed(before, R"(["old"])")));
  EXPECT_FALSE(unsealed(nullptr, sealed(before, R"(["old"])")));
}

// Whatever text says, as JSON it has no byte that begins a reference.
TEST(ExecSealing, NothingFromOutsideIsAReference) {
  const SecretTable table{{"hunter2"}};
  const std::string reference = sealed(table, "hunter2");
  const std::string forged = as_json(reference + R"(\u001a0.0.0.0\u001a)");
  EXPECT_EQ(sealed(table, forged), forged);
  EXPECT_EQ(unsealed(&table, forged), forged);
}

TEST(ExecSealing, DamagedReferencesAreRefused) {
  const SecretTable table{{"hunter2"}};
  for (const std::string text : {"\x1A", "\x1A\x1A",
                                 "\x1A"
                                 "0\x1A",
                                 "\x1A"
                                 "0.0.0\x1A",
                                 "\x1A"
                                 "0.0.0.0.0\x1A",
                                 "\x1A"
                                 "0.0.9.0\x1A",
                                 "\x1A"
                                 "1.0.0.0\x1A",
                                 "\x1A-1.0.0.0\x1A",
                                 "\x1A"
                                 "0.0.0.99999999999\x1A"})
    EXPECT_FALSE(unsealed(&table, text)) << text;
  EXPECT_EQ(unsealed(&table,
                     "\x1A"
                     "0.0.0.99\x1A"),
            "");
}

TEST(ExecSealing, AnyTextComesBack) {
  EXPECT_TRUE(rc::check("any JSON strings, any secrets", [] {
    const auto letters = [](int max) {
      return rc::gen::resize(max, rc::gen::container<std::string>(rc::gen::elementOf(std::string{"ab\"\\\n"})));
    };
    const auto secrets = *rc::gen::resize(3, rc::gen::container<Secrets>(letters(5)));
    const auto strings = *rc::gen::resize(6, rc::gen::container<Secrets>(letters(12)));
    boost::json::array list;
    for (const std::string& text : strings) list.emplace_back(text);
    const std::string text = json::to_text(list);
    const SecretTable table{secrets};
    const std::string stored = sealed(table, text);
    // A form that only resembles a secret is gone for good, and visibly.
    if (stored.find("***") == std::string::npos) RC_ASSERT(unsealed(&table, stored).value() == text);
  }));
}

}  // namespace
}  // namespace reprise::exec
