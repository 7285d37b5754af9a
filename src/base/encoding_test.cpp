// Base64 and hexadecimal digits against what the RFC says, and the comparison of secrets.
#include "base/encoding.hpp"

#include <gtest/gtest.h>

#include "base/hex.hpp"

namespace reprise::base {
namespace {

TEST(BaseEncoding, Base64OfTheRfc) {  // RFC 4648, section 10
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(base64_for_urls("\xfb\xff"), "-_8");
}

TEST(BaseEncoding, Base64OfMuchIsThatOfItsPieces) {
  const std::string three = "abc";
  std::string bytes;
  std::string expected;
  for (int round = 0; round < (1 << 20) + 5; ++round) {
    bytes += three;
    expected += "YWJj";
  }
  EXPECT_EQ(base64(bytes), expected);
}

TEST(BaseEncoding, SecretsAreComparedWhole) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("right", "right"));
  EXPECT_FALSE(same_secret("right", "righ"));
  EXPECT_FALSE(same_secret("right", "Right"));
  EXPECT_FALSE(same_secret("right", "righT"));
}

TEST(BaseHex, BothWays) {
  EXPECT_EQ(hexadecimal(std::string_view{"\x00\x9f\xff", 3}), "009fff");
  std::string text;
  append_hex(text, 0x1A2B, 6, upper_hex_digits);
  EXPECT_EQ(text, "001A2B");
  std::uint32_t number = 0;
  EXPECT_TRUE(read_hex("fFfF00aA", number));
  EXPECT_EQ(number, 0xFFFF00AAU);
  EXPECT_FALSE(read_hex("1g", number));
  EXPECT_EQ(hex_value('/'), -1);
  EXPECT_EQ(hex_value(':'), -1);
  EXPECT_EQ(hex_value('@'), -1);
  EXPECT_EQ(hex_value('G'), -1);
}

}  // namespace
}  // namespace reprise::base
