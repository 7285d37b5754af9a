// Lists as one payload: what goes in comes out, and bytes from anywhere do no harm.
#include "exec/function/list.hpp"

#include <gtest/gtest.h>

#include <reprise/engine.hpp>
#include <reprise/random.hpp>

namespace reprise::exec {
namespace {

using Strings = std::vector<std::string>;

Strings random_strings(Random& random) {
  Strings strings(random.next() % 20);
  for (std::string& string : strings) {
    string.resize(random.next() % 30);
    for (char& c : string) c = static_cast<char>(random.next());
  }
  return strings;
}

TEST(ExecList, has_the_form_that_is_documented) {
  using namespace std::string_literals;
  EXPECT_EQ(encode_list({}), "RLS1\0\0\0\0"s);
  EXPECT_EQ(encode_list(Strings{"ab", "", "c"}), "RLS1\3\0\0\0\2\0\0\0\2\0\0\0\3\0\0\0abc"s);
}

TEST(ExecList, what_goes_in_comes_out) {
  Random random{1};
  for (int round = 0; round < 2000; ++round) {
    const Strings strings = random_strings(random);
    const std::string list = encode_list(strings);
    EXPECT_EQ(decode_list(list), strings);
    ASSERT_EQ(list_size(list), strings.size());
    for (std::uint32_t index = 0; index < strings.size(); ++index) EXPECT_EQ(list_element(list, index), strings[index]);
    EXPECT_EQ(list_element(list, static_cast<std::uint32_t>(strings.size())), std::nullopt);
    EXPECT_EQ(list_element(list, UINT32_MAX), std::nullopt);
  }
}

TEST(ExecList, what_is_no_list_is_said_so) {
  const std::string list = encode_list(Strings{"one", "two"});
  EXPECT_EQ(list_size(""), std::nullopt);
  EXPECT_EQ(list_size("[1, 2]"), std::nullopt);
  EXPECT_EQ(list_size(list + "x"), std::nullopt);
  for (std::size_t cut = 0; cut < list.size(); ++cut) EXPECT_EQ(decode_list(list.substr(0, cut)), std::nullopt);
}

TEST(ExecList, damaged_bytes_do_no_harm) {
  Random random{2};
  for (int round = 0; round < 20'000; ++round) {
    std::string list = encode_list(random_strings(random));
    for (std::uint64_t hits = 1 + random.next() % 3; hits > 0; --hits) {
      list[random.next() % list.size()] = static_cast<char>(random.next() % 4 == 0 ? random.next() : random.next() % 4);
    }
    const std::string copy(list.begin(), list.end());  // its own allocation: a sanitizer sees each byte too many
    const auto elements = decode_list(copy);
    if (const auto count = list_size(copy)) {
      for (std::uint32_t index = 0; index < *count + 2; ++index) {
        const auto element = list_element(copy, index);
        if (element && !element->empty()) {
          EXPECT_GE(element->data(), copy.data());
          EXPECT_LE(element->data() + element->size(), copy.data() + copy.size());
        }
        if (elements && index < *count) {
          EXPECT_EQ(element, (*elements)[index]);
        }
      }
    } else {
      EXPECT_EQ(elements, std::nullopt);
    }
  }
}

TEST(ExecList, a_count_that_lies_allocates_nothing) {
  std::string huge = encode_list({});
  for (std::size_t byte = 4; byte < 8; ++byte) huge[byte] = static_cast<char>(0xFF);
  EXPECT_EQ(decode_list(huge), std::nullopt);
}

}  // namespace
}  // namespace reprise::exec
