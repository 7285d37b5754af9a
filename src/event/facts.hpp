// Facts of a run: what it was submitted with for itself, beside the plan that it shares with others.
//
// They stand in its `submitted` event and in its state as one list of (tag, length, bytes), tags rising. A reader takes the facts it
// knows and keeps the others: they are copied as bytes. So a fact costs nothing where it is absent, and runs that differ in their facts
// alone share one plan.
//
// To add a fact: give it the next free tag here and in docs/formats/events.md. What the core goes by gets a field in core::RunFacts, and a
// line each in encode_facts() and FactsDecoder::read() (core/facts.cpp); what only people go by gets one in RunAttributes (event/attributes.cpp).
// A tag is never used again for something else.
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
  origin = 4,       // text
  labels = 5,       // texts: name, value, name, value … names rising
  queue = 6,        // text
  tenant = 7,       // text
  cost_limit = 8,   // tokens, micros; 0 = no limit of that kind
  traceparent = 9,  // text
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
