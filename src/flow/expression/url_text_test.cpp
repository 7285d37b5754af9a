// URLs with values in them: each value stays where the document put it, or the URL is refused.
#include "flow/expression/url_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "flow/expression/expression.hpp"

namespace reprise::flow {
namespace {

class OneValue final : public Scope {
 public:
  explicit OneValue(std::string value) : value_(boost::json::string{value}) {}
  std::expected<const Json*, std::string> find(std::span<const std::string>, std::size_t& used) const override {
    used = 1;
    return &value_;
  }

 private:
  Json value_;
};

// The URL, or "refused: " and why.
std::string url(std::string_view text, std::string value) {
  const auto made = parse_template(text)->render(OneValue{std::move(value)}, Quoting::url);
  return made ? *made : "refused: " + made.error();
}

bool is_refused(std::string_view text, std::string value) {
  const std::string made = url(text, std::move(value));
  return made.starts_with("refused: ${v} ");
}

TEST(FlowUrl, ValuesOfPathsAndQueriesAreEncoded) {
  EXPECT_EQ(url("http://h/v1/${v}", "a b"), "http://h/v1/a%20b");
  EXPECT_EQ(url("http://h/v1/${v}", "x/y?z#&=%2e"), "http://h/v1/x%2Fy%3Fz%23%26%3D%252e");
  EXPECT_EQ(url("http://h/v1?q=${v}", "../&x=1#"), "http://h/v1?q=..%2F%26x%3D1%23");
  EXPECT_EQ(url("http://h/${v}.json", "..a"), "http://h/..a.json");
  EXPECT_EQ(url("http://h/a${v}", ".."), "http://h/a..");
  EXPECT_EQ(url("http://h/${v}", "..."), "http://h/...");
  EXPECT_EQ(url("http://h/a/../b/${v}", "c"), "http://h/a/../b/c") << "what the document itself says is its own matter";
}

TEST(FlowUrl, ASegmentMadeOfDotsIsRefused) {
  for (const char* value : {".", "..", "../x", "x/..", "a/./b", "..\\x"})
    EXPECT_TRUE(is_refused("http://h/v1/orders/${v}", value)) << url("http://h/v1/orders/${v}", value);
  EXPECT_TRUE(is_refused("http://h/v1/${v}/x", ".."));
  EXPECT_TRUE(is_refused("http://h/v1/.${v}", "."));
  EXPECT_TRUE(is_refused("http://h/v1/${v}${v}/x", "."));
  EXPECT_TRUE(is_refused("http://h/v1/%2e${v}", "."));
  EXPECT_TRUE(is_refused("http://h/v1/%2E%2e${v}", ""));
  EXPECT_TRUE(is_refused("${v}/x", "http://h/a/.."));
  EXPECT_TRUE(is_refused("http://h${v}", "/a/%2e%2e/b"));
  EXPECT_EQ(url("http://h/v1/${v}", ".."),
            "refused: ${v} would make . or .. a segment of the URL's path, which leads to another path");
}

TEST(FlowUrl, TheHostIsWhatTheDocumentSays) {
  for (const char* value :
       {"@evil.invalid/x", "/@evil.invalid", ":80@evil.invalid", "80/x", "80?x", "80#x", "8 0", "80\\x", "x"})
    EXPECT_TRUE(is_refused("http://localhost:${v}/x", value)) << value;
  EXPECT_TRUE(is_refused("http://localhost:8080${v}", "@evil.invalid/x"));
  EXPECT_TRUE(is_refused("http://localhost${v}/x", ":80@evil.invalid"));
  EXPECT_TRUE(is_refused("http://api.${v}/x", "/evil"));
  EXPECT_TRUE(is_refused("http://${v}/x", "good@evil.invalid"));
  EXPECT_TRUE(is_refused("http://${v}/x", "evil.invalid/y?"));
  EXPECT_TRUE(is_refused("http://${v}.example.org/x", "evil.invalid#"));
  EXPECT_TRUE(is_refused("http://${v}/x", "a%2fb"));
  EXPECT_TRUE(is_refused("http://${v}/x", "a\nb"));
  EXPECT_TRUE(is_refused("${v}://host/x", "http://evil.invalid/?"));
  EXPECT_TRUE(is_refused("http://user:${v}@host/x", "p@evil.invalid/"));
  EXPECT_TRUE(is_refused("http://${v}:secret@host/x", "a:b"));
}

TEST(FlowUrl, APathInThePlaceOfUserHostOrPortIsRefused) {
  for (const char* value : {"/?", "#x", "?a=", "/admin"}) {
    EXPECT_TRUE(is_refused("http://localhost${v}@127.0.0.1:80/x", value)) << value;
    EXPECT_TRUE(is_refused("http://127.0.0.1${v}:80/x", value)) << value;
    EXPECT_TRUE(is_refused("http://127.0.0.1:80${v}/x", value)) << value;
    EXPECT_TRUE(is_refused("http://127.0.0.1${v}${v}@evil.invalid/x", value)) << value;
  }
  EXPECT_TRUE(is_refused("http://u${v}@host/x", ":password"));
  EXPECT_EQ(url("http://${v}@host/x", "u:p"), "http://u:p@host/x");
  EXPECT_EQ(url("http://host${v}/x", "/v1"), "http://host/v1/x");
}

TEST(FlowUrl, WhatFitsIntoTheHostStays) {
  EXPECT_EQ(url("http://${v}/x", "127.0.0.1:8080"), "http://127.0.0.1:8080/x");
  EXPECT_EQ(url("http://${v}/x", "[::1]:80"), "http://[::1]:80/x");
  EXPECT_EQ(url("http://[fe80:${v}]/x", "a:1"), "http://[fe80:a:1]/x");
  EXPECT_EQ(url("http://localhost:${v}/x", "8080"), "http://localhost:8080/x");
  EXPECT_EQ(url("https://${v}.example.org/", "eu-1.api"), "https://eu-1.api.example.org/");
  EXPECT_EQ(url("http://user:${v}@host/x", "p%40ss"), "http://user:p%40ss@host/x");
  EXPECT_EQ(url("${v}://host/x", "https"), "https://host/x");
}

TEST(FlowUrl, AValueMayBeTheBeginning) {
  EXPECT_EQ(url("${v}/orders", "http://127.0.0.1:80/v1"), "http://127.0.0.1:80/v1/orders");
  EXPECT_EQ(url("${v}orders", "http://h/v1/"), "http://h/v1/orders");
  EXPECT_EQ(url("${v}:8080/x", "http://h"), "http://h:8080/x");
  EXPECT_EQ(url("${v}", "http://h/a?b=c#d"), "http://h/a?b=c#d");
  EXPECT_EQ(url("${v}&page=2", "http://h/a?b=c"), "http://h/a?b=c&page=2");
  EXPECT_EQ(url("http://h:80${v}", "/v1/x?y"), "http://h:80/v1/x?y") << "a path behind a host that is complete";
  EXPECT_TRUE(is_refused("${v}/orders", "http://h/?x="));
  EXPECT_TRUE(is_refused("${v}&page=2", "http://h/#"));
  EXPECT_TRUE(is_refused("${v}:8080/x", "http://evil.invalid/?"));
}

// Whatever a value is, scheme, host and the literal part of the path come out as they were written.
RC_GTEST_PROP(FlowUrl, NoValueOfAPathChangesWhatStandsAroundIt, ()) {
  const auto value = *rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{3, rc::gen::element('.', '/', '%', '2', 'e', '@', ':', '?', '#', '\\')}, {1, rc::gen::inRange<char>(1, 127)}}));
  const std::string made = url("http://host.example:8080/v1/orders/${v}/lines", value);
  if (made.starts_with("refused: ")) return;
  RC_ASSERT(made.starts_with("http://host.example:8080/v1/orders/"));
  RC_ASSERT(made.ends_with("/lines"));
  RC_ASSERT(std::count(made.begin(), made.end(), '/') == 6);
  RC_ASSERT(made.find_first_of("?#@\\") == std::string::npos);
}

}  // namespace
}  // namespace reprise::flow
