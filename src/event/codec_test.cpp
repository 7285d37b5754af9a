// The stored form of events: what is written is read back, and no bytes whatever do harm.
#include "event/codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include <reprise/error.hpp>

namespace reprise::event {
namespace {

constexpr unsigned last_type = static_cast<unsigned>(EventType::circuit_closed);
constexpr Time noon = 1'790'000'000'000'000'000;

// A record with the memory its views look at.
struct Sample {
  Record fields;
  std::string text;
  std::string facts;
  std::string request_id;  // 16 bytes or none
  std::string by;
  std::string why;
  std::string path;
  std::string place;
  std::string payload;
  std::uint64_t payload_size = 0;
  bool hashed = false;
  Failure failure;
  bool has_failure = false;

  Record record() const {
    Record record = fields;
    record.text = text;
    record.facts = facts;
    if (!request_id.empty()) record.request = {request_id, by, why};
    record.path = path;
    record.place = place;
    record.payload = {payload, payload_size, hashed};
    record.failure = has_failure ? &failure : nullptr;
    return record;
  }
};

// Which fields concern which type: the table of docs/formats/events.md once more, written from the other side.
Record kept(const Record& all) {
  Record record{.type = all.type,
                .sequence = all.sequence,
                .time = all.time,
                .step = all.step,
                .item = all.item,
                .attempt = all.attempt};
  switch (all.type) {
    case EventType::submitted:
      record.plan = all.plan;
      record.priority = all.priority;
      record.items = all.items;
      record.due = all.due;
      record.text = all.text;
      record.payload = all.payload;
      record.facts = all.facts;
      break;
    case EventType::prepared:
      record.items = all.items;
      record.payload = all.payload;
      break;
    case EventType::completed:
      record.text = all.text;
      record.payload = all.payload;
      break;
    case EventType::failed:
      record.will_retry = all.will_retry;
      record.lost = all.lost;
      record.precondition = all.precondition;
      record.cut = all.cut;
      record.reason = all.reason;
      record.rule = all.rule;
      record.failure_class = all.failure_class;
      record.failure = all.failure;
      break;
    case EventType::retrying:
      record.floored = all.floored;
      record.rule = all.rule;
      record.delay = all.delay;
      record.nominal = all.nominal;
      record.delay_min = all.delay_min;
      record.delay_max = all.delay_max;
      record.due = all.due;
      break;
    case EventType::circuit_opened:
      record.fingerprint = all.fingerprint;
      record.due = all.due;
      break;
    case EventType::progress:
      record.text = all.text;
      break;
    case EventType::cancel_requested:
      record.reason = all.reason;
      record.text = all.text;
      record.request = all.request;
      break;
    case EventType::paused:
    case EventType::resumed:
    case EventType::dropped:
      record.request = all.request;
      break;
    case EventType::signaled:
      record.text = all.text;
      record.payload = all.payload;
      record.request = all.request;
      break;
    case EventType::revisited:
      record.from_step = all.from_step;
      record.on_request = all.on_request;
      record.only_this = all.only_this;
      break;
    case EventType::interrupted:
      record.failure = all.failure;
      break;
    case EventType::skipped:
      record.reason = all.reason;
      break;
    case EventType::reopened:
      record.resumes = all.resumes;
      record.text = all.text;
      if (all.text.empty()) {
        record.from_step = all.from_step;
        if (all.from_step != 0) record.items = all.items;
      }
      record.only_this = all.only_this;
      record.request = all.request;
      break;
    case EventType::fallback:
      record.stage = all.stage;
      break;
    case EventType::finishing:
      record.status = all.status;
      break;
    case EventType::ended:
      record.status = all.status;
      record.reason = all.reason;
      break;
    case EventType::handed_over:
      record.returns = all.returns;
      record.reopens = all.reopens && all.other != RunId{};
      record.due = all.due;
      record.other = all.other;
      record.failure = all.failure;
      if (all.other == RunId{}) record.text = all.text;
      break;
    case EventType::extended:
      record.due = all.due;
      break;
    case EventType::reserved:
      record.withdrawn = all.withdrawn;
      break;
    case EventType::called:
      if (all.path.empty()) break;  // an undo of before: its step says it all
      record.operation = all.operation;
      record.plan = all.plan;
      record.shielded = all.shielded;
      record.due = all.due;
      record.path = all.path;
      record.text = all.text;
      record.place = all.place;
      record.payload = all.payload;
      break;
    case EventType::continued:
      record.items = all.items;
      record.path = all.path;
      record.payload = all.payload;
      break;
    case EventType::published:
      record.payload = all.payload;
      break;
    case EventType::diverged:
      record.text = all.text;
      break;
    default:
      break;
  }
  return record;
}

bool same(const Record& left, const Record& right) {
  const auto numbers = [](const Record& record) {
    return std::tuple{record.type,    record.sequence,   record.time,      record.step,         record.item,
                      record.attempt, record.will_retry, record.lost,      record.precondition, record.floored,
                      record.stage,   record.reason,     record.status,    record.rule,         record.failure_class,
                      record.delay,   record.nominal,    record.delay_min, record.delay_max,    record.due,
                      record.plan,    record.priority,   record.items,     record.from_step,    record.fingerprint,
                      record.returns, record.reopens,    record.other,     record.cut,          record.resumes,
                      record.withdrawn, record.on_request, record.only_this,
                      record.operation,  record.shielded};
  };
  const bool failures = left.failure == nullptr || right.failure == nullptr ? left.failure == right.failure
                                                                            : *left.failure == *right.failure;
  return numbers(left) == numbers(right) && left.text == right.text && left.payload == right.payload &&
         left.facts == right.facts && left.request == right.request && left.path == right.path &&
         left.place == right.place && failures;
}

// ---- any record ----------------------------------------

// Small ones, both ends of the range, and every length of varint.
template <class Number>
Number any_number() {
  using Limits = std::numeric_limits<Number>;
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return Number{0};
    case 1:
      return static_cast<Number>(*rc::gen::inRange(0, 300));
    case 2:
      return Limits::max();
    case 3:
      return Limits::min();
    default:
      return static_cast<Number>(*rc::gen::arbitrary<std::uint64_t>() >> *rc::gen::inRange(0, 64));
  }
}

bool any_flag() { return *rc::gen::arbitrary<bool>(); }

template <class Enum>
Enum any_word(Enum last) {
  return static_cast<Enum>(*rc::gen::inRange(0, static_cast<int>(last) + 1));
}

std::string any_bytes() {
  const auto size = static_cast<std::size_t>(*rc::gen::element(0, 0, 1, 5, 40, 127, 128, 300));
  return *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>());
}

std::optional<int> any_int() { return any_flag() ? std::optional{any_number<int>()} : std::nullopt; }

Failure any_stored_failure() {
  Failure failure{.type = any_bytes(), .message = any_bytes(), .details = any_bytes()};
  if (any_flag()) failure.failure_class = any_word(FailureClass::canceled);
  if (any_flag()) failure.kind = any_word(FailureKind::invalid_input);
  failure.exit_code = any_int();
  failure.http_status = any_int();
  failure.signal = any_int();
  if (any_flag()) failure.retry_after = Duration{any_number<std::int64_t>()};
  if (any_flag()) failure.permanent = any_flag();
  if (any_flag()) failure.cause = any_number<std::uint64_t>();
  if (any_flag()) failure.evidence = "e" + any_bytes();
  if (any_flag()) failure.evidence_size = any_number<std::uint64_t>();
  if (any_flag()) failure.command = any_number<std::uint32_t>();
  return failure;
}

// Every field has something, also those that do not concern the type.
Sample any_sample() {
  Sample sample;
  sample.fields = {.type = static_cast<EventType>(*rc::gen::inRange(1U, last_type + 1)),
                   .time = any_number<Time>(),
                   .step = any_number<std::uint32_t>(),
                   .item = any_number<std::uint32_t>(),
                   .attempt = any_number<std::uint32_t>(),
                   .will_retry = any_flag(),
                   .lost = any_flag(),
                   .precondition = any_flag(),
                   .cut = any_flag(),
                   .resumes = any_flag(),
                   .on_request = any_flag(),
                   .only_this = any_flag(),
                   .floored = any_flag(),
                   .returns = any_flag(),
                   .reopens = any_flag(),
                   .withdrawn = any_flag(),
                   .reason = any_word(last_stop_reason),
                   .status = any_word(RunStatus::canceled),
                   .rule = any_flag() ? any_number<std::int32_t>() : -1,
                   .failure_class = any_word(FailureClass::canceled),
                   .delay = any_number<std::int64_t>(),
                   .nominal = any_number<std::int64_t>(),
                   .delay_min = any_number<std::int64_t>(),
                   .delay_max = any_number<std::int64_t>(),
                   .due = any_number<Time>(),
                   .plan = any_number<std::uint32_t>(),
                   .priority = any_number<std::uint8_t>(),
                   .items = any_number<std::uint32_t>(),
                   .stage = any_number<std::uint8_t>(),
                   .from_step = any_number<std::uint32_t>() % UINT32_MAX,  // the largest is no step: a list follows
                   .fingerprint = any_number<std::uint64_t>()};
  for (std::uint8_t& byte : sample.fields.other.bytes) byte = any_number<std::uint8_t>();
  sample.text = any_bytes();
  sample.facts = any_bytes();
  if (any_flag()) sample.request_id = std::string(16, *rc::gen::arbitrary<char>());
  sample.by = any_bytes();
  sample.why = any_bytes();
  sample.path = any_bytes();
  sample.place = any_bytes();
  sample.fields.operation = any_word(OperationKind::mark);
  sample.fields.shielded = any_flag();
  sample.hashed = any_flag();
  sample.payload = sample.hashed ? std::string(32, *rc::gen::arbitrary<char>()) : any_bytes();
  sample.payload_size = sample.hashed ? any_number<std::uint64_t>() >> 1U : sample.payload.size();
  sample.has_failure = any_flag();
  sample.failure = any_stored_failure();
  return sample;
}

std::vector<Sample> any_samples() {
  std::vector<Sample> samples(static_cast<std::size_t>(*rc::gen::inRange(0, 12)));
  for (Sample& sample : samples) sample = any_sample();
  return samples;
}

// Everything as large as it can be.
Sample largest(EventType type) {
  Sample sample;
  sample.fields = {.type = type,
                   .time = std::numeric_limits<Time>::min(),
                   .step = UINT32_MAX,
                   .item = UINT32_MAX,
                   .attempt = UINT32_MAX,
                   .will_retry = true,
                   .lost = true,
                   .precondition = true,
                   .floored = true,
                   .reason = last_stop_reason,
                   .status = RunStatus::canceled,
                   .rule = -2,
                   .failure_class = FailureClass::canceled,
                   .delay = INT64_MIN,
                   .nominal = INT64_MIN,
                   .delay_min = INT64_MIN,
                   .delay_max = 0,
                   .due = INT64_MIN / 2,
                   .plan = UINT32_MAX,
                   .priority = UINT8_MAX,
                   .items = UINT32_MAX,
                   .from_step = UINT32_MAX,
                   .fingerprint = UINT64_MAX};
  sample.text = std::string(70'000, 't');
  sample.facts = std::string(70'000, 'f');
  sample.request_id = std::string(16, 'i');
  sample.by = std::string(70'000, 'b');
  sample.why = std::string(70'000, 'y');
  sample.payload = std::string(32, '\xFF');
  sample.payload_size = UINT64_MAX >> 1U;
  sample.hashed = true;
  sample.has_failure = true;
  sample.failure = {.type = std::string(20'000, 'e'),
                    .message = std::string(200'000, 'm'),
                    .failure_class = FailureClass::canceled,
                    .kind = FailureKind::invalid_input,
                    .exit_code = INT32_MIN,
                    .http_status = INT32_MIN,
                    .signal = INT32_MIN,
                    .retry_after = Duration{INT64_MIN},
                    .permanent = true,
                    .details = std::string(20'000, 'd'),
                    .cause = UINT64_MAX,
                    .evidence = std::string(20'000, 'v'),
                    .evidence_size = UINT64_MAX,
                    .command = UINT32_MAX};
  return sample;
}

// ---- writing and reading ----------------------------------------

std::string events_of(const std::vector<Sample>& samples, Time base) {
  std::string events;
  for (const Sample& sample : samples) {
    put_event(events, sample.record(), base);
    base = sample.fields.time;
  }
  return events;
}

std::string chunk_of(const std::string& events, Time base) {
  std::string chunk;
  put_chunk_header(chunk, base);
  return chunk + events;
}

// On the heap and exactly as long as it is, so that a sanitizer sees every read beyond.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : bytes_{std::make_unique<char[]>(bytes.size())}, size_{bytes.size()} {
    bytes.copy(bytes_.get(), size_);
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

bool looks_into(std::string_view whole, std::string_view part) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Reads to the end, checks what holds for any bytes, and says how many events there were.
std::size_t read_all(std::string_view chunk, bool& ok) {
  ChunkReader reader{chunk, 1};
  Record record;
  std::size_t count = 0;
  while (reader.next(record)) {
    ++count;
    RC_ASSERT(record.sequence == count);
    RC_ASSERT(looks_into(chunk, record.text));
    RC_ASSERT(looks_into(chunk, record.facts));
    RC_ASSERT(looks_into(chunk, record.payload.bytes));
    if (record.failure != nullptr) RC_ASSERT(record.failure->message.size() <= chunk.size());
  }
  RC_ASSERT(count * 4 <= chunk.size());  // length, type, flags, time
  RC_ASSERT(!reader.next(record));
  ok = reader.ok();
  return count;
}

void expect_round_trip(const Sample& sample, Time base) {
  const Exact chunk{chunk_of(events_of({sample}, base), base)};
  ChunkReader reader{chunk.view(), 7};
  Record record;
  ASSERT_TRUE(reader.next(record));
  Record expected = kept(sample.record());
  expected.sequence = 7;
  EXPECT_TRUE(same(record, expected)) << name_of(sample.fields.type);
  EXPECT_FALSE(reader.next(record));
  EXPECT_TRUE(reader.ok());
}

RC_GTEST_PROP(EventCodec, what_is_written_is_read_back, ()) {
  const std::vector<Sample> samples = any_samples();
  const Time base = any_number<Time>();
  const auto first = any_number<std::uint64_t>();
  const Exact chunk{chunk_of(events_of(samples, base), base)};
  ChunkReader reader{chunk.view(), first};
  std::uint64_t sequence = first;
  Record record;
  for (const Sample& sample : samples) {
    RC_ASSERT(reader.next(record));
    Record expected = kept(sample.record());
    expected.sequence = sequence++;
    RC_ASSERT(same(record, expected));
  }
  RC_ASSERT(!reader.next(record));
  RC_ASSERT(reader.ok());
  RC_ASSERT(!reader.newer());
}

TEST(EventCodec, every_type_keeps_its_fields_at_their_largest) {
  for (unsigned type = 1; type <= last_type; ++type) {
    expect_round_trip(largest(static_cast<EventType>(type)), 0);
    expect_round_trip(largest(static_cast<EventType>(type)), std::numeric_limits<Time>::max());
  }
}

TEST(EventCodec, every_type_keeps_its_fields_when_they_say_nothing) {
  for (unsigned type = 1; type <= last_type; ++type) {
    Sample sample;
    sample.fields.type = static_cast<EventType>(type);
    expect_round_trip(sample, 0);
    expect_round_trip(sample, noon);
  }
}

RC_GTEST_PROP(EventCodec, frames_carry_the_events_of_many_runs, ()) {
  std::vector<std::pair<FramePart, std::string>> parts(static_cast<std::size_t>(*rc::gen::inRange(0, 6)));
  std::string frame;
  put_frame_header(frame);
  for (auto& [part, chunk] : parts) {
    part.run = any_number<std::uint64_t>();
    part.first_sequence = any_number<std::uint64_t>();
    const Time previous = any_number<Time>();
    const std::string events = events_of(any_samples(), previous);
    put_frame_part(frame, part.run, part.first_sequence, previous, events);
    chunk = chunk_of(events, previous);
  }
  const Exact exact{frame};
  FrameReader reader{exact.view()};
  FramePart read;
  for (const auto& [part, chunk] : parts) {
    RC_ASSERT(reader.next(read));
    RC_ASSERT(read.run == part.run);
    RC_ASSERT(read.first_sequence == part.first_sequence);
    RC_ASSERT(read.chunk == chunk);
  }
  RC_ASSERT(!reader.next(read));
  RC_ASSERT(reader.ok());
}

RC_GTEST_PROP(EventCodec, payloads_and_failures_stand_alone_too, ()) {
  const Sample sample = any_sample();
  std::string out;
  put_payload(out, sample.record().payload);
  put_failure(out, sample.failure);
  put_bytes(out, sample.text);
  put_signed(out, sample.fields.delay);
  put_varint(out, sample.fields.fingerprint);
  const Exact exact{out};
  ByteReader in{exact.view()};
  RC_ASSERT(read_payload(in) == sample.record().payload);
  RC_ASSERT(read_failure(in) == sample.failure);
  RC_ASSERT(in.bytes() == sample.text);
  RC_ASSERT(in.signed_varint() == sample.fields.delay);
  RC_ASSERT(in.varint() == sample.fields.fingerprint);
  RC_ASSERT(in.ok());
  RC_ASSERT(in.at_end());
}

// ---- the bytes themselves: they are in the stores of users ----------------------------------------

std::string bytes_of(const Record& record) {
  std::string out;
  put_event(out, record, noon);
  return out;
}

TEST(EventCodec, the_stored_form_does_not_change) {
  const Failure failure{.type = "E", .message = "no", .exit_code = 3, .retry_after = Duration{1}, .permanent = false};
  EXPECT_EQ(bytes_of({.type = EventType::started, .time = noon + 1, .attempt = 1}), "\x03\x03\x04\x02");
  EXPECT_EQ(bytes_of({.type = EventType::started, .time = noon - 1, .step = 2, .item = 300, .attempt = 3}),
            "\x07\x03\x0F\x01\x02\xAC\x02\x03");
  EXPECT_EQ(bytes_of({.type = EventType::completed, .time = noon + 64, .attempt = 2, .payload = {"ok", 2, false}}),
            "\x07\x04\x18\x80\x01\x04ok");
  // The text stands last with its length, so that a reader who knows of none still finds the payload.
  EXPECT_EQ(
      bytes_of(
          {.type = EventType::completed, .time = noon + 64, .attempt = 2, .text = "all", .payload = {"ok", 2, false}}),
      "\x0B\x04\x58\x80\x01\x04ok\x03\x61ll");
  EXPECT_EQ(bytes_of({.type = EventType::submitted,
                      .time = noon + 1,
                      .due = noon + 3,
                      .plan = 1,
                      .priority = 5,
                      .items = 2,
                      .text = "key",
                      .payload = {"in", 2, false}}),
            "\x0E\x01\x70\x02\x01\x05\x02\x04\x03\x04keyin");
  // Facts stand last with their length, so that a reader who knows of none still finds the rest.
  EXPECT_EQ(bytes_of({.type = EventType::submitted,
                      .time = noon + 1,
                      .plan = 1,
                      .priority = 5,
                      .items = 2,
                      .payload = {"in", 2, false},
                      .facts = "\x01\x01\x04"}),
            "\x0D\x01\x90\x02\x01\x05\x02\x04in\x03\x01\x01\x04");
  EXPECT_EQ(bytes_of({.type = EventType::prepared, .time = noon + 1, .items = 2}),
            std::string("\x04\x02\x00\x02\x02", 5));
  EXPECT_EQ(bytes_of({.type = EventType::failed,
                      .time = noon + 1,
                      .attempt = 1,
                      .will_retry = true,
                      .failure_class = FailureClass::test_failure,
                      .failure = &failure}),
            std::string("\x10\x05\x94\x02\x00\x04\x00\x09\x64\x06\x02\x01\x02\x00"
                        "Eno",
                        17));
  EXPECT_EQ(bytes_of({.type = EventType::retrying,
                      .time = noon + 1,
                      .attempt = 2,
                      .floored = true,
                      .rule = 0,
                      .delay = 5,
                      .nominal = 7,
                      .delay_min = 1,
                      .delay_max = 7,
                      .due = noon + 8}),
            std::string("\x09\x06\xF8\x02\x0A\x0E\x02\x00\x04\x01", 10));
  EXPECT_EQ(
      bytes_of({.type = EventType::cancel_requested, .time = noon + 1, .reason = StopReason::deadline, .text = "late"}),
      std::string("\x09\x10\x00\x02\x07\x04late", 10));
  EXPECT_EQ(bytes_of({.type = EventType::ended, .time = noon + 1, .status = RunStatus::failed}),
            std::string("\x05\x16\x00\x02\x03\x00", 6));
  EXPECT_EQ(chunk_of("", 0x0102030405060708), "\x02\x08\x07\x06\x05\x04\x03\x02\x01");
}

TEST(EventCodec, what_is_common_costs_little) {  // the example of docs/formats/events.md
  EXPECT_EQ(bytes_of({.type = EventType::started, .time = noon + 1'500'000, .attempt = 1}),
            "\x06\x03\x04\xC0\x8D\xB7\x01");
  EXPECT_EQ(bytes_of({.type = EventType::completed, .time = noon + 1'500'000, .attempt = 1}).size(), 7U);
}

// ---- damage ----------------------------------------

RC_GTEST_PROP(EventCodec, a_chunk_may_end_anywhere, ()) {
  const std::vector<Sample> samples = any_samples();
  std::string whole = chunk_of("", noon);
  std::vector<std::size_t> ends{0, whole.size()};
  Time previous = noon;
  for (const Sample& sample : samples) {
    put_event(whole, sample.record(), previous);
    previous = sample.fields.time;
    ends.push_back(whole.size());
  }
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Exact cut{std::string_view{whole}.substr(0, size)};
    const auto complete = static_cast<std::size_t>(std::ranges::upper_bound(ends, size) - ends.begin());
    bool ok = false;
    RC_ASSERT(read_all(cut.view(), ok) == (complete > 2 ? complete - 2 : 0));
    RC_ASSERT(ok == std::ranges::binary_search(ends, size));
  }
}

// Every single event, cut short but with a length that fits: its fields themselves must notice.
RC_GTEST_PROP(EventCodec, an_event_without_all_its_fields_is_a_mistake, ()) {
  const Sample sample = any_sample();
  std::string event;
  put_event(event, sample.record(), noon);
  ByteReader in{event};
  const std::string_view body = in.bytes();
  for (std::size_t size = 0; size < body.size(); ++size) {
    std::string chunk = chunk_of("", noon);
    put_bytes(chunk, body.substr(0, size));
    const Exact exact{chunk};
    bool ok = true;
    RC_ASSERT(read_all(exact.view(), ok) == 0U);
    RC_ASSERT(!ok);
  }
}

RC_GTEST_PROP(EventCodec, damaged_bytes_do_no_harm, ()) {
  std::string chunk = chunk_of(events_of(any_samples(), noon), noon);
  for (int count = *rc::gen::inRange(1, 8); count > 0; --count) {
    const auto at = *rc::gen::inRange<std::size_t>(0, chunk.size());
    chunk[at] = *rc::gen::arbitrary<char>();
  }
  const Exact exact{chunk};
  bool ok = false;
  read_all(exact.view(), ok);
}

RC_GTEST_PROP(EventCodec, any_bytes_do_no_harm, ()) {
  const Exact exact{"\x01" + any_bytes()};
  bool ok = false;
  read_all(exact.view(), ok);
  FrameReader frame{exact.view()};
  FramePart part;
  std::size_t parts = 0;
  while (frame.next(part)) {
    RC_ASSERT(looks_into(exact.view(), part.chunk));
    read_all(part.chunk, ok);
    ++parts;
  }
  RC_ASSERT(parts * 3 <= exact.view().size());
  ByteReader in{exact.view()};
  read_payload(in);
  read_failure(in);
}

RC_GTEST_PROP(EventCodec, a_frame_may_end_anywhere, ()) {
  std::string frame;
  put_frame_header(frame);
  std::vector<std::size_t> ends{0, frame.size()};
  for (int count = *rc::gen::inRange(0, 4); count > 0; --count) {
    put_frame_part(frame, any_number<std::uint64_t>(), any_number<std::uint64_t>(), noon, any_bytes());
    ends.push_back(frame.size());
  }
  for (std::size_t size = 0; size <= frame.size(); ++size) {
    const Exact cut{std::string_view{frame}.substr(0, size)};
    FrameReader reader{cut.view()};
    FramePart part;
    while (reader.next(part)) RC_ASSERT(looks_into(cut.view(), part.chunk));
    RC_ASSERT(reader.ok() == std::ranges::binary_search(ends, size));
  }
}

bool reads(std::string_view event) {
  const Exact chunk{chunk_of(std::string{event}, noon)};
  ChunkReader reader{chunk.view(), 1};
  Record record;
  return reader.next(record) && reader.ok();
}

TEST(EventCodec, words_it_does_not_know_are_mistakes) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(reads("\x05\x16\x00\x02\x04\x0B"sv)) << "the last status and the last reason";
  EXPECT_FALSE(reads("\x05\x16\x00\x02\x05\x0B"sv)) << "a status";
  EXPECT_FALSE(reads("\x05\x16\x00\x02\x04\x0C"sv)) << "a reason";
  EXPECT_TRUE(reads("\x06\x05\x00\x02\x00\x05\x00"sv));
  EXPECT_FALSE(reads("\x06\x05\x00\x02\x00\x06\x00"sv)) << "a class";
  EXPECT_TRUE(reads("\x0B\x05\x80\x02\x00\x05\x00\x04\x00\x00\x00\x00"sv));
  EXPECT_FALSE(reads("\x0C\x05\x80\x02\x00\x05\x00\x05\x02\x09\x00\x00\x00"sv)) << "a kind";
  EXPECT_FALSE(reads("\x0C\x05\x80\x02\x00\x05\x00\x05\x01\x06\x00\x00\x00"sv)) << "a failure's class";
}

TEST(EventCodec, zeros_are_not_events) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(reads("\x00"sv)) << "no type";
  EXPECT_FALSE(reads("\x03\x00\x00\x00"sv)) << "type 0 was never given";
}

// ---- the future ----------------------------------------

RC_GTEST_PROP(EventCodec, fields_of_the_future_are_left_alone, ()) {
  const std::vector<Sample> samples = any_samples();
  std::string chunk = chunk_of("", noon);
  Time previous = noon;
  for (const Sample& sample : samples) {
    std::string event;
    put_event(event, sample.record(), previous);
    previous = sample.fields.time;
    ByteReader in{event};
    put_bytes(chunk, std::string{in.bytes()} + any_bytes());
  }
  const Exact exact{chunk};
  ChunkReader reader{exact.view(), 1};
  Record record;
  std::uint64_t sequence = 1;
  for (const Sample& sample : samples) {
    RC_ASSERT(reader.next(record));
    Record expected = kept(sample.record());
    expected.sequence = sequence++;
    RC_ASSERT(same(record, expected));
  }
  RC_ASSERT(reader.ok());
}

RC_GTEST_PROP(EventCodec, a_failure_may_have_fields_of_the_future, ()) {
  Failure failure = any_stored_failure();
  failure.cause = failure.command = 1;  // who writes later fields writes those before them, too
  std::string today;
  put_failure(today, failure);
  ByteReader body{today};
  std::string tomorrow;
  put_bytes(tomorrow, std::string{body.bytes()} + any_bytes());
  put_varint(tomorrow, 17);
  ByteReader in{tomorrow};
  RC_ASSERT(read_failure(in) == failure);
  RC_ASSERT(in.varint() == 17U);
  RC_ASSERT(in.ok());
}

RC_GTEST_PROP(EventCodec, types_of_the_future_are_surfaced_and_passed, ()) {
  const auto type = *rc::gen::inRange(last_type + 1, 256U);
  std::string future;
  put_event(future, {.type = static_cast<EventType>(type), .time = noon + 5, .step = 3, .attempt = 2}, noon);
  ByteReader body{future};
  std::string chunk = chunk_of("", noon);
  put_bytes(chunk, std::string{body.bytes()} + any_bytes());
  put_event(chunk, {.type = EventType::started, .time = noon + 9, .attempt = 1}, noon + 5);
  ChunkReader reader{chunk, 4};
  Record record;
  RC_ASSERT(reader.next(record));
  RC_ASSERT(
      same(record, {.type = static_cast<EventType>(type), .sequence = 4, .time = noon + 5, .step = 3, .attempt = 2}));
  RC_ASSERT(name_of(record.type) == "unknown");
  RC_ASSERT(reader.next(record));
  RC_ASSERT(same(record, {.type = EventType::started, .sequence = 5, .time = noon + 9, .attempt = 1}));
  RC_ASSERT(!reader.next(record));
  RC_ASSERT(reader.ok());
}

TEST(EventCodec, newer_versions_are_refused_and_said_to_be_newer) {
  std::string chunk = chunk_of(events_of({Sample{}}, noon), noon);
  std::string frame;
  put_frame_header(frame);
  put_frame_part(frame, 1, 1, noon, "");
  Record record;
  FramePart part;
  for (unsigned version = 0; version < 256; ++version) {
    chunk[0] = static_cast<char>(version);
    frame[0] = static_cast<char>(version);
    ChunkReader chunk_reader{chunk, 1};
    FrameReader frame_reader{frame};
    EXPECT_EQ(chunk_reader.next(record), version == 1 || version == 2);
    EXPECT_EQ(frame_reader.next(part), version == 1);
    EXPECT_EQ(chunk_reader.ok(), version == 1 || version == 2);
    EXPECT_EQ(frame_reader.ok(), version == 1);
    EXPECT_EQ(chunk_reader.newer(), version > 2);
    EXPECT_EQ(frame_reader.newer(), version > 1);
  }
}

TEST(EventCodec, nothing_is_a_chunk_and_a_frame_without_content) {
  Record record;
  FramePart part;
  ChunkReader chunk{"", 1};
  FrameReader frame{""};
  EXPECT_FALSE(chunk.next(record));
  EXPECT_FALSE(frame.next(part));
  EXPECT_TRUE(chunk.ok());
  EXPECT_TRUE(frame.ok());
}

// ---- numbers ----------------------------------------

TEST(EventBytes, a_number_takes_seven_bits_a_byte) {
  const auto written = [](std::uint64_t value) {
    std::string out;
    put_varint(out, value);
    return out;
  };
  EXPECT_EQ(written(127), "\x7F");
  EXPECT_EQ(written(128), "\x80\x01");
  EXPECT_EQ(written(UINT64_MAX), "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
  std::string out;
  put_signed(out, -1);
  put_signed(out, 1);
  EXPECT_EQ(out, "\x01\x02");
}

TEST(EventBytes, numbers_that_are_too_large_are_mistakes) {
  ByteReader beyond_64{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"};
  EXPECT_EQ(beyond_64.varint(), 0U);
  EXPECT_FALSE(beyond_64.ok());
  ByteReader endless{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"};
  EXPECT_EQ(endless.varint(), 0U);
  EXPECT_FALSE(endless.ok());
  ByteReader largest_32{"\xFF\xFF\xFF\xFF\x0F"};
  EXPECT_EQ(largest_32.varint32(), UINT32_MAX);
  EXPECT_TRUE(largest_32.ok());
  ByteReader beyond_32{"\x80\x80\x80\x80\x10"};
  EXPECT_EQ(beyond_32.varint32(), 0U);
  EXPECT_FALSE(beyond_32.ok());
}

TEST(EventBytes, after_a_mistake_there_are_only_zeros) {
  ByteReader in{"\x05xyz\x07\x07"};
  EXPECT_EQ(in.take(100), "");
  EXPECT_FALSE(in.ok());
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(in.varint(), 0U);
  EXPECT_EQ(in.varint32(), 0U);
  EXPECT_EQ(in.signed_varint(), 0);
  EXPECT_EQ(in.byte(), 0U);
  EXPECT_EQ(in.bytes(), "");
  EXPECT_EQ(in.take(0), "");
  EXPECT_EQ(read_payload(in), PayloadView{});
  EXPECT_EQ(read_failure(in), Failure{});
  EXPECT_FALSE(in.ok());
}

// ---- names ----------------------------------------

TEST(EventNames, every_type_has_its_own) {
  using enum EventType;
  constexpr std::pair<EventType, std::string_view> names[] = {{submitted, "submitted"},
                                                              {prepared, "prepared"},
                                                              {started, "started"},
                                                              {completed, "completed"},
                                                              {failed, "failed"},
                                                              {retrying, "retrying"},
                                                              {recovered, "recovered"},
                                                              {interrupted, "interrupted"},
                                                              {skipped, "skipped"},
                                                              {unreachable, "unreachable"},
                                                              {fallback, "fallback"},
                                                              {rework, "rework"},
                                                              {dead_lettered, "dead_lettered"},
                                                              {circuit_opened, "circuit_opened"},
                                                              {progress, "progress"},
                                                              {cancel_requested, "cancel_requested"},
                                                              {paused, "paused"},
                                                              {resumed, "resumed"},
                                                              {signaled, "signaled"},
                                                              {revisited, "revisited"},
                                                              {reopened, "reopened"},
                                                              {ended, "ended"},
                                                              {dropped, "dropped"},
                                                              {finishing, "finishing"},
                                                              {handed_over, "handed_over"},
                                                              {handed_back, "handed_back"},
                                                              {reserved, "reserved"},
                                                              {called, "called"},
                                                              {continued, "continued"},
                                                              {diverged, "diverged"},
                                                              {published, "published"},
                                                              {dismissed, "dismissed"},
                                                              {extended, "extended"},
                                                              {circuit_half_opened, "circuit_half_opened"},
                                                              {circuit_closed, "circuit_closed"}};
  for (const auto& [type, name] : names) {
    EXPECT_EQ(name_of(type), name);
    EXPECT_EQ(event_type_named(name), type);
  }
  for (const unsigned number : {0U, last_type + 1, 255U}) {
    EXPECT_EQ(name_of(static_cast<EventType>(number)), "unknown");
  }
  for (const char* name : {"unknown", "", "Started"}) EXPECT_EQ(event_type_named(name), std::nullopt);
}

TEST(EventNames, of_statuses_and_errors) {
  EXPECT_EQ(name_of(RunStatus::running), "running");
  EXPECT_EQ(name_of(RunStatus::canceled), "canceled");
  EXPECT_EQ(name_of(static_cast<RunStatus>(9)), "unknown");
  EXPECT_EQ(name_of(ErrorCode::invalid), "invalid");
  EXPECT_EQ(name_of(ErrorCode::store_unavailable), "store_unavailable");
  EXPECT_EQ(name_of(static_cast<ErrorCode>(99)), "unknown");
}

TEST(EventNames, a_run_is_a_uuid) {
  constexpr std::string_view text = "019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b";
  const auto id = run_id_from(text);
  ASSERT_TRUE(id);
  EXPECT_EQ(id->bytes[0], 0x01);
  EXPECT_EQ(id->bytes[15], 0x5B);
  EXPECT_EQ(to_string(*id), text);
  EXPECT_EQ(run_id_from("019A86B2-7C3D-7E4F-8A5B-0C1D2E3F4A5B"), id);
  for (const char* bad : {"", "019a86b2", "019a86b27c3d7e4f8a5b0c1d2e3f4a5b", "019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5",
                          "019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b0", "019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5g",
                          "019a86b2-7c3d-7e4f-8a5b00c1d2e3f4a5b", "019a86b207c3d-7e4f-8a5b-0c1d2e3f4a5b"}) {
    EXPECT_EQ(run_id_from(bad), std::nullopt) << bad;
  }
}

RC_GTEST_PROP(EventNames, any_run_has_a_name_that_finds_it, ()) {
  RunId id;
  for (std::uint8_t& byte : id.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  RC_ASSERT(run_id_from(to_string(id)) == id);
}

}  // namespace
}  // namespace reprise::event
