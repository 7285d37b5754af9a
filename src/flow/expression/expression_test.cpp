// Expressions: their values, their mistakes with places, and what they can see.
#include "flow/expression/expression.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <rapidcheck.h>

namespace reprise::flow {
namespace {

// A scope of one JSON map; `steps.NAME.output` is known as a whole, everything else by its first name.
class MapScope final : public Scope {
 public:
  explicit MapScope(std::string_view json) : root_(json::parse_json(json).value()) {}

  std::expected<const Json*, std::string> find(std::span<const std::string> path, std::size_t& used) const override {
    const Json* value = root_.get_object().if_contains(path[0]);
    if (value == nullptr) return std::unexpected{"there is no \"" + path[0] + "\""};
    used = 1;
    if (path[0] != "steps" || path.size() < 3) return value;
    const Json* step = value->get_object().if_contains(path[1]);
    if (step == nullptr) return std::unexpected{"there is no step \"" + path[1] + "\""};
    used = 3;
    return &step->get_object().at(path[2]);
  }

 private:
  Json root_;
};

const MapScope& scope() {
  static const MapScope it{R"({
    "params": {"date": "2026-11-16", "limit": 100, "none": null, "two words": 2, "größe": 5, "zero": 0, "and": 1},
    "steps": {"list": {"output": {"rows": [{"id": 7}, {"id": 8}], "total": 2}}, "fetch-data": {"output": "ok"}},
    "item": {"id": "a b", "tags": ["x", "y"], "ratio": 0.5, "big": 9223372036854775807, "huge": 18446744073709551615},
    "empty": {"list": [], "map": {}, "text": ""},
    "raw": "{\"deep\": [1, 2.5]}"
  })"};
  return it;
}

std::string value_of(std::string_view text) {
  const auto expression = parse_expression(text);
  if (!expression) return "mistake at " + std::to_string(expression.error().offset) + ": " + expression.error().message;
  const auto value = expression->evaluate(scope());
  return value ? json::to_text(*value) : "error: " + value.error();
}

std::string mistake_in(std::string_view text) {
  const auto expression = parse_expression(text);
  if (expression) return "none";
  return std::to_string(expression.error().offset) + ": " + expression.error().message +
         (expression.error().help.empty() ? "" : " | " + expression.error().help);
}

TEST(FlowExpression, ReadsLiterals) {
  EXPECT_EQ(value_of("1"), "1");
  EXPECT_EQ(value_of(" -1 "), "-1");
  EXPECT_EQ(value_of("1.5e3"), "1.5e3");
  EXPECT_EQ(value_of("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(value_of("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(value_of("true"), "true");
  EXPECT_EQ(value_of("null"), "null");
  EXPECT_EQ(value_of(R"('it\'s')"), R"("it's")");
  EXPECT_EQ(value_of(R"("a\n\u00e9\ud83d\ude00")"), "\"a\\né😀\"");
  EXPECT_EQ(value_of("'}'"), "\"}\"");
}

TEST(FlowExpression, FollowsPaths) {
  EXPECT_EQ(value_of("params.date"), "\"2026-11-16\"");
  EXPECT_EQ(value_of("params['two words']"), "2");
  EXPECT_EQ(value_of("params.größe"), "5");
  EXPECT_EQ(value_of("params.and"), "1");
  EXPECT_EQ(value_of("steps.list.output.rows[1].id"), "8");
  EXPECT_EQ(value_of("steps.list.output.rows[-1].id"), "8");
  EXPECT_EQ(value_of("steps['list'].output['rows'][0]['id']"), "7");
  EXPECT_EQ(value_of("steps.list.output.rows[steps.list.output.total - 2].id"), "7");
  EXPECT_EQ(value_of("steps.fetch-data.output"), "\"ok\"") << "a dash before a letter belongs to the name";
  EXPECT_EQ(value_of("params.limit-1"), "99") << "before a digit it is a minus";
  EXPECT_EQ(value_of("json(raw).deep[1]"), "2.5");
  EXPECT_EQ(value_of("(item).tags[0]"), "\"x\"");
}

TEST(FlowExpression, SaysWhatIsMissing) {
  EXPECT_EQ(value_of("nothing.here"), "error: there is no \"nothing\"");
  EXPECT_EQ(value_of("steps.lst.output"), "error: there is no step \"lst\"");
  EXPECT_EQ(value_of("steps.list.output.items"),
            "error: steps.list.output has no member \"items\" (it has \"rows\" and \"total\")");
  EXPECT_EQ(value_of("steps.list.output.row"),
            "error: steps.list.output has no member \"row\" (did you mean \"rows\"?)");
  EXPECT_EQ(value_of("steps.list.output.rows[2]"), "error: steps.list.output.rows has no element 2 (it has 2)");
  EXPECT_EQ(value_of("steps.list.output.rows[-3]"), "error: steps.list.output.rows has no element -3 (it has 2)");
  EXPECT_EQ(value_of("steps.list.output.rows[0].x.y"),
            "error: steps.list.output.rows[0] has no member \"x\" (it has \"id\")");
  EXPECT_EQ(value_of("steps.list.output.rows.id"),
            "error: steps.list.output.rows has no member \"id\": it is a list; an element is written [0]");
  EXPECT_EQ(value_of("params.none.x"), "error: params.none has no member \"x\": it is null");
  EXPECT_EQ(value_of("params.date[0]"), "error: params.date has no element 0: it is text");
  EXPECT_EQ(value_of("item.tags[0.5]"), "error: item.tags[…] needs a whole number or text, not a fraction");
  EXPECT_EQ(value_of("empty.map.x"), "error: empty.map has no member \"x\" (it is empty)");
  EXPECT_EQ(value_of("json(raw).shallow"), "error: json(…) has no member \"shallow\" (it has \"deep\")");
}

TEST(FlowExpression, CalculatesExactly) {
  EXPECT_EQ(value_of("1 + 2 * 3"), "7");
  EXPECT_EQ(value_of("(1 + 2) * 3"), "9");
  EXPECT_EQ(value_of("10 - 4 - 3"), "3");
  EXPECT_EQ(value_of("2 - -3"), "5");
  EXPECT_EQ(value_of("- -3"), "3");
  EXPECT_EQ(value_of("6 / 3"), "2");
  EXPECT_EQ(value_of("7 / 2"), "3.5");
  EXPECT_EQ(value_of("7 % 3"), "1");
  EXPECT_EQ(value_of("-7 % 3"), "-1");
  EXPECT_EQ(value_of("7.5 % 2"), "1.5");
  EXPECT_EQ(value_of("1 + 0.5"), "1.5");
  EXPECT_EQ(value_of("item.ratio * 4"), "2.0");
  EXPECT_EQ(value_of("'a' + 'b' + params.date"), "\"ab2026-11-16\"");
}

TEST(FlowExpression, RefusesWhatHasNoValue) {
  EXPECT_EQ(value_of("item.big + 1"), "error: 9223372036854775807 + 1 does not fit into 64 bits");
  EXPECT_EQ(value_of("-9223372036854775808 / -1"), "error: -9223372036854775808 / -1 does not fit into 64 bits");
  EXPECT_EQ(value_of("-9223372036854775808 % -1"), "0");
  EXPECT_EQ(value_of("-(-9223372036854775808)"), "error: 0 - -9223372036854775808 does not fit into 64 bits");
  EXPECT_EQ(value_of("item.big * 2"), "error: 9223372036854775807 * 2 does not fit into 64 bits");
  EXPECT_EQ(value_of("1 / params.zero"), "error: 1 / 0 is a division by zero");
  EXPECT_EQ(value_of("1 % 0.0"), "error: 1 % 0.0 is a division by zero");
  EXPECT_EQ(value_of("1e308 * 10"), "error: 1e308 * 10 is too large for a number");
  EXPECT_EQ(value_of("'a' + 1"), "error: `+` needs two numbers or two texts, not text and a number");
  EXPECT_EQ(value_of("1 + 'a'"), "error: `+` needs two numbers or two texts, not a number and text");
  EXPECT_EQ(value_of("'a' - 'b'"), "error: `-` needs two numbers, not text and text");
  EXPECT_EQ(value_of("'a' + 'b' - 'c'"), "error: `-` needs two numbers, not text and text");
  EXPECT_EQ(value_of("-'a'"), "error: `-` needs a number, not text");
  EXPECT_EQ(value_of("item * 2"), "error: `*` needs two numbers, not a map and a number");
}

TEST(FlowExpression, Compares) {
  EXPECT_EQ(value_of("1 == 1.0"), "true");
  EXPECT_EQ(value_of("1 == '1'"), "false");
  EXPECT_EQ(value_of("null != false"), "true");
  EXPECT_EQ(value_of("item.tags == json('[\"x\", \"y\"]')"), "true");
  EXPECT_EQ(value_of("'a' < 'b'"), "true");
  EXPECT_EQ(value_of("2 >= 2"), "true");
  EXPECT_EQ(value_of("item.huge > item.big"), "true");
  EXPECT_EQ(value_of("9007199254740993 > 9007199254740992.0"), "true") << "no detour over double";
  EXPECT_EQ(value_of("1 < 'a'"), "error: `<` compares two numbers or two texts, not a number and text");
  EXPECT_EQ(value_of("true > false"), "error: `>` compares two numbers or two texts, not a boolean and a boolean");
}

TEST(FlowExpression, CombinesTruth) {
  EXPECT_EQ(value_of("1 and 'x'"), "true");
  EXPECT_EQ(value_of("0 or ''"), "false");
  EXPECT_EQ(value_of("false and nothing.here"), "false") << "the rest is not looked at";
  EXPECT_EQ(value_of("true or nothing.here"), "true");
  EXPECT_EQ(value_of("true and nothing.here"), "error: there is no \"nothing\"");
  EXPECT_EQ(value_of("not 1 == 2"), "true") << "not is weaker than ==";
  EXPECT_EQ(value_of("not not 0"), "false");
  EXPECT_EQ(value_of("false and false or true"), "true") << "and is stronger than or";
  for (const char* untrue : {"false", "null", "0", "0.0", "''", "empty.list", "empty.map"}) {
    EXPECT_EQ(value_of(std::string{"not "} + untrue), "true") << untrue;
  }
  for (const char* truth : {"true", "1", "-0.5", "' '", "item.tags", "item", "item.huge"}) {
    EXPECT_EQ(value_of(std::string{"not "} + truth), "false") << truth;
  }
}

TEST(FlowExpression, HasFourFunctions) {
  EXPECT_EQ(value_of("length('größe')"), "5");
  EXPECT_EQ(value_of("length(item.tags)"), "2");
  EXPECT_EQ(value_of("length(empty)"), "3");
  EXPECT_EQ(value_of("length(3)"), "error: length() needs text, a list or a map, not a number");
  EXPECT_EQ(value_of("contains(item.tags, 'x')"), "true");
  EXPECT_EQ(value_of("contains(item.tags, 1)"), "false");
  EXPECT_EQ(value_of("contains('reprise', 'pris')"), "true");
  EXPECT_EQ(value_of("contains(item, 'id')"), "true");
  EXPECT_EQ(value_of("contains('a', 1)"), "error: contains() needs text to look for in text, not a number");
  EXPECT_EQ(value_of("contains(1, 1)"), "error: contains() looks into a list, a text or a map, not a number");
  EXPECT_EQ(value_of("json('[1, 2]')[1]"), "2");
  EXPECT_EQ(value_of("json(item.tags)"), "error: json() reads text, and this is a list already");
  EXPECT_TRUE(value_of("json('{')").starts_with("error: json() cannot read its text: ")) << value_of("json('{')");
}

TEST(FlowExpression, DefaultHelpsAgainstWhatIsMissingOnly) {
  EXPECT_EQ(value_of("default(params.none, 1)"), "1");
  EXPECT_EQ(value_of("default(params.zero, 1)"), "0");
  EXPECT_EQ(value_of("default(params.nope.deep[3], 'x')"), "\"x\"");
  EXPECT_EQ(value_of("default(params.nope + 1, 2)"), "2");
  EXPECT_EQ(value_of("default(item.tags[9], default(params.nope, 3))"), "3");
  EXPECT_EQ(value_of("default(params.date, nothing.here)"), "\"2026-11-16\"") << "what is not needed is not looked at";
  EXPECT_EQ(value_of("default(1 / 0, 2)"), "error: 1 / 0 is a division by zero");
  EXPECT_EQ(value_of("default(params.nope, params.nope)"),
            "error: params has no member \"nope\" (did you mean \"none\"?)");
}

TEST(FlowExpression, MistakesHaveAPlaceAndARemedy) {
  EXPECT_EQ(mistake_in("a && b"), "2: `&&` means nothing in an expression | write `and`");
  EXPECT_EQ(mistake_in("a || b"), "2: `||` means nothing in an expression | write `or`");
  EXPECT_EQ(mistake_in("!a"), "0: `!` means nothing in an expression | write `not`");
  EXPECT_EQ(mistake_in("a === b"), "2: `===` means nothing in an expression | write ==");
  EXPECT_EQ(mistake_in("a !== b"), "2: `!==` means nothing in an expression | write !=");
  EXPECT_EQ(mistake_in("a = b"), "2: `=` means nothing in an expression | write == to compare");
  EXPECT_EQ(mistake_in("{{ a }}"), "0: `{{` means nothing in an expression | write ${…} instead of {{ }}");
  EXPECT_EQ(mistake_in("lenght(a)"), "0: there is no function `lenght` | did you mean length()?");
  EXPECT_EQ(mistake_in("1 + len(a)"), "4: there is no function `len` | write length(…)");
  EXPECT_EQ(mistake_in("fromJSON(a)"), "0: there is no function `fromJSON` | write json(…)");
  EXPECT_EQ(mistake_in("launch(a)"),
            "0: there is no function `launch` | there are length(), contains(), default(), json() and words()");
  EXPECT_EQ(mistake_in("contains(a)"), "0: contains() takes 2 arguments, not 1");
  EXPECT_EQ(mistake_in("length()"), "0: length() takes 1 argument, not 0");
  EXPECT_EQ(mistake_in("a.b.contains('x')"),
            "4: values have no functions of their own | the value is the first argument: length(path), contains(path, "
            "element)");
  EXPECT_EQ(mistake_in("a.0"), "2: expected a name behind the dot, found a number | an element is written [0], not .0");
  EXPECT_EQ(mistake_in("a b"), "2: expected an operator or the end, found `b`");
  EXPECT_EQ(mistake_in("a in b"), "2: expected an operator or the end, found `in` | write contains(list, element)");
  EXPECT_EQ(mistake_in("a AND b"),
            "2: expected an operator or the end, found `AND` | `and` is written in small letters");
  EXPECT_EQ(mistake_in("a == not b"),
            "5: expected a path, a value or a function, found `not` | put it in parentheses: (not …)");
  EXPECT_EQ(mistake_in("1 < 2 < 3"), "6: comparisons cannot be strung together | write a < b and b < c");
  EXPECT_EQ(mistake_in("True"), "0: `True` is no value here | write true");
  EXPECT_EQ(mistake_in("(1 + 2"), "6: expected `)` to close the parenthesis, found the end");
  EXPECT_EQ(mistake_in("a['b'"), "5: expected `]` to close the bracket, found the end");
  EXPECT_EQ(mistake_in("1 +"), "3: expected a path, a value or a function, found the end");
  EXPECT_EQ(mistake_in("  "), "0: there is nothing to compute | write a path or a value: ${params.date}");
  EXPECT_EQ(mistake_in("'abc"), "0: this text has no closing ' | a quote inside the text is written \\' or \\\"");
  EXPECT_TRUE(mistake_in(R"('a\d')").starts_with("2: this escape is unknown")) << mistake_in(R"('a\d')");
  EXPECT_TRUE(mistake_in("steps.step-1.output").starts_with("11: this is neither a number nor a name"));
  EXPECT_TRUE(mistake_in("99999999999999999999").starts_with("0: this number does not fit into 64 bits"));
  EXPECT_TRUE(mistake_in("1e999").starts_with("0: this number is too large"));
  EXPECT_TRUE(mistake_in("“a”").ends_with("use plain blanks, dashes and quotes: ' or \"")) << mistake_in("“a”");
  EXPECT_EQ(mistake_in("\xff"), "0: this byte is no UTF-8 text");
}

TEST(FlowExpression, StaysWithinItsBounds) {
  const auto nested = [](std::size_t levels, const char* open, const char* close) {
    std::string text = "1";
    for (std::size_t level = 0; level < levels; ++level) text = open + text + close;
    return text;
  };
  EXPECT_EQ(value_of(nested(64, "(", ")")), "1");
  EXPECT_EQ(mistake_in(nested(65, "(", ")")), "65: nested deeper than 64 levels");
  EXPECT_EQ(mistake_in(nested(30'000, "(", ")")), "65: nested deeper than 64 levels");
  EXPECT_EQ(mistake_in(nested(15'000, "not ", "")), "260: nested deeper than 64 levels");
  EXPECT_EQ(mistake_in(nested(30'000, "- ", "")), "130: nested deeper than 64 levels");
  EXPECT_TRUE(mistake_in(nested(5'000, "json(", ")")).ends_with("nested deeper than 64 levels"));
  EXPECT_TRUE(mistake_in(nested(5'000, "a[", "]")).ends_with("nested deeper than 64 levels"));
  EXPECT_EQ(value_of("1" + nested(16'000, "", "+1")), "16011") << "a long chain is not deep";
  EXPECT_EQ(mistake_in(std::string(64 * 1024 + 1, ' ')), "0: an expression has at most 64 KiB");
}

TEST(FlowExpression, TextsDoNotGrowBeyondTheirBound) {
  const MapScope big{"{\"a\": \"" + std::string(5 * 1024 * 1024, 'x') + "\"}"};
  EXPECT_EQ(parse_expression("a + a + a")->evaluate(big)->get_string().size(), 15U * 1024 * 1024);
  EXPECT_EQ(parse_expression("a + a + a + a")->evaluate(big).error(), "the text would be longer than 16 MiB");
  const auto joined = parse_template("${a}${a}${a}${a}");
  EXPECT_EQ(joined->render(big, Quoting::none).error(), "the text would be longer than 16 MiB");
  EXPECT_EQ(joined->render(big, Quoting::shell).error(), "the text would be longer than 16 MiB");
}

TEST(FlowExpression, NamesWhatItRefersTo) {
  const auto expression = parse_expression("default(a.b, c) + d['e f'].g[h.i].j");
  ASSERT_TRUE(expression);
  const std::vector<Reference> found = expression->references();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].path, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(found[0].has_default);
  EXPECT_EQ(found[1].path, (std::vector<std::string>{"c"}));
  EXPECT_FALSE(found[1].has_default) << "nothing stands in for the second one";
  EXPECT_EQ(found[1].offset, 13U);
  EXPECT_EQ(found[2].path, (std::vector<std::string>{"d", "e f", "g"}));
  EXPECT_EQ(found[2].offset, 18U);
  EXPECT_EQ(found[3].path, (std::vector<std::string>{"h", "i"}));
}

__extension__ typedef __int128 Wide;

std::string literal_of(std::int64_t number) {
  return number < 0 ? "(" + std::to_string(number) + ")" : std::to_string(number);
}

TEST(FlowExpressionProperty, WholeNumbersAreExactOrRefused) {
  const bool holds = rc::check("as 128-bit arithmetic says", [] {
    const auto edge =
        rc::gen::element<std::int64_t>(INT64_MIN, INT64_MIN + 1, -1, 0, 1, 2, 3, INT64_MAX - 1, INT64_MAX);
    const auto any = rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(), edge);
    const std::int64_t left = *any;
    const std::int64_t right = *any;
    const char sign = *rc::gen::element('+', '-', '*', '/', '%');
    const std::string got = value_of(literal_of(left) + sign + literal_of(right));
    const auto a = static_cast<Wide>(left);
    const auto b = static_cast<Wide>(right);
    if ((sign == '/' || sign == '%') && b == 0) {
      RC_ASSERT(got.ends_with("is a division by zero"));
      return;
    }
    if (sign == '/' && a % b != 0) {
      RC_ASSERT(got == json::to_text(Json(static_cast<double>(left) / static_cast<double>(right))));
      return;
    }
    const Wide wide = sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : sign == '/' ? a / b : a % b;
    if (wide < INT64_MIN || wide > INT64_MAX) {
      RC_ASSERT(got.ends_with("does not fit into 64 bits"));
    } else {
      RC_ASSERT(got == std::to_string(static_cast<std::int64_t>(wide)));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(FlowExpressionProperty, AnyTextIsReadOrRefusedWithAPlaceInIt) {
  const auto piece = rc::gen::element<std::string>("a", ".", "[", "]", "(", ")", "'", "\"", "\\", "1", "-", "+", "/",
                                                   "==", "<", " and ", " not ", "length(", ",", "default(", "null",
                                                   "${", "}", "é", "\xff", "0.5", "%", "params", "*");
  const bool holds = rc::check("and computing it ends", [&] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(piece);
    std::string text;
    for (const std::string& each : pieces) text += each;
    if (const auto expression = parse_expression(text)) {
      (void)expression->evaluate(scope());
      for (const Reference& reference : expression->references())
        RC_ASSERT(text.substr(reference.offset).starts_with(reference.path[0]));
    } else {
      RC_ASSERT(expression.error().offset <= text.size());
      RC_ASSERT(!expression.error().message.empty());
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace reprise::flow
