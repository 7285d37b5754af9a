// The schema of events: everything that is written fits it, and it names every field that is written.
#include "event/event_schema.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <reprise/event.hpp>

#include "json/json.hpp"
#include "json/json_schema.hpp"

namespace reprise {
namespace {

json::Json parsed(const std::string& text) {
  auto value = json::parse_json(text);
  EXPECT_TRUE(value.has_value()) << text;
  return value ? *value : json::Json{};
}

// With everything set that any type could tell.
Event full_event(EventType type, bool will_retry) {
  Event event{.type = type, .sequence = 7, .run = RunId{.bytes = {1}}, .step = "fetch", .item = 3, .attempt = 2};
  event.time = event.due = WallTime{std::chrono::nanoseconds{1'800'000'000'123'000'000}};
  event.will_retry = will_retry;
  event.is_retry = event.lost = event.precondition = event.floored = true;
  event.failure = Failure{.type = "TimeoutError",
                          .message = "no answer",
                          .failure_class = FailureClass::transient,
                          .kind = FailureKind::timeout,
                          .exit_code = 1,
                          .http_status = 503,
                          .signal = 9,
                          .retry_after = std::chrono::milliseconds{1500},
                          .permanent = false,
                          .details = "more"};
  event.reason = StopReason::attempts;
  event.rule = 0;
  event.next_attempt = 3;
  event.total_attempts = 3;
  event.items = 5;
  event.status = RunStatus::failed;
  event.text = type == EventType::fallback ? "fallback" : "words";
  event.output = "small";
  event.output_size = event.output.size();
  return event;
}

class EventSchema : public testing::Test {
 protected:
  EventSchema() {
    auto compiled = json::JsonSchema::compile(parsed(event::event_schema()));
    EXPECT_TRUE(compiled.has_value()) << compiled.error();
    schema = *std::move(compiled);
  }
  std::string mistakes_in(const json::Json& event) const {
    std::string all;
    for (const std::string& mistake : schema.mistakes_in(event)) all += mistake + "\n";
    return all;
  }
  json::JsonSchema schema;
};

TEST_F(EventSchema, everything_that_is_written_fits_and_is_named) {
  const json::Json whole = parsed(event::event_schema());
  const auto& properties = whole.at("properties").as_object();
  const auto& error = whole.at("definitions").at("error").at("properties").as_object();
  std::size_t types = 0;
  for (std::uint8_t number = 1; event_type_named(name_of(static_cast<EventType>(number))); ++number, ++types) {
    for (const bool will_retry : {true, false}) {
      for (const bool is_large : {true, false}) {
        Event event = full_event(static_cast<EventType>(number), will_retry);
        if (is_large) event.output = std::string(64, 'a');
        if (is_large) event.output_size = 5000;
        const json::Json value = parsed(to_json(event));
        EXPECT_EQ(mistakes_in(value), "") << to_json(event);
        for (const auto& field : value.as_object()) {
          EXPECT_TRUE(properties.contains(field.key())) << field.key();
          if (field.key() != "error" && field.key() != "original_error") continue;
          for (const auto& part : field.value().as_object()) EXPECT_TRUE(error.contains(part.key())) << part.key();
        }
      }
    }
  }
  EXPECT_GE(types, 24U);
}

TEST_F(EventSchema, what_is_missing_or_wrong_is_found) {
  const std::string good = to_json(full_event(EventType::retrying, true));
  for (const char* const field : {"type", "sequence", "time", "run", "delay_ms", "next_attempt", "max_ms"}) {
    json::Json value = parsed(good);
    value.as_object().erase(field);
    EXPECT_NE(mistakes_in(value), "") << field;
  }
  json::Json value = parsed(good);
  value.as_object()["time"] = "yesterday";
  EXPECT_NE(mistakes_in(value), "");
}

TEST_F(EventSchema, newer_types_and_fields_are_no_mistake) {
  json::Json value = parsed(to_json(full_event(EventType::ended, false)));
  value.as_object()["added_later"] = 1;
  EXPECT_EQ(mistakes_in(value), "");
  EXPECT_EQ(mistakes_in(parsed(to_json(full_event(static_cast<EventType>(200), false)))), "");
}

}  // namespace
}  // namespace reprise
