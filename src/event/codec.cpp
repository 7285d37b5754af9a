#include "event/codec.hpp"

#include <cassert>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>

namespace reprise::event {
namespace {

constexpr std::uint8_t frame_version = 1;
constexpr std::uint8_t chunk_version = 2;  // 1: before the stop reasons `lost` and `unclear`
constexpr std::size_t time_bytes = 8;
constexpr std::size_t hash_bytes = 32;
constexpr std::size_t request_id_bytes = 16;
constexpr std::size_t varint_bytes_max = 10;

// The second byte of an event. The lower half means the same for every type, also for types of the future.
constexpr unsigned has_step = 1U << 0U;
constexpr unsigned has_item = 1U << 1U;
constexpr unsigned attempt_shift = 2;    // two bits: attempt 0, 1 or 2, or ...
constexpr unsigned attempt_follows = 3;  // ... any other
constexpr unsigned attempt_bits = 3U << attempt_shift;

// The upper half belongs to the type.
namespace bit {
constexpr unsigned payload = 1U << 4U;  // submitted, prepared, completed, signaled, called, continued, published
constexpr unsigned due = 1U << 5U;      // submitted, retrying
constexpr unsigned text = 1U << 6U;     // submitted, completed; prepared: policies
constexpr unsigned facts = 1U << 7U;    // submitted
constexpr unsigned part = 1U << 4U;     // reopened: not everything
constexpr unsigned resumes = 1U << 5U;
constexpr unsigned how = 1U << 7U;        // interrupted
constexpr unsigned reason = 1U << 4U;     // skipped
constexpr unsigned withdrawn = 1U << 4U;  // reserved
constexpr unsigned request = 1U << 6U;    // what people ask for: cancel_requested, paused, resumed, reopened, signaled, dropped
constexpr unsigned on_request = 1U << 4U;  // revisited
constexpr unsigned only_this = 1U << 7U;   // revisited, reopened
constexpr unsigned begins = 1U << 6U;    // called: an undo of before; `payload` and `due` are as above
constexpr unsigned shielded = 1U << 7U;  // called

constexpr unsigned returns = 1U << 4U;  // handed_over; `due` is as above
constexpr unsigned reopens = 1U << 6U;
constexpr unsigned address = reopens;  // when the id is that of no run, which cannot begin again
constexpr unsigned overdue = 1U << 7U;

constexpr unsigned will_retry = 1U << 4U;  // failed
constexpr unsigned lost = 1U << 5U;
constexpr unsigned precondition = 1U << 6U;
constexpr unsigned failure = 1U << 7U;

constexpr unsigned floored = 1U << 4U;  // retrying
constexpr unsigned range = 1U << 6U;
constexpr unsigned rule = 1U << 7U;
}  // namespace bit

// The first byte of a failure: which of its fields follow.
namespace failure_bit {
constexpr unsigned failure_class = 1U << 0U;
constexpr unsigned kind = 1U << 1U;
constexpr unsigned exit_code = 1U << 2U;
constexpr unsigned http_status = 1U << 3U;
constexpr unsigned signal = 1U << 4U;
constexpr unsigned retry_after = 1U << 5U;
constexpr unsigned has_permanent = 1U << 6U;
constexpr unsigned permanent = 1U << 7U;
}  // namespace failure_bit

constexpr auto last_class = static_cast<std::uint8_t>(FailureClass::canceled);
constexpr auto last_kind = static_cast<std::uint8_t>(FailureKind::invalid_input);
constexpr auto last_reason = static_cast<std::uint8_t>(last_stop_reason);
// `failed`: beside the reason, in its byte.
constexpr unsigned cut_bit = 1U << 7U;
constexpr auto last_status = static_cast<std::uint8_t>(RunStatus::canceled);

constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1U));
}

// Distances between any two numbers: they wrap around, so that every pair survives being stored.
constexpr std::int64_t minus(std::int64_t left, std::int64_t right) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) - static_cast<std::uint64_t>(right));
}
constexpr std::int64_t plus(std::int64_t left, std::int64_t right) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
}

char* write_varint(char* to, std::uint64_t value) noexcept {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80U);
    value >>= 7U;
  }
  *to++ = static_cast<char>(value);
  return to;
}

// One event or failure while it is put together: numbers on the stack, the bytes of users as views, and one append at the end.
class EventBytes {
 public:
  EventBytes() noexcept : end_{begin()} {}
  EventBytes(const EventBytes&) = delete;  // `end_` points into itself
  EventBytes& operator=(const EventBytes&) = delete;

  void byte(unsigned value) noexcept { *end_++ = static_cast<char>(value); }
  void varint(std::uint64_t value) noexcept { end_ = write_varint(end_, value); }
  void signed_varint(std::int64_t value) noexcept { varint(zigzag(value)); }
  // All bytes come after all numbers, in the order in which their lengths were written.
  void bytes(std::string_view bytes) noexcept {
    tails_[tail_count_++] = bytes;
    tail_bytes_ += bytes.size();
  }
  void text(std::string_view text) noexcept {
    varint(text.size());
    bytes(text);
  }
  // With its length after all bytes so far.
  void text_at_the_end(std::string_view text) noexcept {
    numbers_at_the_end({text.size()});
    bytes(text);
  }
  // After all bytes so far.
  void numbers_at_the_end(std::initializer_list<std::uint64_t> numbers) noexcept {
    char* const start = late_ + late_bytes_;
    char* end = start;
    for (const std::uint64_t number : numbers) end = write_varint(end, number);
    late_bytes_ += static_cast<std::size_t>(end - start);
    bytes({start, static_cast<std::size_t>(end - start)});
  }
  // Must be the last field of this one.
  void nested(const EventBytes& inner) noexcept {
    varint(inner.size());
    std::memcpy(end_, inner.begin(), inner.number_bytes());
    end_ += inner.number_bytes();
    for (std::size_t index = 0; index < inner.tail_count_; ++index) {
      std::string_view tail = inner.tails_[index];
      const bool is_late = std::less_equal{}(+inner.late_, tail.data()) && std::less{}(tail.data(), inner.late_ + sizeof inner.late_);
      if (is_late) {  // which is gone when this one is written
        std::memcpy(late_ + late_bytes_, tail.data(), tail.size());
        tail = {late_ + late_bytes_, tail.size()};
        late_bytes_ += tail.size();
      }
      bytes(tail);
    }
  }
  void set_byte(std::size_t at, unsigned value) noexcept { begin()[at] = static_cast<char>(value); }

  // The length, the numbers, the bytes.
  void append_to(std::string& out) {
    char length[varint_bytes_max];
    const auto length_bytes = static_cast<std::size_t>(write_varint(length, size()) - length);
    char* start = begin() - length_bytes;
    std::memcpy(start, length, length_bytes);
    out.append(start, static_cast<std::size_t>(end_ - start));
    for (std::size_t index = 0; index < tail_count_; ++index) out.append(tails_[index]);
  }

 private:
  // The most is `handed_over` with every number at its largest: 27 bytes that all types share, 26 of its own, and 78 of its failure.
  // `failed` follows with 27, 7 and 78, and `retrying` with 27 and 55.
  static constexpr std::size_t number_bytes_max = 160;
  static constexpr std::size_t tails_max = 9;  // a failure has six: type, message, details, numbers, evidence and a number
  static constexpr std::size_t late_numbers_max = 5;  // four of a failure, and a length

  char* begin() noexcept { return buffer_ + varint_bytes_max; }
  const char* begin() const noexcept { return buffer_ + varint_bytes_max; }
  std::size_t number_bytes() const noexcept { return static_cast<std::size_t>(end_ - begin()); }
  std::size_t size() const noexcept { return number_bytes() + tail_bytes_; }

  char buffer_[varint_bytes_max + number_bytes_max];  // room for the length in front; not cleared, for speed
  char* end_;
  char late_[late_numbers_max * varint_bytes_max];  // numbers at the end
  std::size_t late_bytes_ = 0;
  std::size_t tail_count_ = 0;
  std::size_t tail_bytes_ = 0;
  std::string_view tails_[tails_max];
};

// ---- payloads and failures ----------------------------------------

bool is_empty(const PayloadView& payload) noexcept { return payload.size == 0 && !payload.hashed; }

std::uint64_t payload_head(const PayloadView& payload) noexcept {
  assert(payload.bytes.size() == (payload.hashed ? hash_bytes : payload.size));
  return payload.size << 1U | (payload.hashed ? 1U : 0U);
}

PayloadView take_payload(ByteReader& in, std::uint64_t head) noexcept {
  const std::uint64_t size = head >> 1U;
  const bool hashed = (head & 1U) != 0;
  const std::string_view bytes = in.take(hashed ? hash_bytes : size);
  return in.ok() ? PayloadView{bytes, size, hashed} : PayloadView{};
}

// What came after the first version stands behind the rest, where its readers do not look.
void draft_later_fields(EventBytes& draft, const Failure& failure) noexcept {
  const bool has_command = failure.command != 0;
  if (failure.cause == 0 && failure.evidence_size == 0 && failure.evidence.empty() && !has_command) return;
  draft.numbers_at_the_end({failure.cause, failure.evidence_size, failure.evidence.size()});
  draft.bytes(failure.evidence);
  if (has_command) draft.numbers_at_the_end({failure.command});
}

void read_later_fields(ByteReader& in, Failure& failure) {
  if (in.at_end()) return;
  failure.cause = in.varint();
  failure.evidence_size = in.varint();
  failure.evidence = in.bytes();
  if (!in.at_end()) failure.command = in.varint32();
}

void draft_failure(EventBytes& draft, const Failure& failure) noexcept {
  unsigned flags = 0;
  draft.byte(0);
  const auto optional_number = [&](const std::optional<int>& number, unsigned flag) {
    if (!number) return;
    flags |= flag;
    draft.signed_varint(*number);
  };
  if (failure.failure_class) {
    flags |= failure_bit::failure_class;
    draft.byte(static_cast<unsigned>(*failure.failure_class));
  }
  if (failure.kind != FailureKind::none) {
    flags |= failure_bit::kind;
    draft.byte(static_cast<unsigned>(failure.kind));
  }
  optional_number(failure.exit_code, failure_bit::exit_code);
  optional_number(failure.http_status, failure_bit::http_status);
  optional_number(failure.signal, failure_bit::signal);
  if (failure.retry_after) {
    flags |= failure_bit::retry_after;
    draft.signed_varint(failure.retry_after->count());
  }
  if (failure.permanent) flags |= failure_bit::has_permanent | (*failure.permanent ? failure_bit::permanent : 0U);
  draft.set_byte(0, flags);
  draft.text(failure.type);
  draft.text(failure.message);
  draft.text(failure.details);
  draft_later_fields(draft, failure);
}

// A number above `last` is a mistake: a version that adds a word to one of these lists must raise the version of chunks.
template <class Enum>
Enum word_of(ByteReader& in, unsigned value, std::uint8_t last) noexcept {
  if (value > last) in.fail();
  return in.ok() ? static_cast<Enum>(value) : Enum{};
}
template <class Enum>
Enum read_word(ByteReader& in, std::uint8_t last) noexcept {
  return word_of<Enum>(in, in.byte(), last);
}

int read_int(ByteReader& in) noexcept {
  const std::int64_t value = in.signed_varint();
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) in.fail();
  return in.ok() ? static_cast<int>(value) : 0;
}

void read_failure_fields(ByteReader& in, Failure& failure) {
  const unsigned flags = in.byte();
  if ((flags & failure_bit::failure_class) != 0) failure.failure_class = read_word<FailureClass>(in, last_class);
  if ((flags & failure_bit::kind) != 0) failure.kind = read_word<FailureKind>(in, last_kind);
  if ((flags & failure_bit::exit_code) != 0) failure.exit_code = read_int(in);
  if ((flags & failure_bit::http_status) != 0) failure.http_status = read_int(in);
  if ((flags & failure_bit::signal) != 0) failure.signal = read_int(in);
  if ((flags & failure_bit::retry_after) != 0) failure.retry_after = Duration{in.signed_varint()};
  if ((flags & failure_bit::has_permanent) != 0) failure.permanent = (flags & failure_bit::permanent) != 0;
  const std::uint64_t type_bytes = in.varint();
  const std::uint64_t message_bytes = in.varint();
  const std::uint64_t details_bytes = in.varint();
  failure.type = in.take(type_bytes);
  failure.message = in.take(message_bytes);
  failure.details = in.take(details_bytes);
  if (in.ok()) read_later_fields(in, failure);
}

// Behind the rest, where readers of older versions do not look.
unsigned put_request(EventBytes& draft, const RequestView& request) noexcept {
  if (request.id.size() != request_id_bytes) return 0;
  draft.bytes(request.id);
  draft.text_at_the_end(request.by);
  draft.text_at_the_end(request.why);
  return bit::request;
}

void read_request(ByteReader& in, unsigned flags, RequestView& request) noexcept {
  if ((flags & bit::request) == 0) return;
  request.id = in.take(request_id_bytes);
  request.by = in.bytes();
  request.why = in.bytes();
}

// ---- fields of each type: a writer and its reader, side by side ----------------------------------------
// A writer returns the upper half of the flags.

unsigned put_optional_payload(EventBytes& draft, const PayloadView& payload) noexcept {
  if (is_empty(payload)) return 0;
  draft.varint(payload_head(payload));
  draft.bytes(payload.bytes);
  return bit::payload;
}

void read_text_and_payload(ByteReader& in, bool has_text, bool has_payload, Record& record) noexcept {
  const std::uint64_t text_bytes = has_text ? in.varint() : 0;
  const std::uint64_t payload = has_payload ? in.varint() : 0;
  record.text = in.take(text_bytes);
  if (has_payload) record.payload = take_payload(in, payload);
}

unsigned put_submitted(EventBytes& draft, const Record& record) noexcept {
  draft.varint(record.plan);
  draft.byte(record.priority);
  draft.varint(record.items);
  unsigned flags = 0;
  if (record.due != 0) {
    flags |= bit::due;
    draft.signed_varint(minus(record.due, record.time));
  }
  if (!record.text.empty()) {
    flags |= bit::text;
    draft.text(record.text);
  }
  flags |= put_optional_payload(draft, record.payload);
  if (record.facts.empty()) return flags;
  draft.text_at_the_end(record.facts);
  return flags | bit::facts;
}

void read_submitted(ByteReader& in, unsigned flags, Record& record) noexcept {
  record.plan = in.varint32();
  record.priority = in.byte();
  record.items = in.varint32();
  if ((flags & bit::due) != 0) record.due = plus(record.time, in.signed_varint());
  read_text_and_payload(in, (flags & bit::text) != 0, (flags & bit::payload) != 0, record);
  if ((flags & bit::facts) != 0) record.facts = in.bytes();
}

unsigned put_prepared(EventBytes& draft, const Record& record) noexcept {
  draft.varint(record.items);
  const unsigned flags = put_optional_payload(draft, record.payload);
  if (record.policies.empty()) return flags;
  draft.text_at_the_end(record.policies);
  return flags | bit::text;
}

void read_prepared(ByteReader& in, unsigned flags, Record& record) noexcept {
  record.items = in.varint32();
  if ((flags & bit::payload) != 0) record.payload = read_payload(in);
  if ((flags & bit::text) != 0) record.policies = in.bytes();
}

// The length of the text stands after the payload's bytes: readers from before there was a text read the payload and stop.
unsigned put_completed(EventBytes& draft, const Record& record) noexcept {
  const unsigned flags = put_optional_payload(draft, record.payload);
  if (record.text.empty()) return flags;
  draft.text_at_the_end(record.text);
  return flags | bit::text;
}

void read_completed(ByteReader& in, unsigned flags, Record& record) noexcept {
  if ((flags & bit::payload) != 0) record.payload = read_payload(in);
  if ((flags & bit::text) != 0) record.text = in.bytes();
}

// Rules count from -1 (none), which is stored as 0.
std::uint32_t stored_rule(std::int32_t rule) noexcept { return static_cast<std::uint32_t>(rule) + 1U; }
std::int32_t rule_of(std::uint32_t stored) noexcept { return static_cast<std::int32_t>(stored - 1U); }

unsigned put_failed(EventBytes& draft, const Record& record) noexcept {
  unsigned flags = (record.will_retry ? bit::will_retry : 0U) | (record.lost ? bit::lost : 0U) |
                   (record.precondition ? bit::precondition : 0U);
  draft.byte(static_cast<unsigned>(record.reason) | (record.cut ? cut_bit : 0U));
  draft.byte(static_cast<unsigned>(record.failure_class));
  draft.varint(stored_rule(record.rule));
  if (record.failure != nullptr) {
    flags |= bit::failure;
    EventBytes inner;
    draft_failure(inner, *record.failure);
    draft.nested(inner);
  }
  return flags;
}

void read_failed(ByteReader& in, unsigned flags, Record& record, Failure& failure) {
  record.will_retry = (flags & bit::will_retry) != 0;
  record.lost = (flags & bit::lost) != 0;
  record.precondition = (flags & bit::precondition) != 0;
  const unsigned reason = in.byte();
  record.cut = (reason & cut_bit) != 0;
  record.reason = word_of<StopReason>(in, reason & ~cut_bit, last_reason);
  record.failure_class = read_word<FailureClass>(in, last_class);
  record.rule = rule_of(in.varint32());
  if ((flags & bit::failure) == 0) return;
  failure = read_failure(in);
  record.failure = &failure;
}

// What stopped it, if that is known.
unsigned put_interrupted(EventBytes& draft, const Record& record) noexcept {
  if (record.failure == nullptr) return 0;
  EventBytes inner;
  draft_failure(inner, *record.failure);
  draft.nested(inner);
  return bit::how;
}

void read_interrupted(ByteReader& in, unsigned flags, Record& record, Failure& failure) {
  if ((flags & bit::how) == 0) return;
  failure = read_failure(in);
  record.failure = &failure;
}

// In place of 1 + the number of a step: a list of steps and items follows as text.
constexpr std::uint32_t several_steps = UINT32_MAX;

unsigned put_reopened(EventBytes& draft, const Record& record) noexcept {
  unsigned flags = (record.resumes ? bit::resumes : 0U) | (record.only_this ? bit::only_this : 0U);
  if (!record.text.empty()) {
    flags |= bit::part;
    draft.varint(several_steps);
    draft.text(record.text);
  } else if (record.from_step != 0) {
    flags |= bit::part;
    draft.varint(record.from_step);
    draft.varint(record.items);
  }
  return flags | put_request(draft, record.request);
}

void read_reopened(ByteReader& in, unsigned flags, Record& record) noexcept {
  record.resumes = (flags & bit::resumes) != 0;
  record.only_this = (flags & bit::only_this) != 0;
  if ((flags & bit::part) != 0) {
    record.from_step = in.varint32();
    if (record.from_step == several_steps) {
      record.from_step = 0;
      record.text = in.bytes();
    } else {
      record.items = in.varint32();
    }
  }
  read_request(in, flags, record.request);
}

// The time due is the event's time plus the delay unless something moved it; the upper end of the range is mostly the nominal delay.
unsigned put_retrying(EventBytes& draft, const Record& record) noexcept {
  unsigned flags = record.floored ? bit::floored : 0U;
  draft.signed_varint(record.delay);
  if (record.nominal != 0 || record.delay_min != 0 || record.delay_max != 0) {
    flags |= bit::range;
    draft.signed_varint(record.nominal);
    draft.signed_varint(record.delay_min);
    draft.signed_varint(minus(record.delay_max, record.nominal));
  }
  const Time due = plus(record.time, record.delay);
  if (record.due != due) {
    flags |= bit::due;
    draft.signed_varint(minus(record.due, due));
  }
  if (record.rule != -1) {
    flags |= bit::rule;
    draft.varint(stored_rule(record.rule));
  }
  return flags;
}

void read_retrying(ByteReader& in, unsigned flags, Record& record) noexcept {
  record.floored = (flags & bit::floored) != 0;
  record.delay = in.signed_varint();
  if ((flags & bit::range) != 0) {
    record.nominal = in.signed_varint();
    record.delay_min = in.signed_varint();
    record.delay_max = plus(record.nominal, in.signed_varint());
  }
  record.due = plus(record.time, record.delay);
  if ((flags & bit::due) != 0) record.due = plus(record.due, in.signed_varint());
  if ((flags & bit::rule) != 0) record.rule = rule_of(in.varint32());
}

// The other run's id is of a fixed length and counts as numbers, so that the failure is the last.
unsigned put_handed_over(EventBytes& draft, const Record& record) noexcept {
  const bool is_run = record.other != RunId{};
  unsigned flags = (record.returns ? bit::returns : 0U) | (is_run && record.reopens ? bit::reopens : 0U);
  if (record.due != 0) {
    flags |= bit::due;
    draft.signed_varint(minus(record.due, record.time));
  }
  for (const std::uint8_t byte : record.other.bytes) draft.byte(byte);
  EventBytes inner;
  if (record.failure != nullptr) {
    flags |= bit::overdue;
    draft_failure(inner, *record.failure);
    draft.nested(inner);
  }
  if (is_run || record.text.empty()) return flags;
  draft.text_at_the_end(record.text);
  return flags | bit::address;
}

void read_handed_over(ByteReader& in, unsigned flags, Record& record, Failure& failure) {
  record.returns = (flags & bit::returns) != 0;
  if ((flags & bit::due) != 0) record.due = plus(record.time, in.signed_varint());
  const std::string_view id = in.take(record.other.bytes.size());
  if (in.ok()) std::memcpy(record.other.bytes.data(), id.data(), id.size());
  const bool is_run = record.other != RunId{};
  record.reopens = is_run && (flags & bit::reopens) != 0;
  if ((flags & bit::overdue) != 0) {
    failure = read_failure(in);
    record.failure = &failure;
  }
  if (!is_run && (flags & bit::address) != 0) record.text = in.bytes();
}

// Without a path it is an undo that was recorded before, and begins now.
unsigned put_called(EventBytes& draft, const Record& record) noexcept {
  if (record.path.empty()) return bit::begins;
  draft.byte(static_cast<unsigned>(record.operation));
  draft.varint(record.plan);
  unsigned flags = record.shielded ? bit::shielded : 0U;
  if (record.due != 0) {
    flags |= bit::due;
    draft.signed_varint(minus(record.due, record.time));
  }
  draft.text(record.path);
  draft.text(record.text);
  draft.text(record.place);
  return flags | put_optional_payload(draft, record.payload);
}

void read_called(ByteReader& in, unsigned flags, Record& record) noexcept {
  if ((flags & bit::begins) != 0) return;
  record.operation = read_word<OperationKind>(in, last_operation_kind);
  record.plan = in.varint32();
  record.shielded = (flags & bit::shielded) != 0;
  if ((flags & bit::due) != 0) record.due = plus(record.time, in.signed_varint());
  const std::uint64_t path_bytes = in.varint();
  const std::uint64_t text_bytes = in.varint();
  const std::uint64_t place_bytes = in.varint();
  const std::uint64_t payload = (flags & bit::payload) != 0 ? in.varint() : 0;
  record.path = in.take(path_bytes);
  record.text = in.take(text_bytes);
  record.place = in.take(place_bytes);
  if ((flags & bit::payload) != 0) record.payload = take_payload(in, payload);
  if (record.path.empty()) in.fail();
}

unsigned put_continued(EventBytes& draft, const Record& record) noexcept {
  draft.varint(record.items);
  draft.text(record.path);
  return put_optional_payload(draft, record.payload);
}

void read_continued(ByteReader& in, unsigned flags, Record& record) noexcept {
  record.items = in.varint32();
  const std::uint64_t path_bytes = in.varint();
  const std::uint64_t payload = (flags & bit::payload) != 0 ? in.varint() : 0;
  record.path = in.take(path_bytes);
  if ((flags & bit::payload) != 0) record.payload = take_payload(in, payload);
}

unsigned put_fields(EventBytes& draft, const Record& record) noexcept {
  switch (record.type) {
    case EventType::submitted:
      return put_submitted(draft, record);
    case EventType::prepared:
      return put_prepared(draft, record);
    case EventType::completed:
      return put_completed(draft, record);
    case EventType::failed:
      return put_failed(draft, record);
    case EventType::retrying:
      return put_retrying(draft, record);
    case EventType::signaled: {
      draft.text(record.text);
      const unsigned flags = put_optional_payload(draft, record.payload);
      return flags | put_request(draft, record.request);
    }
    case EventType::paused:
    case EventType::resumed:
    case EventType::dropped:
      return put_request(draft, record.request);
    case EventType::progress:
    case EventType::diverged:
      draft.text(record.text);
      return 0;
    case EventType::called:
      return put_called(draft, record);
    case EventType::continued:
      return put_continued(draft, record);
    case EventType::published:
      return put_optional_payload(draft, record.payload);
    case EventType::cancel_requested:
      draft.byte(static_cast<unsigned>(record.reason));
      draft.text(record.text);
      return put_request(draft, record.request);
    case EventType::circuit_opened:
      draft.varint(record.fingerprint);
      if (record.due == 0) return 0;
      draft.signed_varint(minus(record.due, record.time));
      return bit::due;
    case EventType::revisited:
      draft.varint(record.from_step);
      return (record.on_request ? bit::on_request : 0U) | (record.only_this ? bit::only_this : 0U);
    case EventType::skipped:
      if (record.reason == StopReason::none) return 0;
      draft.byte(static_cast<unsigned>(record.reason));
      return bit::reason;
    case EventType::interrupted:
      return put_interrupted(draft, record);
    case EventType::reopened:
      return put_reopened(draft, record);
    case EventType::fallback:
      draft.byte(record.stage);
      return 0;
    case EventType::finishing:
      draft.byte(static_cast<unsigned>(record.status));
      return 0;
    case EventType::handed_over:
      return put_handed_over(draft, record);
    case EventType::extended:
      draft.signed_varint(minus(record.due, record.time));
      return 0;
    case EventType::reserved:
      return record.withdrawn ? bit::withdrawn : 0U;
    case EventType::ended:
      draft.byte(static_cast<unsigned>(record.status));
      draft.byte(static_cast<unsigned>(record.reason));
      return 0;
    default:
      return 0;  // nothing beyond what all types have
  }
}

void read_fields(ByteReader& in, unsigned flags, Record& record, Failure& failure) {
  switch (record.type) {
    case EventType::submitted:
      return read_submitted(in, flags, record);
    case EventType::prepared:
      return read_prepared(in, flags, record);
    case EventType::completed:
      return read_completed(in, flags, record);
    case EventType::failed:
      return read_failed(in, flags, record, failure);
    case EventType::retrying:
      return read_retrying(in, flags, record);
    case EventType::signaled:
      read_text_and_payload(in, true, (flags & bit::payload) != 0, record);
      return read_request(in, flags, record.request);
    case EventType::paused:
    case EventType::resumed:
    case EventType::dropped:
      return read_request(in, flags, record.request);
    case EventType::progress:
    case EventType::diverged:
      record.text = in.bytes();
      return;
    case EventType::called:
      return read_called(in, flags, record);
    case EventType::continued:
      return read_continued(in, flags, record);
    case EventType::published:
      if ((flags & bit::payload) != 0) record.payload = read_payload(in);
      return;
    case EventType::cancel_requested:
      record.reason = read_word<StopReason>(in, last_reason);
      record.text = in.bytes();
      return read_request(in, flags, record.request);
    case EventType::circuit_opened:
      record.fingerprint = in.varint();
      if ((flags & bit::due) != 0) record.due = plus(record.time, in.signed_varint());
      return;
    case EventType::revisited:
      record.from_step = in.varint32();
      record.on_request = (flags & bit::on_request) != 0;
      record.only_this = (flags & bit::only_this) != 0;
      return;
    case EventType::skipped:
      if ((flags & bit::reason) != 0) record.reason = read_word<StopReason>(in, last_reason);
      return;
    case EventType::interrupted:
      return read_interrupted(in, flags, record, failure);
    case EventType::reopened:
      return read_reopened(in, flags, record);
    case EventType::fallback:
      record.stage = in.byte();
      return;
    case EventType::finishing:
      record.status = read_word<RunStatus>(in, last_status);
      return;
    case EventType::handed_over:
      return read_handed_over(in, flags, record, failure);
    case EventType::extended:
      record.due = plus(record.time, in.signed_varint());
      return;
    case EventType::reserved:
      record.withdrawn = (flags & bit::withdrawn) != 0;
      return;
    case EventType::ended:
      record.status = read_word<RunStatus>(in, last_status);
      record.reason = read_word<StopReason>(in, last_reason);
      return;
    default:
      return;
  }
}

// ---- headers ----------------------------------------

// True when a body follows that this version can read. Nothing at all is a frame or chunk without content.
bool read_version(ByteReader& in, std::uint8_t known, bool& ok, bool& newer) noexcept {
  if (in.at_end()) return false;
  const std::uint8_t version = in.byte();
  newer = version > known;
  ok = version > 0 && !newer;
  if (!ok) in.fail();
  return ok;
}

Time read_time(ByteReader& in) noexcept {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char byte : in.take(time_bytes)) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return static_cast<Time>(value);
}

// A version and a time of fixed length, so that their size is known before they are written.
static_assert(chunk_header_bytes == 1 + time_bytes);
char* write_chunk_header(char* to, Time base) noexcept {
  *to++ = static_cast<char>(chunk_version);
  for (std::size_t index = 0; index < time_bytes; ++index)
    *to++ = static_cast<char>(static_cast<std::uint64_t>(base) >> (8U * index));
  return to;
}

}  // namespace

void put_varint(std::string& out, std::uint64_t value) {
  char buffer[varint_bytes_max];
  out.append(buffer, static_cast<std::size_t>(write_varint(buffer, value) - buffer));
}

void put_signed(std::string& out, std::int64_t value) { put_varint(out, zigzag(value)); }

void put_bytes(std::string& out, std::string_view bytes) {
  put_varint(out, bytes.size());
  out.append(bytes);
}

std::uint64_t ByteReader::varint() noexcept {
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (std::size_t index = 0; index < rest_.size() && index < varint_bytes_max; ++index, shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_[index]);
    if (index == varint_bytes_max - 1 && byte > 1) break;  // beyond 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) {
      rest_.remove_prefix(index + 1);
      return value;
    }
  }
  fail();
  return 0;
}

std::uint32_t ByteReader::varint32() noexcept {
  const std::uint64_t value = varint();
  if (value <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(value);
  fail();
  return 0;
}

std::int64_t ByteReader::signed_varint() noexcept { return unzigzag(varint()); }

std::uint8_t ByteReader::byte() noexcept {
  const std::string_view one = take(1);
  return one.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(one.front());
}

std::string_view ByteReader::bytes() noexcept { return take(varint()); }

std::string_view ByteReader::take(std::size_t size) noexcept {
  if (size > rest_.size()) {
    fail();
    return {};
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

void put_payload(std::string& out, const PayloadView& payload) {
  put_varint(out, payload_head(payload));
  out.append(payload.bytes);
}

PayloadView read_payload(ByteReader& in) noexcept { return take_payload(in, in.varint()); }

void put_failure(std::string& out, const Failure& failure) {
  EventBytes draft;
  draft_failure(draft, failure);
  draft.append_to(out);
}

Failure read_failure(ByteReader& in) {
  ByteReader fields{in.bytes()};
  Failure failure;
  read_failure_fields(fields, failure);
  if (!fields.ok()) in.fail();
  return in.ok() ? failure : Failure{};
}

void put_event(std::string& out, const Record& record, Time previous) {
  EventBytes draft;
  const unsigned attempt = record.attempt < attempt_follows ? record.attempt : attempt_follows;
  unsigned flags = attempt << attempt_shift;
  draft.byte(static_cast<unsigned>(record.type));
  draft.byte(0);
  draft.signed_varint(minus(record.time, previous));
  if (record.step != 0) {
    flags |= has_step;
    draft.varint(record.step);
  }
  if (record.item != 0) {
    flags |= has_item;
    draft.varint(record.item);
  }
  if (attempt == attempt_follows) draft.varint(record.attempt);
  flags |= put_fields(draft, record);
  draft.set_byte(1, flags);
  draft.append_to(out);
}

void put_chunk_header(std::string& out, Time base) {
  char header[chunk_header_bytes];
  write_chunk_header(header, base);
  out.append(header, chunk_header_bytes);
}

ChunkReader::ChunkReader(std::string_view chunk, std::uint64_t first_sequence) noexcept
    : in_{chunk}, sequence_{first_sequence} {
  if (!read_version(in_, chunk_version, ok_, newer_)) return;
  time_ = read_time(in_);
  ok_ = in_.ok();
}

bool ChunkReader::next(Record& record) {
  record = Record{};
  if (in_.at_end()) return false;
  const char* const start = in_.rest().data();
  ByteReader event{in_.bytes()};
  raw_ = {start, static_cast<std::size_t>(in_.ok() ? in_.rest().data() - start : 0)};
  const std::uint8_t type = event.byte();
  const unsigned flags = event.byte();
  record.type = static_cast<EventType>(type);
  record.sequence = sequence_++;
  time_ = plus(time_, event.signed_varint());
  record.time = time_;
  if ((flags & has_step) != 0) record.step = event.varint32();
  if ((flags & has_item) != 0) record.item = event.varint32();
  const unsigned attempt = (flags & attempt_bits) >> attempt_shift;
  record.attempt = attempt == attempt_follows ? event.varint32() : attempt;
  read_fields(event, flags, record, failure_);
  if (event.ok() && type != 0) return true;
  ok_ = false;
  in_.fail();
  record = Record{};
  return false;
}

void put_frame_header(std::string& out) { out.push_back(static_cast<char>(frame_version)); }

void put_frame_part(std::string& out, std::uint64_t run, std::uint64_t first_sequence, Time previous,
                    std::string_view events) {
  char head[3 * varint_bytes_max + chunk_header_bytes];
  char* end = write_varint(head, run);
  end = write_varint(end, first_sequence);
  end = write_varint(end, chunk_header_bytes + events.size());
  end = write_chunk_header(end, previous);
  out.append(head, static_cast<std::size_t>(end - head));
  out.append(events);
}

FrameReader::FrameReader(std::string_view frame) noexcept : in_{frame} {
  read_version(in_, frame_version, ok_, newer_);
}

bool FrameReader::next(FramePart& part) noexcept {
  part = FramePart{};
  if (in_.at_end()) return false;
  part.run = in_.varint();
  part.first_sequence = in_.varint();
  part.chunk = in_.bytes();
  ok_ = in_.ok();
  if (!ok_) part = FramePart{};
  return ok_;
}

}  // namespace reprise::event
