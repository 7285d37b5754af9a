// Filters: what is read, what is refused and where, what matches.
#include "index/filter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise::index {
namespace {

using namespace std::chrono_literals;

const WallTime now{std::chrono::sys_days{std::chrono::year{2026} / 11 / 18}};

Filter filter_of(std::string_view text) {
  const auto filter = parse_filter(text);
  EXPECT_TRUE(filter) << text << ": " << (filter ? "" : filter.error().message);
  return filter.value_or(Filter{});
}

FilterMistake mistake_in(std::string_view text) {
  const auto filter = parse_filter(text);
  EXPECT_FALSE(filter) << text;
  return filter ? FilterMistake{} : filter.error();
}

TEST(Filter, EveryKeyIsRead) {
  const Filter filter = filter_of(
      "step:fetch class:transient kind:throttled http:429 exit:75 error:\"connection reset\" fingerprint:ab12 "
      "item:17,20-30 "
      "status:failed label:team=a label:berlin older:2h flow:nightly since:24h until:2026-11-18T00:00:00Z attempts:3+ "
      "parent:0199 key:K");
  EXPECT_EQ(filter.steps, std::vector<std::string>{"fetch"});
  EXPECT_EQ(filter.classes, std::vector{FailureClass::transient});
  EXPECT_EQ(filter.kinds, std::vector{FailureKind::throttled});
  EXPECT_EQ(filter.http, (std::vector<NumberRange>{{429, 429}}));
  EXPECT_EQ(filter.exits, (std::vector<NumberRange>{{75, 75}}));
  EXPECT_EQ(filter.errors, std::vector<std::string>{"connection reset"});
  EXPECT_EQ(filter.items, (std::vector<NumberRange>{{17, 17}, {20, 30}}));
  EXPECT_EQ(filter.run_labels, (std::vector<std::pair<std::string, std::string>>{{"team", "a"}}));
  EXPECT_EQ(filter.item_labels, std::vector<std::string>{"berlin"});
  EXPECT_EQ(filter.older, Duration{2h});
  EXPECT_EQ(filter.since->before(now), now - 24h);
  EXPECT_EQ(filter.until->before(now + 1h), now);
  EXPECT_EQ(filter.attempts.front().from, 3U);
  EXPECT_TRUE(filter.looks_at_runs());
  EXPECT_TRUE(filter.looks_at_items());
  EXPECT_TRUE(filter_of("").empty());
}

TEST(Filter, MistakesNameWordAndPlace) {
  EXPECT_EQ(mistake_in("status:failed stpe:x").word, 1U);
  EXPECT_NE(mistake_in("stpe:x").message.find("did you mean step"), std::string::npos);
  EXPECT_EQ(mistake_in("item:3,7-5").offset, 7U);
  EXPECT_NE(mistake_in("class:transcient").message.find("did you mean transient"), std::string::npos);
  EXPECT_NE(mistake_in("fetch").help.find("step:fetch"), std::string::npos);
  for (const char* bad :
       {"http:42", "http:6xx", "exit:256", "error:\"open", "error:\"a\"b", "item:", "item:1,,2", "since:yesterday",
        "older:2", "since:1h since:2h", "attempts:+", "item:-3", "status:done", ":x"}) {
    EXPECT_FALSE(parse_filter(std::string_view{bad})) << bad;
  }
}

TEST(Filter, WordsOfAShellAndOfATextMeanTheSame) {
  const std::vector<std::string> words{"error:\"a, \\\"b\\\"\"", "step:x"};
  EXPECT_EQ(parse_filter(words), parse_filter(std::string_view{"error:\"a, \\\"b\\\"\"  step:x"}));
  EXPECT_EQ(parse_filter(words)->errors, std::vector<std::string>{"a, \"b\""});
  EXPECT_EQ(parse_filter(std::vector<std::string>{"error:connection reset"})->errors,
            std::vector<std::string>{"connection reset"});
}

TEST(Filter, RunsMatchByEachCondition) {
  const std::vector<std::pair<std::string, std::string>> labels{{"team", "a"}};
  const RunSubject run{.status = "failed",
                       .flow = "nightly",
                       .key = "k",
                       .parent = "0199aa",
                       .created = now - 2h,
                       .changed = now - 1h,
                       .labels = labels};
  for (const char* text : {"status:failed", "status:running,failed", "flow:nightly", "key:k", "parent:0199", "since:2h",
                           "until:1h", "older:1h", "label:team=a", "step:fetch"}) {
    EXPECT_TRUE(filter_of(text).matches(run, now)) << text;
  }
  for (const char* text :
       {"status:running", "flow:night", "key:kk", "parent:02", "since:1h", "until:2h", "older:61m", "label:team=b"}) {
    EXPECT_FALSE(filter_of(text).matches(run, now)) << text;
  }
}

TEST(Filter, ItemsMatchByEachCondition) {
  const Failure failure{.type = "TimeoutError",
                        .message = "Connection Reset by peer",
                        .kind = FailureKind::throttled,
                        .exit_code = 75,
                        .http_status = 503};
  const ItemSubject item{.step = "fetch",
                         .item = 25,
                         .label = "Berlin-7",
                         .attempts = 3,
                         .failure = &failure,
                         .failure_class = FailureClass::transient,
                         .fingerprint = "ab12ff"};
  for (const char* text : {"step:fetch", "item:17,20-30", "label:berlin", "attempts:3+", "class:transient",
                           "kind:throttled", "http:5xx", "exit:70-80", "error:\"connection reset\"",
                           "error:timeouterror", "fingerprint:ab12", "step:load,fetch http:503"}) {
    EXPECT_TRUE(filter_of(text).matches(item)) << text;
  }
  for (const char* text : {"step:load", "item:31", "label:paris", "attempts:4+", "class:deterministic", "kind:auth",
                           "http:4xx", "exit:1", "error:refused", "fingerprint:b", "step:fetch item:1"}) {
    EXPECT_FALSE(filter_of(text).matches(item)) << text;
  }
  EXPECT_FALSE(filter_of("class:transient").matches(ItemSubject{.step = "fetch"})) << "nothing failed";
  EXPECT_FALSE(filter_of("item:0").matches(ItemSubject{.step = "fetch"})) << "a step without items";
}

TEST(Filter, NamesOfWorkAreNoFilterWords) {
  EXPECT_TRUE(is_filter_word("step:x"));
  EXPECT_TRUE(is_filter_word("tsep:x"));
  EXPECT_FALSE(is_filter_word("fetch"));
  EXPECT_FALSE(is_filter_word("fetch[3]"));
  EXPECT_FALSE(is_filter_word("fetch[a:b]"));
}

RC_GTEST_PROP(FilterProperty, any_text_is_read_or_refused_inside_its_word, (const std::string& text)) {
  const auto filter = parse_filter(std::string_view{text});
  if (!filter) {
    RC_ASSERT(!filter.error().message.empty());
    RC_ASSERT(filter.error().offset <= text.size());
  }
}

RC_GTEST_PROP(FilterProperty, a_quoted_value_is_taken_as_it_is, (const std::string& text)) {
  RC_PRE(!text.empty() && text.size() < 1000);
  std::string word = "error:\"";
  for (const char c : text) word += (c == '"' || c == '\\') ? std::string{'\\', c} : std::string{c};
  const auto filter = parse_filter(std::string_view{word + "\" step:x"});
  RC_ASSERT(filter.has_value());
  RC_ASSERT(filter->errors == std::vector<std::string>{text});
  RC_ASSERT(filter->steps == std::vector<std::string>{"x"});
}

}  // namespace
}  // namespace reprise::index
