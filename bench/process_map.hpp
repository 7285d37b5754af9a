// A durable map over processes, as `reprise run` would do it: the real pipeline from a document to its end.
//
// Thread safety: none; one map at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/flow_host.hpp"

namespace reprise::bench {

// for_each over `seq items`, each `/bin/true` with its item, two at a time.
std::string map_document(std::uint32_t items);

// Opens a store that is new, on the disk or in memory, runs the map to its end and closes it again. Returns the seconds it took.
enum class Keep : std::uint8_t { on_disk, in_memory };
double run_map(std::uint32_t items, Keep keep = Keep::on_disk);

// The same as a child of its own, through the program that stands beside this one.
double run_map_command(std::uint32_t items);

// Bytes by which the peak of memory grew for each item, in a process of its own. `touched` items are run, then the map is cancelled.
double map_bytes_per_item(std::uint32_t items, std::uint32_t touched);
// All items are run, by a function that does nothing.
double call_map_bytes_per_item(std::uint32_t items);

// Runs a program with its output thrown away. Returns the seconds it took; NaN when it cannot be run or fails.
double run_program(const std::vector<std::string>& argv);
// The same; returns the seconds of processor time that the kernel charged it with.
double processor_time_of(const std::vector<std::string>& argv);

std::string reprise_program();

}  // namespace reprise::bench
