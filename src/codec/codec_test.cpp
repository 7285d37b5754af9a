// Values there and back, what is refused, and what a struct survives when its fields change.
#include <reprise/codec.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shop {

enum class Colour : std::uint8_t { red = 3, blue };
struct Line {
  std::string name;
  std::uint32_t count = 1;
  bool operator==(const Line&) const = default;
};
REPRISE_FIELDS(Line, name, count)

struct Order {
  std::string id;
  std::int64_t cents = 0;
  std::optional<double> discount;
  std::vector<Line> lines;
  std::map<std::string, bool> flags;
  Colour colour = Colour::red;
  std::chrono::milliseconds patience{0};
  std::chrono::sys_seconds due;
  reprise::Bytes seal;
  reprise::Json extra;
  std::tuple<int, std::string> pair;
  std::array<bool, 2> switches{};
  bool operator==(const Order&) const = default;
};
REPRISE_FIELDS(Order, id, cents, discount, lines, flags, colour, patience, due, seal, extra, pair, switches)

struct Newer {  // what Order may have become
  std::string id;
  std::string note = "none";
};
REPRISE_FIELDS(Newer, id, note)

struct Unknown {};

}  // namespace shop

namespace reprise {
namespace {

using namespace std::chrono_literals;

template <class T>
void expect_same(const T& value, const std::string& bytes) {
  EXPECT_EQ(Codec<T>::encode(value), bytes);
  const auto back = Codec<T>::decode(bytes);
  ASSERT_TRUE(back) << back.error();
  EXPECT_EQ(*back, value);
}

static_assert(Storable<void> && Storable<bool> && Storable<std::vector<std::optional<int>>> && Storable<shop::Order>);
static_assert(!Storable<shop::Unknown> && !Storable<std::vector<shop::Unknown>> && !Storable<int*>);

TEST(Codec, BuiltInTypesAreReadable) {
  expect_same(true, "true");
  expect_same(-7, "-7");
  expect_same(0.1, "0.1");
  expect_same(std::numeric_limits<std::uint64_t>::max(), "18446744073709551615");
  expect_same(std::numeric_limits<double>::infinity(), "\"Infinity\"");
  expect_same(std::string{"as it is\n\x01"}, "as it is\n\x01");
  expect_same(Json{"{ \"a\": 1 }"}, "{ \"a\": 1 }");
  expect_same(std::vector<std::string>{"a\"b", "\n", "ü"}, R"(["a\"b","\n","ü"])");
  expect_same(std::optional<int>{}, "null");
  expect_same(std::map<std::string, int>{{"a", 1}, {"b", 2}}, R"({"a":1,"b":2})");
  expect_same(std::unordered_map<std::string, int>{{"b", 2}, {"a", 1}}, R"({"a":1,"b":2})");
  expect_same(std::pair{1, std::string{"x"}}, R"([1,"x"])");
  expect_same(std::vector<Bytes>{{std::string{"\0\xff", 2}}}, R"(["AP8="])");
  expect_same(shop::Colour::blue, "4");
  expect_same(std::chrono::nanoseconds{1500ms}, "[1500000000,1,1000000000]");
  expect_same(std::chrono::sys_seconds{1s}, "\"1970-01-01T00:00:01Z\"");
  expect_same(std::vector<bool>{true, false}, "[true,false]");
  expect_same(std::tuple<>{}, "[]");
}

TEST(Codec, AStructIsAnObject) {
  const shop::Order order{.id = "A-17",
                          .cents = -5,
                          .discount = 0.25,
                          .lines = {{"tea", 2}, {"cup"}},
                          .flags = {{"gift", true}},
                          .colour = shop::Colour::blue,
                          .patience = 90s,
                          .due = std::chrono::sys_seconds{86400s},
                          .seal = {"\x01"},
                          .extra = {R"({"x":[1,2]})"},
                          .pair = {1, "one"},
                          .switches = {true, false}};
  expect_same(
      order,
      R"({"id":"A-17","cents":-5,"discount":0.25,"lines":[{"name":"tea","count":2},{"name":"cup","count":1}],"flags":{"gift":true},)"
      R"("colour":4,"patience":[90000,1,1000],"due":"1970-01-02T00:00:00Z","seal":"AQ==","extra":{"x":[1,2]},"pair":[1,"one"],)"
      R"("switches":[true,false]})");
}

TEST(Codec, FieldsMayComeAndGo) {
  const auto newer = Codec<shop::Newer>::decode(R"( {"id":"A","cents":[{"deep":{}}],"other":"\ud83d\ude00"} )");
  ASSERT_TRUE(newer) << newer.error();
  EXPECT_EQ(newer->id, "A");
  EXPECT_EQ(newer->note, "none");
}

TEST(Codec, UnitsMayChangeWhereNothingIsLost) {
  EXPECT_EQ(Codec<std::chrono::seconds>::decode("[2000,1,1000]"), std::chrono::seconds{2});
  EXPECT_EQ(Codec<std::chrono::hours>::decode("[7200,1,1]"), std::chrono::hours{2});
  EXPECT_FALSE(Codec<std::chrono::seconds>::decode("[1,1,1000]"));
  EXPECT_FALSE(Codec<std::chrono::nanoseconds>::decode("[9223372036854775807,1,1]"));
  EXPECT_FALSE(Codec<std::chrono::seconds>::decode("[1,0,1000]"));
}

TEST(Codec, MistakesSayWhere) {
  EXPECT_EQ(Codec<int>::decode("12 x").error(), "there is more text after the value (byte 3)");
  EXPECT_EQ(Codec<std::uint8_t>::decode("256").error(), "the number 256 does not fit (byte 3)");
  EXPECT_EQ(Codec<int>::decode("1.5").error(), "the number 1.5 does not fit (byte 3)");
  for (const char* bad : {"", "[", "[1", "[1,]", "[1 2]", "[01]", "[1.]", "[-]", "nul", "[1]]"})
    EXPECT_FALSE(Codec<std::vector<int>>::decode(bad)) << bad;
  for (const char* bad : {R"(["\ud800"])", R"(["\udc00"])", R"(["\x"])", R"(["a)", "[\"\n\"]", R"(["\u12"])"})
    EXPECT_FALSE(Codec<std::vector<std::string>>::decode(bad)) << bad;
  EXPECT_FALSE((Codec<std::array<int, 2>>::decode("[1]")));
  EXPECT_FALSE((Codec<std::array<int, 2>>::decode("[1,2,3]")));
  EXPECT_FALSE((Codec<std::pair<int, int>>::decode("[1]")));
  EXPECT_FALSE((Codec<std::pair<int, int>>::decode("[1,2,3]")));
  EXPECT_FALSE(Codec<std::vector<Json>>::decode("[" + std::string(100, '[') + std::string(100, ']') + "]"));
  EXPECT_FALSE(Codec<std::vector<Bytes>>::decode(R"(["A"])"));
}

template <class T>
bool comes_back(const T& value) {
  const std::expected<T, std::string> back = Codec<T>::decode(Codec<T>::encode(value));
  return back.has_value() && back.value() == value;
}

RC_GTEST_PROP(CodecProperty, values_come_back,
              (const std::vector<std::pair<std::string, double>>& list,
               const std::map<std::string, std::int64_t>& map)) {
  RC_ASSERT(comes_back(list));
  RC_ASSERT(comes_back(map));
}

RC_GTEST_PROP(CodecProperty, any_bytes_are_read_or_refused, (const std::string& bytes)) {
  const auto order = Codec<shop::Order>::decode(bytes);
  if (!order) RC_ASSERT(!order.error().empty());
}

}  // namespace
}  // namespace reprise
