// Records as bytes: the stored form of events (docs/formats/events.md).
//
// An event is its length, its type and its fields in a fixed order, numbers as varints, times as the distance from the event before.
// A chunk is the absolute time its distances start from, and events. A frame is a version and the chunks of many runs.
// A reader takes the fields it knows and leaves what follows them alone: fields from the future are kept, because events are copied
// as bytes. A frame or chunk of a newer version is refused.
// Thread safety: functions of their arguments; one reader per thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "event/record.hpp"

namespace reprise::event {

// ---- varints, also for everybody else who stores numbers ----------------------------------------

inline void put_byte(std::string& out, unsigned value) { out.push_back(static_cast<char>(value)); }
void put_varint(std::string& out, std::uint64_t value);
void put_signed(std::string& out, std::int64_t value);     // zigzag
void put_bytes(std::string& out, std::string_view bytes);  // length and bytes

// Reads what the functions above wrote. After a mistake every further read gives zeros, and ok() says so: check it once at the end.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) noexcept : rest_{bytes} {}

  std::uint64_t varint() noexcept;
  std::uint32_t varint32() noexcept;  // a larger number is a mistake
  std::int64_t signed_varint() noexcept;
  std::uint8_t byte() noexcept;
  std::string_view bytes() noexcept;  // length and bytes
  std::string_view take(std::size_t size) noexcept;

  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return rest_.empty(); }
  std::string_view rest() const noexcept { return rest_; }
  void fail() noexcept {
    ok_ = false;
    rest_ = {};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void put_payload(std::string& out, const PayloadView& payload);
PayloadView read_payload(ByteReader& in) noexcept;
void put_failure(std::string& out, const Failure& failure);
Failure read_failure(ByteReader& in);

// ---- events ----------------------------------------

// Appends one event. `previous` is the time of the event before it in the same chunk, or the chunk's base.
void put_event(std::string& out, const Record& record, Time previous);

inline constexpr std::size_t chunk_header_bytes = 9;  // version and base
void put_chunk_header(std::string& out, Time base);

// Walks through a chunk. A Record's views look into the chunk; its failure is valid until the next call.
class ChunkReader {
 public:
  ChunkReader(std::string_view chunk, std::uint64_t first_sequence) noexcept;

  bool next(Record& record);  // false: the end, or a mistake
  // The bytes of the event that next() gave, as they are stored: with whatever a newer version has added to them.
  std::string_view raw() const noexcept { return raw_; }
  bool ok() const noexcept { return ok_; }
  bool newer() const noexcept { return newer_; }  // not ok because a newer version wrote it

 private:
  ByteReader in_;
  std::string_view raw_;
  std::uint64_t sequence_;
  Time time_ = 0;
  Failure failure_;
  bool ok_ = true;
  bool newer_ = false;
};

// ---- frames ----------------------------------------

void put_frame_header(std::string& out);
// `events` are whole events of one run (as put_event wrote them), of which the first has this sequence and follows `previous`.
void put_frame_part(std::string& out, std::uint64_t run, std::uint64_t first_sequence, Time previous,
                    std::string_view events);

struct FramePart {
  std::uint64_t run = 0;
  std::uint64_t first_sequence = 0;
  std::string_view chunk;
};

class FrameReader {
 public:
  explicit FrameReader(std::string_view frame) noexcept;

  bool next(FramePart& part) noexcept;
  bool ok() const noexcept { return ok_; }
  bool newer() const noexcept { return newer_; }

 private:
  ByteReader in_;
  bool ok_ = true;
  bool newer_ = false;
};

}  // namespace reprise::event
