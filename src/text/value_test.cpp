// Values written as JSON and as YAML, and read back as what they were.
#include "text/value.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/document.hpp"

namespace reprise::text {
namespace {

Value sample() {
  Value inner = Value::map();
  inner.set("delay", "1.5s");
  Value list = Value::list();
  list.add("a");
  list.add(std::int64_t{2});
  Value entries = Value::list();
  entries.add(inner);
  entries.add("plain");
  Value map = Value::map();
  map.set("name", "standard");
  map.set("none", Value{});
  map.set("ok", true);
  map.set("factor", 2.5);
  map.set("list", std::move(list));
  map.set("inner", std::move(inner));
  map.set("entries", std::move(entries));
  map.set("empty list", Value::list());
  map.set("empty map", Value::map());
  return map;
}

TEST(TextValue, json_on_one_line) {
  EXPECT_EQ(to_json(sample()),
            R"({"name":"standard","none":null,"ok":true,"factor":2.5,"list":["a",2],"inner":{"delay":"1.5s"},)"
            R"("entries":[{"delay":"1.5s"},"plain"],"empty list":[],"empty map":{}})");
}

TEST(TextValue, json_over_several_lines) {
  Value map = Value::map();
  map.set("a", std::int64_t{1});
  map.set("b", Value::list());
  EXPECT_EQ(to_json(map, 2), "{\n  \"a\": 1,\n  \"b\": []\n}");
}

TEST(TextValue, yaml_as_a_person_would_write_it) {
  EXPECT_EQ(to_yaml(sample()),
            "name: standard\n"
            "none: null\n"
            "ok: true\n"
            "factor: 2.5\n"
            "list: [a, 2]\n"
            "inner:\n"
            "  delay: 1.5s\n"
            "entries:\n"
            "  -\n"
            "    delay: 1.5s\n"
            "  - plain\n"
            "\"empty list\": []\n"
            "\"empty map\": {}\n");
  EXPECT_EQ(to_yaml(Value::map()), "{}\n");
  EXPECT_EQ(to_yaml(Value::list()), "[]\n");
  EXPECT_EQ(to_yaml(Value{"word"}), "word\n");
}

TEST(TextValue, words_that_yaml_readers_misread_are_quoted) {
  for (const char* text :
       {"on", "Off", "yes", "NO", "y",   "N",   "true", "null", "~",  "",    "3",   "1.5", "1e5", "-x", "%x", ".5",
        ".x", "a b", "a:b", "#x", "[x]", "{x}", "&a",   "*a",   "!t", "'x'", "x,y", "x|",  "é",   "=",  "<<"}) {
    EXPECT_TRUE(to_yaml(Value{text}).starts_with('"')) << text;
  }
  for (const char* text : {"standard", "1s", "1h30m", "25%", "my_name", "TimeoutError", "a.b", "x-y"})
    EXPECT_EQ(to_yaml(Value{text}), std::string{text} + "\n");
}

TEST(TextValue, numbers_keep_their_written_form) {
  EXPECT_EQ(to_json(Value{Value::Number{"9223372036.854775807"}}), "9223372036.854775807");
  EXPECT_EQ(to_json(Value{2.0}), "2");
  EXPECT_EQ(to_json(Value{0.1}), "0.1");
  EXPECT_EQ(to_json(Value{1e300}), "1e+300");
  EXPECT_EQ(to_json(Value{INT64_MIN}), "-9223372036854775808");
}

TEST(TextValue, json_strings_are_escaped) {
  EXPECT_EQ(json_string("a\"b\\c\n\t\r\x01\x7f"
                        "é/"),
            R"("a\"b\\c\n\t\r\u0001\u007fé/")");
  EXPECT_EQ(json_string(std::string_view{"\0", 1}), R"("\u0000")");
}

// What is written must be read back as the same text, whatever the text is: users' names and patterns end up here.
void expect_read_back(const std::string& text) {
  Value map = Value::map();
  map.set("x", text);
  for (const std::string& written : {to_json(map), to_json(map, 2), to_yaml(map)}) {
    const auto document = read_document(written, "test");
    ASSERT_TRUE(document.has_value()) << written << render(document.error());
    const Node* node = document->root().find("x");
    ASSERT_NE(node, nullptr) << written;
    EXPECT_EQ(node->type, NodeType::string) << written;
    EXPECT_EQ(node->text, text) << written;
  }
}

TEST(TextValue, unusual_characters_survive) {
  for (const char* text :
       {"\u0080", "\u0085",     "a\u0085b",   "\u009f",  "\u00a0", "\u2028",   "a\u2029b", "\uFEFF", "\uFFFE",
        "\uFFFF", "\U0001F600", "\U0010FFFF", "\x01",    "\x7f",   "\x1b[31m", " ",        "  x  ",  "a\n\nb",
        "\t",     "\r\n",       "\\",         "\\u0041", "\"",     "'",        "%",        "a: b",   "a #b"}) {
    expect_read_back(text);
  }
  expect_read_back(std::string{"a\0b", 3});
}

// U+D800 to U+DFFF are no characters.
std::string utf8(std::uint32_t code) {
  std::string bytes;
  if (code < 0x80) {
    bytes += static_cast<char>(code);
  } else if (code < 0x800) {
    bytes += static_cast<char>(0xC0U | (code >> 6U));
    bytes += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    bytes += static_cast<char>(0xE0U | (code >> 12U));
    bytes += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    bytes += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    bytes += static_cast<char>(0xF0U | (code >> 18U));
    bytes += static_cast<char>(0x80U | ((code >> 12U) & 0x3FU));
    bytes += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    bytes += static_cast<char>(0x80U | (code & 0x3FU));
  }
  return bytes;
}

RC_GTEST_PROP(TextValueProperty, any_text_is_read_back, ()) {
  const auto character =
      rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0, 0x100), rc::gen::inRange<std::uint32_t>(0x2000, 0x2100),
                     rc::gen::inRange<std::uint32_t>(0, 0xD800), rc::gen::inRange<std::uint32_t>(0xE000, 0x110000));
  std::string text;
  for (const std::uint32_t code : *rc::gen::container<std::vector<std::uint32_t>>(character)) text += utf8(code);
  Value map = Value::map();
  map.set("x", text);
  for (const std::string& written : {to_json(map), to_yaml(map)}) {
    const auto document = read_document(written, "test");
    RC_ASSERT(document.has_value());
    RC_ASSERT(document->root().find("x")->text == text);
    RC_ASSERT(document->root().find("x")->type == NodeType::string);
  }
}

}  // namespace
}  // namespace reprise::text
