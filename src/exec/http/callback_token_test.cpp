// Tokens of webhooks: they mean the same after a restart, and nobody can make or change one.
#include "exec/http/callback_token.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "exec/http/listen_address.hpp"
#include "support/run_program.hpp"

namespace reprise::exec {
namespace {

CallbackPlace some_place() {
  CallbackPlace place{.step = 3, .item = 70'000, .visit = 2, .attempt = UINT32_MAX, .only_own = true};
  for (std::size_t at = 0; at < place.run.bytes.size(); ++at) place.run.bytes[at] = static_cast<std::uint8_t>(250 + at);
  return place;
}

TEST(ExecCallbackToken, SaysWhatItIsAbout) {
  const std::string key(32, 'k');
  const std::string token = token_of(some_place(), key);
  EXPECT_LE(token.size(), 256U) << "the listener takes no longer ones";
  EXPECT_EQ(place_in(token, key), some_place());
  EXPECT_EQ(place_in(token, std::string(32, 'l')), std::nullopt);
}

RC_GTEST_PROP(ExecCallbackToken, IsOfNoUseWhenAnythingOfItIsChanged, (std::uint8_t where, std::uint8_t digit)) {
  const std::string key(32, 'k');
  std::string token = token_of(some_place(), key);
  char& changed = token[where % token.size()];
  const char other = "0123456789abcdef"[digit % 16];
  RC_PRE(changed != other);
  changed = other;
  RC_ASSERT(!place_in(token, key));
  RC_ASSERT(!place_in(token.substr(0, where % token.size()), key));
}

TEST(ExecCallbackToken, NonsenseIsNone) {
  for (const char* const token : {"", "0", "zz", "00", "../../etc/passwd"})
    EXPECT_FALSE(place_in(token, "key")) << token;
}

TEST(ExecCallbackToken, AStoreHasOneKeyWhoeverAsksFirst) {
  const testing_support::TemporaryDirectory folder;
  std::vector<std::string> keys(8);
  std::vector<std::thread> threads;
  for (std::string& key : keys) threads.emplace_back([&] { key = callback_key(folder.path()).value_or("none"); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(keys[0].size(), 32U);
  for (const std::string& key : keys) EXPECT_EQ(key, keys[0]);
  EXPECT_NE(callback_key("").value_or("none"), callback_key("").value_or("none"));
  const auto rights = std::filesystem::status(folder.path() + "/callbacks.key").permissions();
  EXPECT_EQ(rights, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(ExecCallbackToken, AKeyThatCannotBeKeptIsSaid) {
  const auto key = callback_key("/proc/nowhere");
  ASSERT_FALSE(key);
  EXPECT_NE(key.error().find("callbacks.key"), std::string::npos) << key.error();
}

TEST(ExecListenAddress, IsReadAndWritten) {
  for (const char* const text : {"127.0.0.1:9000", "[::1]:1", "0.0.0.0:65535", "[::]:80"}) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_string(*address), text);
    EXPECT_EQ(is_any_address(*address),
              std::string_view{text}.find('1') == std::string_view::npos || std::string_view{text} == "0.0.0.0:65535");
  }
  EXPECT_EQ(parse_listen_address("localhost:9000")->host, "127.0.0.1");
  for (const char* const text : {"", "9000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                                 "example.org:80", "::1:80", "[127.0.0.1]:80", "127.0.0.1:80 "})
    EXPECT_FALSE(parse_listen_address(text)) << text;
  EXPECT_EQ(parse_callback_url("https://ci.example.org/reprise//"), "https://ci.example.org/reprise");
  for (const char* const text : {"", "ci.example.org", "ftp://x", "http://", "http://x/?a=b", "http://x y"})
    EXPECT_FALSE(parse_callback_url(text)) << text;
}

}  // namespace
}  // namespace reprise::exec
