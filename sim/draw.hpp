// What a seed can say: settings, programs, policies, tasks, and what handlers do. Small numbers, so that rare things happen often.
//
// Thread safety: none needed; everything comes from the world that is given.
#pragma once

#include <cstdint>
#include <string>

#include <reprise/engine.hpp>

#include "runtime/loop.hpp"
#include "sim/faulty_executor.hpp"
#include "sim/machine.hpp"
#include "sim/world.hpp"

namespace reprise::sim {

runtime::LoopSettings draw_settings(World& world);
Program draw_program(World& world);
Policy draw_policy(World& world);
Task draw_task(World& world, const Program& program);
std::string draw_output(World& world);  // small, or over 4 KiB

// How the attempts of one handler go: chances in a thousand.
struct Behaviour {
  std::uint32_t fails = 0;
  std::uint32_t hangs = 0;
  std::uint32_t answers_twice = 0;
  std::uint32_t obeys = 0;
  std::uint32_t reports = 0;
  std::uint32_t hands_over = 0;  // its attempts at steps of documents
  Time slowest = 0;
  std::size_t failures = 1;  // how many different ones it knows
  bool is_limited = false;   // not all of its attempts may run at once
};
Behaviour draw_behaviour(World& world);
// `calm`: it does its best.
Act act(World& world, const Behaviour& behaviour, const exec::Job& job, bool calm);

Finding find_out(World& world, const Behaviour& behaviour, bool calm);

std::uint64_t runtime_number(const RunId& id);
RunId runtime_id(store::Store& store, std::uint64_t number, Time created);

}  // namespace reprise::sim
