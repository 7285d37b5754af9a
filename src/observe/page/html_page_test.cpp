// The page about a run: every event is in it once, and nothing that a program wrote can be anything but data.
#include "observe/page/html_page.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <boost/json.hpp>

#include "observe/page/page_files.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
namespace boost_json = boost::json;

constexpr std::string_view hostile =
    "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \xE2\x80\xA8 \xE2\x80\xA9 \" ' & ${x} "
    "{{data}} {{script}}";
const WallTime created{std::chrono::seconds{1'800'000'000}};

runtime::RunView view_of(const std::vector<std::string>& names) {
  auto plan = std::make_shared<core::Plan>();
  runtime::RunView view;
  for (const std::string& name : names) {
    core::StepPlan step;
    step.name = std::make_shared<const std::string>(name);
    step.for_each = !plan->steps.empty();
    if (step.for_each) step.needs = {0};
    step.policy.max_attempts = 3;
    plan->steps.push_back(step);
    view.steps.push_back({.name = name, .has_items = step.for_each, .items = step.for_each ? 4U : 1U});
  }
  plan->connect();
  view.plan = plan;
  view.info.name = "flow";
  view.info.created = created;
  return view;
}

class Story {
 public:
  explicit Story(std::string step) : step_{std::move(step)} {}

  Event& tell(EventType type, std::uint32_t item = 0, std::uint64_t attempt = 0) {
    const bool is_of_run = type == EventType::submitted || type == EventType::ended;
    events.push_back({.type = type,
                      .sequence = events.size() + 1,
                      .time = created + 1500us * events.size(),
                      .step = is_of_run ? "" : step_,
                      .item = item,
                      .attempt = attempt});
    return events.back();
  }
  void fail(std::uint32_t item, const std::string& message) {
    tell(EventType::started, item, 1);
    Event& failed = tell(EventType::failed, item, 1);
    failed.will_retry = true;
    failed.failure = Failure{.message = message, .failure_class = FailureClass::transient, .retry_after = 2s};
    Event& retrying = tell(EventType::retrying, item, 1);
    retrying.next_attempt = 2;
    retrying.delay = 300ms;
    retrying.range = {.nominal = 400ms, .min = 200ms, .max = 600ms};
  }

  std::vector<Event> events;

 private:
  std::string step_;
};

std::string page_of(const runtime::RunView& view, const std::vector<Event>& events, PageLimits limits = {}) {
  HtmlPage page{view, {.now = created + 1h}, limits};
  for (const Event& event : events) page.add(event);
  return std::move(page).html();
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// As the browser takes it: from the marker of the data up to the first end of a script.
boost_json::object data_of(std::string_view html) {
  constexpr std::string_view begin = "id=\"data\">";
  const std::size_t from = html.find(begin) + begin.size();
  return boost_json::parse(html.substr(from, html.find("</script", from) - from)).as_object();
}

std::string text_at(const boost_json::object& data, std::size_t row, std::size_t place) {
  const auto number = data.at("events").at(row).at(place).to_number<std::size_t>();
  return std::string{data.at("texts").at(number).as_string()};
}

TEST(ObserveHtmlPage, ScriptSafeJsonIsTheSameValueWithoutAnythingThatHtmlKnows) {
  const std::string text = boost_json::serialize(boost_json::value(std::string{hostile}));
  const std::string safe = safe_in_script(text);
  EXPECT_EQ(boost_json::parse(safe), boost_json::parse(text));
  EXPECT_EQ(safe.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(safe.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(safe.find("\xE2\x80\xA9"), std::string::npos);
}

RC_GTEST_PROP(ObserveHtmlPage, WhateverIsWrittenStaysInsideOfTheData, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("<", "/", "script", "</script ", "<!--", "-->", ">", "&", "\"", "\\", "'", "\n",
                                    "\xE2\x80\xA8", "\xFF", "\0", "{{data}}"));
  std::string written;
  for (const std::string& piece : pieces) written += piece;
  Story story{"work"};
  story.tell(EventType::progress).text = written;
  const std::string html = page_of(view_of({"work"}), story.events);
  RC_ASSERT(count_of(html, "</script") == count_of(page::skeleton, "</script"));
  RC_ASSERT(count_of(html, "<!--") == 0U);
  RC_ASSERT(text_at(data_of(html), 0, 5) == text::safe_to_show(written));
}

TEST(ObserveHtmlPage, WhatProgramsWroteIsDataOnly) {
  const std::string name{hostile};
  runtime::RunView view = view_of({name, name + "2"});
  view.info.name = name;
  view.info.key = name;
  Story story{name};
  story.tell(EventType::submitted).text = name;
  story.fail(0, name);
  Event& completed = story.tell(EventType::completed, 0, 2);
  completed.output = "<b onmouseover=alert(3)>";
  completed.output_size = completed.output.size();
  story.tell(EventType::progress).text = name;
  story.tell(EventType::signaled).text = name;
  const std::string html = page_of(view, story.events);
  EXPECT_EQ(count_of(html, "<script"), 2U);
  EXPECT_EQ(count_of(html, "</script"), 2U);
  EXPECT_EQ(count_of(html, "<img"), 0U);
  EXPECT_EQ(count_of(html, "<!--"), 0U);
  const boost_json::object data = data_of(html);
  EXPECT_TRUE(data.at("head").at("flow").as_string().starts_with("</script><script>alert(1)</script><!--"));
  EXPECT_TRUE(data.at("steps").at(0).at("name").as_string().ends_with("{{data}} {{script}}"));
  EXPECT_NE(text_at(data, 2, 6).find("<img src=x onerror=alert(2)>"), std::string::npos);
  EXPECT_EQ(text_at(data, 4, 7), "<b onmouseover=alert(3)>");
}

TEST(ObserveHtmlPage, NothingButItsOwnScriptIsObeyed) {
  const std::string html = page_of(view_of({"work"}), {});
  EXPECT_NE(html.find("content=\"default-src 'none'; base-uri 'none'; form-action 'none'; script-src 'sha256-"),
            std::string::npos);
  EXPECT_EQ(html.find("unsafe-inline"), std::string::npos);
  EXPECT_EQ(html.find("http-equiv=\"refresh\""), std::string::npos);
  EXPECT_EQ(count_of(html, "innerHTML"), 0U);
  EXPECT_EQ(count_of(html, "src="), 0U);
  EXPECT_EQ(count_of(html, "url("), 0U);
}

TEST(ObserveHtmlPage, EveryEventIsOneRow) {
  Story story{"each"};
  story.tell(EventType::submitted);
  story.tell(EventType::prepared).items = 4;
  story.fail(2, "no answer");
  story.tell(EventType::started, 2, 2);
  story.tell(EventType::completed, 2, 2).total_attempts = 2;
  story.tell(EventType::ended);
  const boost_json::object data = data_of(page_of(view_of({"list", "each"}), story.events));
  const boost_json::array& rows = data.at("events").as_array();
  ASSERT_EQ(rows.size(), story.events.size());
  std::int64_t time = 0;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const Event& event = story.events[at];
    const auto number = [&](std::size_t place) { return rows[at].at(place).to_number<std::int64_t>(); };
    time += number(1);
    EXPECT_EQ(data.at("types").at(static_cast<std::size_t>(number(0))).as_string(), name_of(event.type));
    EXPECT_EQ(time, std::chrono::floor<std::chrono::microseconds>(event.time - created).count());
    EXPECT_EQ(number(2), event.step.empty() ? 0 : 2);
    EXPECT_EQ(number(3), event.item);
    EXPECT_EQ(number(4), static_cast<std::int64_t>(event.attempt));
  }
}

TEST(ObserveHtmlPage, AFailureAndItsWaitComeWithTheirReasons) {
  Story story{"each"};
  story.fail(2, "no answer");
  const boost_json::object data = data_of(page_of(view_of({"list", "each"}), story.events));
  EXPECT_EQ(data.at("events").at(1).at(5).to_number<int>(), 1) << "it will be tried again";
  EXPECT_EQ(text_at(data, 1, 6), "no answer");
  EXPECT_EQ(text_at(data, 1, 7), "transient");
  EXPECT_TRUE(text_at(data, 1, 8).starts_with("It is transient")) << text_at(data, 1, 8);
  EXPECT_EQ(text_at(data, 1, 9), "Tried again: transient failures are retried; max_attempts 3 leaves 2.");
  EXPECT_EQ(data.at("events").at(1).at(10).to_number<int>(), 2'000'000) << "Retry-After";
  EXPECT_EQ(data.at("events").at(2).at(5).to_number<int>(), 2) << "the next attempt";
  EXPECT_EQ(data.at("events").at(2).at(6).to_number<int>(), 300'000);
  EXPECT_TRUE(text_at(data, 2, 7).starts_with("drawn from 200ms to 600ms (")) << text_at(data, 2, 7);
}

// What the page draws is worked out here: the state of the work, its attempts and its waits.
TEST(ObserveHtmlPage, WorkComesWithItsStateItsAttemptsAndItsWaits) {
  Story story{"each"};
  story.tell(EventType::submitted);
  story.tell(EventType::prepared).items = 4;
  story.fail(2, "no answer");
  story.tell(EventType::started, 2, 2);
  story.tell(EventType::completed, 2, 2).total_attempts = 2;
  story.fail(3, "no answer");
  story.tell(EventType::started, 0, 1);
  const boost_json::object data = data_of(page_of(view_of({"list", "each"}), story.events));
  const boost_json::array& works = data.at("works").as_array();
  ASSERT_EQ(works.size(), 3U);
  EXPECT_EQ(works[0].at(2).as_string(), "running");
  EXPECT_EQ(works[2].at(2).as_string(), "waiting");
  const boost_json::array& rescued = works[1].as_array();
  EXPECT_EQ(rescued[0], 1);
  EXPECT_EQ(rescued[1], 2);
  EXPECT_EQ(rescued[2].as_string(), "rescued");
  EXPECT_EQ(rescued[3], 2) << "attempts";
  EXPECT_EQ(rescued[4], 1) << "failures";
  EXPECT_EQ(rescued[5], 1) << "waits";
  const boost_json::array& segments = rescued[6].as_array();
  ASSERT_EQ(segments.size(), 3U);
  const auto text = [&](const boost_json::value& number) {
    return std::string{data.at("texts").at(number.to_number<std::size_t>()).as_string()};
  };
  EXPECT_EQ(segments[0].at(0).as_string(), "attempt");
  EXPECT_EQ(segments[0].at(1).as_string(), "failed");
  EXPECT_EQ(segments[0].at(2), 3000) << "microseconds since the run was created";
  EXPECT_EQ(segments[0].at(3), 4500);
  EXPECT_EQ(text(segments[0].at(6)), "no answer");
  EXPECT_EQ(segments[0].at(9), 2'000'000) << "Retry-After";
  EXPECT_EQ(segments[1].at(0).as_string(), "wait");
  EXPECT_EQ(segments[1].at(3), segments[2].at(2)) << "it lasts until the next attempt";
  EXPECT_EQ(segments[1].at(6), 300'000);
  EXPECT_TRUE(text(segments[1].at(7)).starts_with("drawn from 200ms to 600ms ("));
  EXPECT_EQ(segments[2].at(1).as_string(), "succeeded");
  EXPECT_TRUE(works[0].at(6).at(0).at(3).is_null()) << "it goes on";
}

TEST(ObserveHtmlPage, OneItemThatIsTriedAgainIsDrawnAsWaiting) {
  Story story{"each"};
  story.tell(EventType::submitted);
  story.tell(EventType::prepared).items = 2;
  for (const std::uint32_t item : {0U, 1U}) {
    story.tell(EventType::started, item, 1);
    Event& failed = story.tell(EventType::failed, item, 1);
    failed.failure = Failure{.message = "no"};
    failed.reason = StopReason::attempts;
  }
  story.tell(EventType::ended).status = RunStatus::failed;
  Event& reopened = story.tell(EventType::reopened);
  reopened.step.clear();
  reopened.text = "each";
  reopened.only_item = 1;
  const boost_json::object data = data_of(page_of(view_of({"list", "each"}), story.events));
  EXPECT_EQ(data.at("works").at(0).at(2).as_string(), "failed");
  EXPECT_EQ(data.at("works").at(1).at(2).as_string(), "waiting");
  EXPECT_EQ(data.at("standstills").at(0).at(0).as_string(), "over");
}

TEST(ObserveHtmlPage, TheSameTextIsThereOnce) {
  Story story{"each"};
  for (std::uint32_t item = 0; item < 4; ++item) story.fail(item, "no answer");
  const boost_json::object data = data_of(page_of(view_of({"list", "each"}), story.events));
  EXPECT_EQ(data.at("texts").as_array().size(), 5U);
  EXPECT_EQ(text_at(data, 1, 6), text_at(data, 10, 6));
}

TEST(ObserveHtmlPage, BeyondItsLimitsItCountsAndSaysSo) {
  Story story{"each"};
  for (std::uint32_t item = 0; item < 4; ++item) story.fail(item, "no answer from " + std::to_string(item));
  const boost_json::object few = data_of(page_of(view_of({"list", "each"}), story.events, {.events_max = 5}));
  EXPECT_EQ(few.at("events").as_array().size(), 5U);
  EXPECT_EQ(few.at("head").at("events_left_out").to_number<int>(), 7);
  EXPECT_EQ(few.at("head").at("retries").to_number<int>(), 4) << "numbers are of the whole run";
  const boost_json::object terse = data_of(page_of(view_of({"list", "each"}), story.events, {.text_bytes_max = 20}));
  EXPECT_EQ(terse.at("events").as_array().size(), 12U);
  EXPECT_EQ(text_at(terse, 1, 6), "no answer from 0");
  story.fail(0, "no answer from 0");
  const boost_json::object again = data_of(page_of(view_of({"list", "each"}), story.events, {.text_bytes_max = 20}));
  EXPECT_EQ(text_at(again, 13, 6), "no answer from 0") << "what is there can be said again";
  EXPECT_TRUE(text_at(terse, 4, 6).starts_with("(left out")) << text_at(terse, 4, 6);
}

TEST(ObserveHtmlPage, TheHeadSaysHowTheRunStands) {
  runtime::RunView view = view_of({"list", "each"});
  view.info.status = RunStatus::failed;
  view.info.ended = created + 90s;
  view.outcome.reason = StopReason::attempts;
  view.steps[1].status = core::StepStatus::failed;
  const boost_json::object data = data_of(page_of(view, {}));
  EXPECT_EQ(data.at("head").at("status_words").as_string(), "failed: its attempts were used up");
  EXPECT_EQ(
      data.at("head").at("ended").to_number<std::int64_t>() - data.at("head").at("created").to_number<std::int64_t>(),
      90'000'000);
  EXPECT_EQ(data.at("steps").at(1).at("state").as_string(), "failed");
  EXPECT_EQ(data.at("steps").at(1).at("needs"), boost_json::array{0});
}

}  // namespace
}  // namespace reprise::observe
