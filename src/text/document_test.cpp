// YAML and JSON as one tree: types, places, limits, and refusals that say where and why.
#include "text/document.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stdexcept>

#include "text/fields.hpp"

namespace reprise::text {
namespace {

Document read(const std::string& source) {
  auto document = read_document(source, "test");
  if (!document) throw std::runtime_error{"refused:\n" + source + "\n" + render(document.error())};
  return *std::move(document);
}

Diagnostic refusal(const std::string& source, const Limits& limits = {}) {
  const auto document = read_document(source, "test", limits);
  EXPECT_FALSE(document.has_value()) << source;
  if (document || document.error().empty()) return {};
  return document.error().front();
}

std::pair<std::uint32_t, std::uint32_t> place_of(const Diagnostic& diagnostic) {
  return {diagnostic.line, diagnostic.column};
}
std::pair<std::uint32_t, std::uint32_t> place_of(const Node& node) { return {node.place.line, node.place.column}; }
using At = std::pair<std::uint32_t, std::uint32_t>;

TEST(TextDocument, yaml_and_json_give_the_same_tree) {
  for (const std::string source :
       {"a: 1\nb: [x, 2.5, null, true]\nc:\n  d: 'q'\n", "{\"a\":1,\"b\":[\"x\",2.5,null,true],\"c\":{\"d\":\"q\"}}",
        "{\n\t\"a\":\t1,\n\t\"b\": [\"x\",\n2.5, null, true], \"c\": {\"d\": \"q\"}\n}\n"}) {
    const Document document = read(source);
    const Node& root = document.root();
    ASSERT_EQ(root.type, NodeType::mapping) << source;
    ASSERT_EQ(root.members.size(), 3U);
    EXPECT_EQ(root.find("a")->type, NodeType::integer);
    const Node& list = *root.find("b");
    ASSERT_EQ(list.items.size(), 4U);
    EXPECT_EQ(list.items[0]->type, NodeType::string);
    EXPECT_EQ(list.items[1]->type, NodeType::number);
    EXPECT_EQ(list.items[2]->type, NodeType::null);
    EXPECT_EQ(list.items[3]->type, NodeType::boolean);
    EXPECT_EQ(root.find("c")->find("d")->text, "q");
    EXPECT_EQ(root.find("e"), nullptr);
  }
}

TEST(TextDocument, quoted_scalars_are_text) {
  for (const std::string source : {"a: '3'", "a: \"3\"", "a: |-\n  3", "a: >-\n  3", "a: !!str 3", "a: ! 3"}) {
    EXPECT_EQ(read(source).root().find("a")->type, NodeType::string) << source;
    EXPECT_EQ(read(source).root().find("a")->text, "3") << source;
  }
}

TEST(TextDocument, nodes_know_their_places) {
  const Document document = read("max: 30s\nlist:\n  - é\n  - deep: x\n");
  EXPECT_EQ(place_of(*document.root().members[0].key), (At{1, 1}));
  EXPECT_EQ(place_of(*document.root().find("max")), (At{1, 6}));
  EXPECT_EQ(document.root().find("max")->place.length, 3U);
  const Node& list = *document.root().find("list");
  EXPECT_EQ(place_of(*list.items[0]), (At{3, 5}));
  EXPECT_EQ(place_of(*list.items[1]->find("deep")), (At{4, 11}));
  EXPECT_EQ(document.line(1), "max: 30s");
  EXPECT_EQ(document.line(4), "  - deep: x");
  EXPECT_EQ(document.line(0), "");
  EXPECT_EQ(document.line(99), "");
}

TEST(TextDocument, windows_line_ends_are_line_ends) {
  const Document document = read("a: 1\r\nb: 2\r\n");
  EXPECT_EQ(place_of(*document.root().find("b")), (At{2, 4}));
  EXPECT_EQ(document.line(1), "a: 1");
}

TEST(TextDocument, a_byte_order_mark_is_no_part_of_the_text) {
  const Document document = read(
      "\xEF\xBB\xBF"
      "a: 1\nb: 2\n");
  EXPECT_EQ(document.root().members[0].key->text, "a");
  EXPECT_EQ(place_of(*document.root().members[0].key), (At{1, 1})) << "an editor does not count it";
  EXPECT_EQ(document.line(1), "a: 1") << "nor show it";
  EXPECT_EQ(place_of(*document.root().find("b")), (At{2, 4}));
}

TEST(TextDocument, an_empty_document_is_refused) {
  for (const std::string source : {"", " ", "\n\n", "# only a remark\n", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(refusal(source).message, "the document is empty") << source;
    EXPECT_EQ(refusal(source).help, "write {} if nothing is to be said");
  }
}

TEST(TextDocument, a_duplicate_key_is_refused_where_it_stands_again) {
  const auto document = read_document("a: 1\nb: 2\na: 3\n\"b\": 4\na: 5\n", "test");
  ASSERT_FALSE(document.has_value());
  ASSERT_EQ(document.error().size(), 3U) << "all of them in one pass";
  EXPECT_EQ(place_of(document.error()[0]), (At{3, 1}));
  EXPECT_EQ(document.error()[0].message, "the key \"a\" is given twice");
  EXPECT_EQ(document.error()[0].help, "it stands on line 1 already; keep one of them");
  EXPECT_EQ(place_of(document.error()[1]), (At{4, 1})) << "quoted or not, it is the same key";
  EXPECT_EQ(place_of(document.error()[2]), (At{5, 1}));
  EXPECT_EQ(place_of(refusal("{\"x\": {\"a\": 1, \"a\": 1}}")), (At{1, 16}));
}

TEST(TextDocument, a_key_with_control_characters_is_made_safe_before_it_is_shown) {
  const Diagnostic twice = refusal("\"\\e[31mred\": 1\n\"\\e[31mred\": 2\n");
  EXPECT_EQ(twice.message.find('\x1b'), std::string::npos);
  const Diagnostic long_one = refusal("? " + std::string(5000, 'k') + "\n: 1\n? " + std::string(5000, 'k') + "\n: 2\n");
  EXPECT_LT(long_one.message.size(), 300U);
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(TextDocument, depth_ends_at_64) {
  EXPECT_TRUE(read_document(nested(64), "test").has_value());
  const Diagnostic deep = refusal(nested(65));
  EXPECT_EQ(deep.message, "nested deeper than 64 levels");
  EXPECT_EQ(place_of(deep), (At{1, 65}));
  EXPECT_EQ(refusal(nested(100'000)).message, "nested deeper than 64 levels");
  std::string maps;
  for (int depth = 0; depth < 65; ++depth) maps += "{\"a\":";
  EXPECT_EQ(refusal(maps).message, "nested deeper than 64 levels");
}

TEST(TextDocument, aliases_are_values) {
  const Document document = read("base: &b {x: 1}\nuse: *b\nlist: [*b, *b]\n");
  EXPECT_EQ(document.root().find("use")->find("x")->text, "1");
  EXPECT_EQ(document.root().find("list")->items.size(), 2U);
}

TEST(TextDocument, aliases_need_their_anchor) {
  EXPECT_EQ(refusal("a: *nobody\n").message, "there is no anchor &nobody before this alias");
  EXPECT_EQ(refusal("a: &a [*a]\n").message, "there is no anchor &a before this alias") << "nothing contains itself";
}

// "Billion laughs": nine levels of nine aliases would be 387 million nodes.
TEST(TextDocument, aliases_have_a_budget) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 9; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    laughs += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + before;
    for (int time = 0; time < 8; ++time) laughs += ", " + before;
    laughs += "]\n";
  }
  const Diagnostic refused = refusal(laughs);
  EXPECT_EQ(refused.message, "more than 200000 values once aliases are expanded");
  EXPECT_GE(refused.line, 1U);
  EXPECT_TRUE(read_document("[1, 2, 3, 4]", "test", Limits{.nodes_max = 5}).has_value());
  EXPECT_FALSE(read_document("[1, 2, 3, 4, 5]", "test", Limits{.nodes_max = 5}).has_value());
}

TEST(TextDocument, tags_are_refused) {
  EXPECT_EQ(refusal("a: !!int '3'\n").message, "the tag tag:yaml.org,2002:int is not supported");
  EXPECT_EQ(refusal("!mine {a: 1}\n").message, "the tag !mine is not supported");
  EXPECT_EQ(refusal("a: !!python/object:os.system [x]\n").help, "remove the tag");
}

TEST(TextDocument, one_file_holds_one_document) {
  EXPECT_TRUE(read_document("---\na: 1\n...\n", "test").has_value());
  const Diagnostic second = refusal("a: 1\n---\nb: 2\n");
  EXPECT_EQ(second.message, "a second document begins here");
  EXPECT_EQ(place_of(second), (At{2, 1}));
  EXPECT_FALSE(read_document("{\"a\": 1}{\"b\": 2}", "test").has_value());
}

TEST(TextDocument, keys_are_words) {
  EXPECT_EQ(refusal("? [a, b]\n: 1\n").message, "a key must be a word, not a list or a map");
  EXPECT_EQ(refusal("{{a: 1}: 2}").message, "a key must be a word, not a list or a map");
  EXPECT_EQ(refusal("x: &x [1]\n*x : 2\n").message, "a key must be a word, not a list or a map");
}

TEST(TextDocument, bytes_that_are_no_utf_8_are_refused_where_they_stand) {
  for (const std::string bad : {"\xff", "\xc3(", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf"}) {
    const Diagnostic refused = refusal("a: 1\nb: é" + bad + "\n");
    EXPECT_EQ(refused.line, 2U) << refused.message;
    EXPECT_TRUE(refused.column == 5 || refused.column == 6)
        << refused.message << ": the broken byte, or the one that should go on";
    EXPECT_EQ(refused.help, "documents are UTF-8 text without control characters");
  }
  EXPECT_EQ(place_of(refusal("a: \xe2\x82")), (At{1, 4})) << "cut off in the middle of a character";
}

TEST(TextDocument, control_characters_are_refused_where_they_stand) {
  EXPECT_EQ(place_of(refusal(std::string{"a: 1\nb: x\0y\n", 12})), (At{2, 5}));
  EXPECT_EQ(place_of(refusal("a: \x1b[31m\n")), (At{1, 4}));
  EXPECT_EQ(place_of(refusal("a: x\x7f\n")), (At{1, 5}));
}

TEST(TextDocument, utf_16_is_refused_with_a_place) {
  const std::string wide{
      "\xff\xfe"
      "a\0:\0 \0001\0",
      10};
  EXPECT_EQ(refusal(wide).line, 1U);
}

TEST(TextDocument, characters_beyond_16_bits_come_as_two_escapes_in_json) {
  const Document document = read("{\"a\": \"x\\ud83d\\ude00y\", \"b\": \"\\u00e9\\/\"}");
  EXPECT_EQ(document.root().find("a")->text, "x\U0001F600y");
  EXPECT_EQ(document.root().find("b")->text, "é/");
  EXPECT_FALSE(read_document("{\"a\": \"\\ud83d\"}", "test").has_value()) << "half of a pair is no character";
}

TEST(TextDocument, places_after_joined_escapes_are_those_of_the_text_as_written) {
  const std::string source = "{\"a\": \"\\ud83d\\ude00\", \"b\": 1}";
  const Document document = read(source);
  EXPECT_EQ(document.root().find("a")->place.length, 14U);
  EXPECT_EQ(document.root().members[1].key->place.column, source.find("\"b\"") + 1);
}

TEST(TextDocument, escapes_are_left_alone_where_yaml_has_none) {
  for (const std::string source : {"a: '\\ud83d\\ude00'", "{a: '\\ud83d\\ude00'}", "{\"a\": '\\ud83d\\ude00'}"}) {
    EXPECT_EQ(read(source).root().find("a")->text, "\\ud83d\\ude00") << source;
  }
}

TEST(TextDocument, quotes_inside_of_quotes_do_not_hide_an_escape) {
  for (const std::string source :
       {"{\"it's\": 1, \"a\": \"\\ud83d\\ude00\"}", "{\"x\": \"\\\"\", \"a\": \"\\ud83d\\ude00\"}",
        "{\"x\": \"\\\\\", \"a\": \"\\ud83d\\ude00\"}", "\n {\"x\": [],\n \"a\": \"\\ud83d\\ude00\"}"}) {
    EXPECT_EQ(read(source).root().find("a")->text, "\U0001F600") << source;
  }
}

TEST(TextDocument, a_document_that_is_too_large_is_refused_at_once) {
  EXPECT_TRUE(read_document("a: " + std::string(1024 * 1024 - 3, 'x'), "test").has_value());
  const Diagnostic refused = refusal("a: " + std::string(1024 * 1024 - 2, 'x'));
  EXPECT_EQ(refused.message, "the document is larger than 1024 KiB");
  EXPECT_EQ(place_of(refused), (At{1, 1}));
}

TEST(TextDocument, broken_syntax_has_a_place_and_advice) {
  for (const std::string source :
       {"a: [1, 2\nb: 3\n", "{\"a\": 1", "a: \"open\n", "a:\n\t- 1\n", "a: b: c\n", "[1, 2}}", "a: 'x", "- a\nb: c\n",
        "@x", "a: `x`", "%YAML 9.9\n---\na: 1\n", "a: !<tag 1"}) {
    const Diagnostic refused = refusal(source);
    EXPECT_GE(refused.line, 1U);
    EXPECT_GE(refused.column, 1U);
    EXPECT_FALSE(refused.message.empty()) << source;
    EXPECT_FALSE(refused.help.empty()) << source;
  }
  EXPECT_EQ(refusal("a: 1\nb: [1, 2\nc: 3\n").message.find("line 0"), std::string::npos);
}

RC_GTEST_PROP(TextDocumentProperty, any_bytes_give_a_tree_or_a_reason, ()) {
  const auto alphabet = rc::gen::element<std::string>(
      "{", "}", "[", "]", ":", ",", " ", "\n", "\t", "-", "?", "\"", "'", "a", "1", "&x", "*x", "!t", "|", ">", "#",
      "%", "\\", "\\ud83d", "\\ude00", "\xff", "\xc3", "é", "\r", "~", "---", "...", "<<: ", "\xEF\xBB\xBF", "\u2028");
  std::string source;
  for (const std::string& piece : *rc::gen::container<std::vector<std::string>>(alphabet)) source += piece;
  const auto document = read_document(source, "test");
  if (document) return;
  RC_ASSERT(!document.error().empty());
  for (const Diagnostic& diagnostic : document.error()) {
    RC_ASSERT(diagnostic.line >= 1U);
    RC_ASSERT(diagnostic.column >= 1U);
    RC_ASSERT(diagnostic.length >= 1U);
    RC_ASSERT(diagnostic.caret >= 1U);
    RC_ASSERT(!diagnostic.message.empty());
  }
  RC_ASSERT(!render(document.error()).empty());
}

TEST(TextDocument, nodes_in_words) {
  const Document document = read("[3, '3', null, true, [], {}, '\\e', 1.5, '" + std::string(50, 'x') + "']");
  const auto words = [&](std::size_t index) { return describe(*document.root().items.at(index)); };
  EXPECT_EQ(words(0), "3");
  EXPECT_EQ(words(1), "\"3\" (text)");
  EXPECT_EQ(words(2), "null");
  EXPECT_EQ(words(3), "true (a boolean)");
  EXPECT_EQ(words(4), "a list");
  EXPECT_EQ(words(5), "a map");
  EXPECT_EQ(words(7), "1.5");
  EXPECT_EQ(words(8), "\"" + std::string(40, 'x') + "…\" (text)");
}

// The readers of single fields: each mistake is reported with its key, what was found and what is allowed.
struct FieldTest : ::testing::Test {
  // Reads the value of `x` and gives the one message, or "" when there was none; `help` is kept.
  template <class Read>
  std::string message_of(const std::string& value, Read read_field) {
    const Document document = read("x: " + value);
    Report report{document};
    const bool accepted = read_field(Field{"x", document.root().find("x")}, report).has_value();
    const Diagnostics diagnostics = report.take();
    EXPECT_EQ(accepted, diagnostics.empty()) << value;
    EXPECT_LE(diagnostics.size(), 1U);
    help = diagnostics.empty() ? "" : diagnostics.front().help;
    return diagnostics.empty() ? "" : diagnostics.front().message;
  }
  std::string help;
};

using TextFields = FieldTest;

TEST_F(TextFields, whole_numbers) {
  const auto whole = [](const Field& field, Report& report) { return read_whole(field, {1, 10}, report); };
  EXPECT_EQ(message_of("1", whole), "");
  EXPECT_EQ(message_of("10", whole), "");
  EXPECT_EQ(message_of("0", whole), "x: expected a whole number from 1 to 10, found 0");
  EXPECT_EQ(message_of("11", whole), "x: expected a whole number from 1 to 10, found 11");
  EXPECT_EQ(message_of("3.0", whole), "x: expected a whole number from 1 to 10, found 3.0");
  EXPECT_EQ(message_of("+3", whole), "x: expected a whole number from 1 to 10, found +3");
  EXPECT_EQ(message_of("true", whole), "x: expected a whole number from 1 to 10, found true (a boolean)");
  EXPECT_EQ(message_of("99999999999999999999", whole),
            "x: expected a whole number from 1 to 10, found 99999999999999999999");
  EXPECT_EQ(message_of("'3'", whole), "x: expected a whole number from 1 to 10, found \"3\" (text)");
  EXPECT_EQ(help, "write 3 without quotes");
}

TEST_F(TextFields, decimals) {
  const auto ratio = [](const Field& field, Report& report) {
    return read_decimal(field, {.min = 0, .max = 1}, report);
  };
  const auto growth = [](const Field& field, Report& report) { return read_decimal(field, {.min = 1}, report); };
  EXPECT_EQ(message_of("0.5", ratio), "");
  EXPECT_EQ(message_of("1", ratio), "");
  EXPECT_EQ(message_of("1.01", ratio), "x: expected a finite number from 0 to 1, found 1.01");
  EXPECT_EQ(message_of(".nan", ratio), "x: expected a finite number from 0 to 1, found .nan");
  EXPECT_EQ(message_of("0.99", growth), "x: expected a finite number of at least 1, found 0.99");
  EXPECT_EQ(message_of("1e999", growth), "x: expected a finite number of at least 1, found 1e999");
  EXPECT_EQ(message_of("'2'", growth), "x: expected a finite number of at least 1, found \"2\" (text)");
  EXPECT_EQ(message_of("1e305", growth), "") << "it is finite and at least 1";
}

TEST_F(TextFields, durations) {
  const auto native = [](const Field& field, Report& report) {
    return read_duration(field, DurationGrammar::native, report);
  };
  const auto seconds = [](const Field& field, Report& report) {
    return read_decimal_duration(field, 1'000'000'000, "seconds", report);
  };
  EXPECT_EQ(message_of("1s", native), "");
  EXPECT_EQ(message_of("0", native), "");
  EXPECT_EQ(message_of("null", native), "x: expected a duration such as 500ms, 2s or 1h30m, found null");
  EXPECT_EQ(message_of("[1s]", native), "x: expected a duration such as 500ms, 2s or 1h30m, found a list");
  EXPECT_EQ(message_of("500", native), "x: \"500\" has no unit");
  EXPECT_EQ(help, "write 500ms or 500s; a duration is a number and a unit, such as 500ms, 2s or 1h30m");
  EXPECT_EQ(message_of("1.5", seconds), "");
  EXPECT_EQ(message_of("-1", seconds), "x: expected a number of seconds, 0 or more, found -1");
  EXPECT_EQ(message_of("-1e-400", seconds), "x: expected a number of seconds, 0 or more, found -1e-400");
  EXPECT_EQ(message_of("1e10", seconds), "x: expected at most 292 years of seconds, found 1e10");
  EXPECT_EQ(message_of("90s", seconds), "x: expected a number of seconds, 0 or more, found \"90s\" (text)");
  EXPECT_EQ(help, "write 90");
  EXPECT_EQ(message_of("true", seconds), "x: expected a number of seconds, 0 or more, found true (a boolean)");
}

TEST_F(TextFields, words_booleans_and_lists) {
  const auto word = [](const Field& field, Report& report) { return read_word(field, {"fixed", "linear"}, report); };
  EXPECT_EQ(message_of("fixed", word), "");
  EXPECT_EQ(message_of("Fixed", word), "x: expected fixed or linear, found \"Fixed\" (text)");
  EXPECT_EQ(help, "did you mean fixed?");
  EXPECT_EQ(message_of("3", word), "x: expected fixed or linear, found 3");
  EXPECT_EQ(message_of("true", read_boolean), "");
  EXPECT_EQ(message_of("yes", read_boolean), "x: expected true or false, found \"yes\" (text)");
  EXPECT_EQ(message_of("1", read_boolean), "x: expected true or false, found 1");
  const auto list = [](const Field& field, Report& report) { return read_list(field, "names", report); };
  EXPECT_EQ(message_of("[a]", list), "");
  EXPECT_EQ(message_of("a", list), "x: expected a list of names, found \"a\" (text)");
  EXPECT_EQ(help, "write [a]");
}

}  // namespace
TEST(TextDocument, long_texts_count_when_aliases_repeat_them) {
  std::string source = "[&a \"" + std::string(100'000, 'x') + "\"";
  for (int copy = 0; copy < 1000; ++copy) source += ", *a";
  EXPECT_NE(refusal(source + "]").message.find("once aliases are expanded"), std::string::npos);
}

TEST(TextDocument, escapes_outside_of_double_quotes_stay_as_they_are) {
  EXPECT_EQ(read("a: '\\ud83d\\ude00'\n").root().find("a")->text, "\\ud83d\\ude00");
}

TEST(TextDocument, tag_directives_are_refused) {
  const Diagnostic mistake = refusal("# a remark\n%TAG ! tag:example.org,2026:\n---\na: 1\n");
  EXPECT_EQ(mistake.line, 2U);
  EXPECT_NE(mistake.message.find("tag directives"), std::string::npos);
}

}  // namespace reprise::text
