// Facts of a run: what it was submitted with for itself, beside the plan that it shares with others.
//
// They stand in its `submitted` event and in its state as one list of (tag, length, bytes), tags rising. A reader takes the facts it
// knows and keeps the others: they are copied as bytes. So a fact costs nothing where it is absent, and runs that differ in their facts
// alone share one plan.
//
// To add a fact: give it the next free tag here and in docs/formats/events.md, a field in core::RunFacts, and a line each in
// encode_facts() and FactsDecoder::read() (core/facts.cpp). A tag is never used again for something else.
// Thread safety: functions of their arguments; one reader per thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "event/codec.hpp"

namespace reprise::event {

enum class FactTag : std::uint32_t {
  deadline = 1,  // signed: nanoseconds from the run's creation; in place of the plan's
  policy = 2,    // of its only step, in place of the plan's; encode_policy() in core/plan.hpp
  parent = 3,    // of a sub-flow: the id of the run whose work it does (16 bytes), step, item, token of the attempt
  origin = 4,    // the rest is reserved for what comes next
  labels = 5,
  queue = 6,
  tenant = 7,
  cost_limit = 8,
  traceparent = 9,
  types = 10,  // error types that the policy brings: type, parent, type, parent …
};

struct Fact {
  FactTag tag = {};
  std::string_view bytes = {};
};

// Tags must rise: equal facts give equal bytes.
void put_fact(std::string& facts, FactTag tag, std::string_view bytes);

class FactReader {
 public:
  explicit FactReader(std::string_view facts) noexcept : in_{facts} {}

  bool next(Fact& fact) noexcept;  // false: the end, or a mistake
  bool ok() const noexcept { return in_.ok(); }

 private:
  ByteReader in_;
  std::uint32_t last_ = 0;
};

}  // namespace reprise::event
