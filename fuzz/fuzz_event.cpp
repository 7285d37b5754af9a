// Stored events: any bytes are read without harm, and what was understood is written so that it reads the same again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "event/codec.hpp"
#include "event/history.hpp"
#include "require.hpp"

namespace {

using reprise::event::ChunkReader;
using reprise::event::FramePart;
using reprise::event::FrameReader;
using reprise::event::Record;
using reprise::fuzz::require;

constexpr reprise::event::Time base = 1'790'000'000'000'000'000;
constexpr std::size_t event_bytes_min = 4;

bool lies_within(std::string_view whole, std::string_view part) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_words(const Record& record) {
  require(!reprise::name_of(record.type).empty(), "a type has a name, if only unknown");
  require(!reprise::name_of(record.reason).empty(), "a reason has a name");
  require(reprise::name_of(record.status) != "unknown", "a status is one of those that exist");
  require(!reprise::name_of(record.failure_class).empty(), "a class has a name");
}

// Events whose records are written again; beyond `record` the text may say more, which is of the future.
std::string written(std::string_view chunk, std::size_t& count) {
  ChunkReader reader{chunk, 1};
  reprise::event::EventHistory history{{}, {{.name = "first"}, {.name = "second"}}};
  Record record;
  std::string out;
  reprise::event::Time previous = base;
  reprise::event::put_chunk_header(out, previous);
  for (count = 0; reader.next(record); ++count) {
    require(record.sequence == count + 1, "sequences have no gaps");
    require(lies_within(chunk, record.text) && lies_within(chunk, record.payload.bytes), "views look into the chunk");
    check_words(record);
    require(!reprise::to_json(history.add(record)).empty(), "every record becomes an event");
    reprise::event::put_event(out, record, previous);
    previous = record.time;
  }
  require(!reader.next(record), "the end stays the end");
  require(!reader.newer() || !reader.ok(), "what is newer is refused");
  return out;
}

void check_chunk(std::string_view chunk) {
  std::size_t count = 0;
  std::size_t again = 0;
  const std::string once = written(chunk, count);
  require(count * event_bytes_min <= chunk.size(), "events cost bytes");
  require(written(once, again) == once, "what was written reads back the same");
  require(again == count, "as many events are read back");
}

void check_frame(std::string_view frame) {
  FrameReader reader{frame};
  FramePart part;
  while (reader.next(part)) {
    require(lies_within(frame, part.chunk), "a part lies within its frame");
    check_chunk(part.chunk);
  }
}

void check_values(std::string_view bytes) {
  reprise::event::ByteReader in{bytes};
  const reprise::Failure failure = reprise::event::read_failure(in);
  require(in.ok() || failure == reprise::Failure{}, "after a mistake there is nothing");
  std::string out;
  reprise::event::put_failure(out, failure);
  reprise::event::ByteReader again{out};
  require(reprise::event::read_failure(again) == failure && again.ok(), "a failure reads back the same");
  const auto payload = reprise::event::read_payload(in);
  require(in.ok() || payload == reprise::event::PayloadView{}, "after a mistake there is nothing");
  require(lies_within(bytes, payload.bytes), "a payload lies within the bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  check_values(bytes);
  check_frame(bytes);
  check_chunk(bytes);
  std::string with_header;  // so that no byte is spent on finding out how a chunk begins
  reprise::event::put_chunk_header(with_header, base);
  check_chunk(with_header.append(bytes));
  return 0;
}
