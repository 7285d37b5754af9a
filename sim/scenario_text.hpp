// A scenario as a value, and how it is read from text.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/engine.hpp>

#include "runtime/loop.hpp"
#include "sim/machine.hpp"
#include "sim/world.hpp"

namespace reprise::sim {

struct Part {  // what the handler of one step does
  enum class What : std::uint8_t { succeeds, flaky, fails, hangs };
  What what = What::succeeds;
  std::uint32_t failures = 0;  // flaky: so many, then it succeeds
  Failure failure = {};
  std::string output = "done";
  Time takes = 0;
  std::optional<Time> again = {};  // answers a second time
};

struct Command {
  std::size_t line = 0;
  Time when = 0;
  std::vector<std::string> words;
};

struct Expectation {
  std::size_t line = 0;
  std::optional<Time> when = {};  // absent: at the end
  std::vector<std::string> words;
};

struct ScenarioText {
  Program program;          // one handler for each step that calls one
  std::vector<Part> parts;  // by handler
  runtime::LoopSettings settings;
  std::vector<Command> commands;
  std::vector<Expectation> expectations;
};

struct ScenarioMistake {
  std::size_t line = 0;
  std::string what;
};

std::expected<ScenarioText, ScenarioMistake> read_scenario(std::string_view text);
std::optional<Time> read_time(std::string_view text);

}  // namespace reprise::sim
