// Comments in JSON: blanks in their place, and nothing else changed.
#include "text/json_comments.hpp"

#include <gtest/gtest.h>

namespace reprise::text {
namespace {

TEST(TextJsonComments, both_forms_become_blanks_of_the_same_width) {
  EXPECT_EQ(without_json_comments("{\"a\": 1, // one\n \"b\": 2}"), "{\"a\": 1,       \n \"b\": 2}");
  EXPECT_EQ(without_json_comments("{/* x */\"a\": /* 1\n 2 */ 3}"), "{       \"a\":     \n      3}");
  EXPECT_EQ(without_json_comments("// first\n{}"), "        \n{}");
  EXPECT_EQ(without_json_comments("{/* grün */ \"a\": 1}"), "{           \"a\": 1}");  // columns are characters
}

TEST(TextJsonComments, text_is_text) {
  for (const char* text : {R"({"a": "// no", "b": "/* no */", "c": "\" // no"})", "{a: https://example.org/x}", "{}",
                           "", R"(["\\", "//"])"}) {
    EXPECT_EQ(without_json_comments(text), text);
  }
}

TEST(TextJsonComments, yaml_is_left_alone) {
  EXPECT_EQ(without_json_comments("url: //host/path\n"), "url: //host/path\n");
  EXPECT_EQ(without_json_comments("# c\n- // x\n"), "# c\n- // x\n");
}

TEST(TextJsonComments, what_is_not_closed_goes_to_the_end) {
  EXPECT_EQ(without_json_comments("{} /* x"), "{}     ");
  EXPECT_EQ(without_json_comments("{\"a"), "{\"a");
  EXPECT_EQ(without_json_comments("{\"a\\"), "{\"a\\");
}

}  // namespace
}  // namespace reprise::text
