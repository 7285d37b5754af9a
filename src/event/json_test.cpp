// Events as JSON: a line for every type, word by word, and valid JSON whatever users put into them.
#include <reprise/event.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "text/document.hpp"
#include "text/utf8.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;

const RunId run = *run_id_from("019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b");
constexpr WallTime ten{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + 10h};

// What every line below begins with, so that each test shows what is its own.
std::string line(std::string_view type, std::string_view own) {
  return R"({"type":")" + std::string{type} +
         R"(","sequence":3,"time":"2026-11-15T10:00:00Z","run":"019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b")" +
         std::string{own} + "}";
}

Event event_of(EventType type) { return {.type = type, .sequence = 3, .time = ten, .run = run}; }

Event step_event(EventType type) {
  Event event = event_of(type);
  event.step = "fetch";
  event.item = 4;
  event.attempt = 2;
  event.actor_type = "llm";
  event.is_retry = true;
  return event;
}

std::string step_line(std::string_view type, std::string_view own = "") {
  return line(type, R"(,"step":"fetch","item":4,"attempt":2,"is_retry":true,"actor_type":"llm")" + std::string{own});
}

const Failure everything{.type = "TimeoutError",
                         .message = "no answer",
                         .failure_class = FailureClass::transient,
                         .kind = FailureKind::timeout,
                         .exit_code = 75,
                         .http_status = 503,
                         .signal = 9,
                         .retry_after = 1500us,
                         .permanent = false,
                         .details = "line 1\nline 2"};
constexpr const char* everything_json =
    R"({"type":"TimeoutError","message":"no answer","class":"transient","kind":"timeout","exit_code":75,)"
    R"("http_status":503,"signal":"SIGKILL","retry_after_ms":1.5,"permanent":false,"details":"line 1\nline 2"})";

TEST(EventJson, submitted) {
  Event event = event_of(EventType::submitted);
  event.output = "order 17";
  event.output_size = 8;
  EXPECT_EQ(to_json(event), line("submitted", R"(,"input":"order 17")"));
  event.text = "order-17";
  event.due = ten + 1h;
  event.output = std::string(64, 'a');
  event.output_size = 5000;
  EXPECT_EQ(to_json(event), line("submitted", R"(,"key":"order-17","due_at":"2026-11-15T11:00:00Z","input_hash":")" +
                                                  std::string(64, 'a') + R"(","input_size":5000)"));
}

TEST(EventJson, started) {
  Event event = step_event(EventType::started);
  event.attempt = 1;
  event.is_retry = false;
  EXPECT_EQ(to_json(event),
            line("started", R"(,"step":"fetch","item":4,"attempt":1,"is_retry":false,"actor_type":"llm")"));
  event.attempt = 2;
  event.is_retry = true;
  event.failure = everything;
  event.delay = 1234567ns;
  EXPECT_EQ(to_json(event), step_line("started", R"(,"original_error":)" + std::string{everything_json} +
                                                     R"(,"retry_delay_ms":1.234567)"));
}

TEST(EventJson, completed) {
  Event event = step_event(EventType::completed);
  event.total_attempts = 2;
  event.total_elapsed = 90s;
  EXPECT_EQ(to_json(event), step_line("completed", R"(,"output":"","total_attempts":2,"total_elapsed_ms":90000)"));
  event.output = std::string(64, 'b');
  event.output_size = UINT64_MAX;
  EXPECT_EQ(to_json(event), step_line("completed", R"(,"output_hash":")" + std::string(64, 'b') +
                                                       R"(","output_size":18446744073709551615,"total_attempts":2,)" +
                                                       R"("total_elapsed_ms":90000)"));
  event.text = "200019 bytes, sha256:ab";
  EXPECT_NE(to_json(event).find(R"("whole_output":"200019 bytes, sha256:ab")"), std::string::npos);
}

TEST(EventJson, failed) {
  Event event = step_event(EventType::failed);
  event.will_retry = true;
  event.failure = everything;
  EXPECT_EQ(to_json(event), step_line("failed", R"(,"will_retry":true,"error":)" + std::string{everything_json}));
  event.will_retry = false;
  event.lost = true;
  event.failure = Failure{};
  event.rule = 0;
  event.reason = StopReason::deadline;
  event.total_attempts = 2;
  event.total_elapsed = 1ns;
  EXPECT_EQ(to_json(event),
            step_line("failed", R"(,"will_retry":false,"lost":true,"error":{},"rule":0,"reason":"deadline",)"
                                R"("total_attempts":2,"total_elapsed_ms":0.000001,"stop_reason":"deadline")"));
}

TEST(EventJson, retrying) {
  Event event = step_event(EventType::retrying);
  event.next_attempt = 3;
  event.delay = 733ms;
  event.due = ten + 733ms;
  event.range = {1s, 0s, 1s};
  EXPECT_EQ(to_json(event), step_line("retrying", R"(,"next_attempt":3,"delay_ms":733,)"
                                                  R"("due_at":"2026-11-15T10:00:00.733Z","nominal_ms":1000,)"
                                                  R"("min_ms":0,"max_ms":1000)"));
  event.failure = Failure{.failure_class = FailureClass::test_failure};
  event.rule = 3;
  event.floored = true;
  EXPECT_EQ(to_json(event), step_line("retrying", R"(,"next_attempt":3,"delay_ms":733,)"
                                                  R"("due_at":"2026-11-15T10:00:00.733Z","reason":"test_failure",)"
                                                  R"("rule":3,"nominal_ms":1000,"min_ms":0,"max_ms":1000,)"
                                                  R"("floored":true)"));
}

TEST(EventJson, of_the_run) {
  Event event = event_of(EventType::cancel_requested);
  EXPECT_EQ(to_json(event), line("cancel_requested", ""));
  event.text = "not needed";
  event.reason = StopReason::canceled;
  EXPECT_EQ(to_json(event), line("cancel_requested", R"(,"why":"not needed","stop_reason":"canceled")"));
  event = event_of(EventType::signaled);
  event.text = "approved";
  event.output = "by me";
  event.output_size = 5;
  EXPECT_EQ(to_json(event), line("signaled", R"(,"name":"approved","input":"by me")"));
  event = event_of(EventType::ended);
  event.status = RunStatus::succeeded;
  event.total_elapsed = 2s;
  EXPECT_EQ(to_json(event), line("ended", R"(,"status":"succeeded","total_elapsed_ms":2000)"));
  event.status = RunStatus::canceled;
  event.reason = StopReason::deadline;
  EXPECT_EQ(to_json(event), line("ended", R"(,"status":"canceled","total_elapsed_ms":2000,"stop_reason":"deadline")"));
  for (const EventType type : {EventType::recovered, EventType::paused, EventType::resumed, EventType::reopened}) {
    EXPECT_EQ(to_json(event_of(type)), line(name_of(type), ""));
  }
}

TEST(EventJson, of_a_step) {
  Event event = step_event(EventType::prepared);
  event.attempt = 0;
  event.items = 12;
  EXPECT_EQ(to_json(event), line("prepared", R"(,"step":"fetch","item":4,"items":12)"));
  event = step_event(EventType::progress);
  event.text = "half way";
  EXPECT_EQ(to_json(event), step_line("progress", R"(,"text":"half way")"));
  event = step_event(EventType::handed_over);
  event.text = "019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5c";
  EXPECT_EQ(to_json(event), step_line("handed_over", R"(,"to_run":"019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5c")"));
  EXPECT_EQ(to_json(step_event(EventType::interrupted)), step_line("interrupted", R"(,"class":"canceled")"));
  event = step_event(EventType::extended);
  event.due = ten;
  EXPECT_EQ(to_json(event), step_line("extended", R"(,"due_at":"2026-11-15T10:00:00Z")"));
  EXPECT_EQ(to_json(step_event(EventType::reserved)), step_line("reserved"));
  event = step_event(EventType::reserved);
  event.withdrawn = true;
  EXPECT_EQ(to_json(event), step_line("reserved", R"(,"withdrawn":true)"));
  for (const EventType type :
       {EventType::skipped, EventType::unreachable, EventType::fallback, EventType::rework, EventType::dead_lettered,
        EventType::circuit_opened, EventType::revisited, EventType::handed_back}) {
    EXPECT_EQ(to_json(step_event(type)), step_line(name_of(type)));
  }
}

TEST(EventJson, what_replay_tells_is_marked) {
  Event event = step_event(EventType::progress);
  event.replayed = true;
  EXPECT_EQ(to_json(event), step_line("progress", R"(,"text":"","replayed":true)"));
}

TEST(EventJson, of_the_future) {
  EXPECT_EQ(to_json(event_of(static_cast<EventType>(200))),
            R"({"type":"unknown","type_number":200,"sequence":3,"time":"2026-11-15T10:00:00Z",)"
            R"("run":"019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b"})");
}

TEST(EventJson, the_examples_of_the_page) {  // docs/formats/events.md
  Event event = event_of(EventType::failed);
  event.step = "fetch";
  event.attempt = 1;
  event.actor_type = "tool";
  event.time = ten + 5250ms;
  event.will_retry = true;
  event.failure = Failure{.type = "TimeoutError",
                          .message = "no answer",
                          .failure_class = FailureClass::transient,
                          .kind = FailureKind::timeout};
  EXPECT_EQ(to_json(event), R"({"type":"failed","sequence":3,"time":"2026-11-15T10:00:05.250Z",)"
                            R"("run":"019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b","step":"fetch","item":0,"attempt":1,)"
                            R"("is_retry":false,"actor_type":"tool",)"
                            R"("will_retry":true,"error":{"type":"TimeoutError","message":"no answer",)"
                            R"("class":"transient","kind":"timeout"}})");
  event.type = EventType::retrying;
  event.sequence = 4;
  event.next_attempt = 2;
  event.delay = 733500us;
  event.due = event.time + event.delay;
  event.range = {1s, 0s, 1s};
  EXPECT_EQ(to_json(event),
            R"({"type":"retrying","sequence":4,"time":"2026-11-15T10:00:05.250Z",)"
            R"("run":"019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b","step":"fetch","item":0,"attempt":1,)"
            R"("is_retry":false,"actor_type":"tool","next_attempt":2,)"
            R"("delay_ms":733.5,"due_at":"2026-11-15T10:00:05.983500Z","reason":"transient","nominal_ms":1000,)"
            R"("min_ms":0,"max_ms":1000})");
}

std::string time_in_json(WallTime time) {
  const std::string json = to_json(Event{.time = time});
  const std::size_t begin = json.find(R"("time":")") + 8;
  return json.substr(begin, json.find('"', begin) - begin);
}

TEST(EventJson, times_have_as_many_digits_as_they_need) {
  EXPECT_EQ(time_in_json(ten), "2026-11-15T10:00:00Z");
  EXPECT_EQ(time_in_json(ten + 120ms), "2026-11-15T10:00:00.120Z");
  EXPECT_EQ(time_in_json(ten + 120us), "2026-11-15T10:00:00.000120Z");
  EXPECT_EQ(time_in_json(ten + 123456789ns), "2026-11-15T10:00:00.123456789Z");
  EXPECT_EQ(time_in_json(ten - 1ns), "2026-11-15T09:59:59.999999999Z");
  EXPECT_EQ(time_in_json(WallTime{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(time_in_json(WallTime{-1ns}), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(time_in_json(WallTime::min()), "1677-09-21T00:12:43.145224192Z");
  EXPECT_EQ(time_in_json(WallTime::max()), "2262-04-11T23:47:16.854775807Z");
}

TEST(EventJson, durations_are_never_negative) {
  Event event = step_event(EventType::completed);
  event.total_elapsed = -1ns;
  EXPECT_TRUE(to_json(event).ends_with(R"("total_elapsed_ms":0})"));
  event.total_elapsed = Duration::max();
  EXPECT_TRUE(to_json(event).ends_with(R"("total_elapsed_ms":9223372036854.775807})"));
}

TEST(EventJson, a_signal_without_a_name_is_a_number) {
  Event event = step_event(EventType::failed);
  event.failure = Failure{.signal = 4000};
  EXPECT_NE(to_json(event).find(R"("error":{"signal":4000})"), std::string::npos);
}

TEST(EventJson, bytes_that_are_no_text_become_replacement_characters) {
  Event event = step_event(EventType::completed);
  event.output = std::string("a\xFF\0\"\\\n\x7F\xC3\xA9", 9);
  event.output_size = 9;
  EXPECT_NE(to_json(event).find(R"("output":"a\ufffd\u0000\"\\\n\u007fé")"), std::string::npos) << to_json(event);
}

// ---- whatever users put into them ----------------------------------------

std::string any_bytes() { return *rc::gen::container<std::string>(rc::gen::arbitrary<char>()); }

Event any_event() {
  Event event{.type = static_cast<EventType>(*rc::gen::inRange(0, 30)),
              .sequence = *rc::gen::arbitrary<std::uint64_t>(),
              .time = WallTime{Duration{*rc::gen::arbitrary<std::int64_t>()}},
              .step = any_bytes(),
              .text = any_bytes(),
              .output = any_bytes()};
  event.is_retry = event.will_retry = event.lost = event.floored = *rc::gen::arbitrary<bool>();
  event.delay = Duration{*rc::gen::arbitrary<std::int64_t>()};
  event.total_elapsed = event.range.nominal = event.range.min = event.range.max = event.delay;
  event.due = WallTime{event.delay};
  event.rule = *rc::gen::arbitrary<std::int32_t>();
  event.output_size = *rc::gen::arbitrary<bool>() ? event.output.size() : *rc::gen::arbitrary<std::uint64_t>();
  if (*rc::gen::arbitrary<bool>()) {
    event.failure = Failure{.type = any_bytes(),
                            .message = any_bytes(),
                            .exit_code = *rc::gen::arbitrary<int>(),
                            .signal = *rc::gen::arbitrary<int>(),
                            .retry_after = event.delay,
                            .details = any_bytes()};
  }
  return event;
}

RC_GTEST_PROP(EventJson, is_one_line_of_valid_text_with_each_key_once, ()) {
  const Event event = any_event();
  const std::string json = to_json(event);
  std::string_view rest = json;
  while (!rest.empty()) {
    const text::Character character = text::first_character(rest);
    RC_ASSERT(character.bytes > 0U);
    RC_ASSERT(character.code_point >= 0x20U);
    rest.remove_prefix(character.bytes);
  }
  const auto document = text::read_document(json, "event");  // refuses keys that stand twice
  RC_ASSERT(document.has_value());
  const text::Node& root = document->root();
  RC_ASSERT(root.find("type")->text == name_of(event.type));
  RC_ASSERT(root.find("sequence")->text == std::to_string(event.sequence));
  for (const text::Node::Member& member : root.members) {
    const bool is_duration = member.key->text.ends_with("_ms");
    if (is_duration)
      RC_ASSERT(member.value->type == text::NodeType::integer || member.value->type == text::NodeType::number);
  }
}

}  // namespace
}  // namespace reprise
