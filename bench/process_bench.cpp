// Processes: a durable map of 2,000 × /bin/true, two at a time, beside xargs and GNU parallel, which record nothing.
//
// Everybody works in turn, round after round, and the median of the rounds' ratios counts: what else the machine does disturbs all alike.
// A ratio above 1 means that ours took less time. Also what one more item of a map takes in memory, what `reprise exec` adds to a command, and
// how often the processor time of `true` a start of the command takes.
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "plain_sqlite.hpp"
#include "process_map.hpp"
#include "report.hpp"
#include "timing.hpp"
#include "workplace.hpp"

namespace reprise::bench {
namespace {

constexpr std::uint32_t map_items = 2'000;
constexpr int map_rounds = 7;

double run_xargs(std::uint32_t items) {
  return run_program({"sh", "-c", "seq " + std::to_string(items) + " | xargs -P2 -n1 /bin/true"});
}

double run_parallel(std::uint32_t items) {
  return run_program({"sh", "-c", "seq " + std::to_string(items) + " | parallel -j2 /bin/true 2>/dev/null"});
}

double median_or_nan(std::vector<double> values) {
  for (const double value : values) {
    if (std::isnan(value)) return value;
  }
  return median(std::move(values));
}

void measure_maps(Report& report) {
  std::vector<double> ours;
  std::vector<double> vs_xargs;
  std::vector<double> vs_xargs_command;
  std::vector<double> vs_xargs_in_memory;
  std::vector<double> vs_parallel;
  run_map(map_items / 10);  // warm up
  run_xargs(map_items / 10);
  for (int round = 0; round < map_rounds; ++round) {
    const double xargs = run_xargs(map_items);
    const double map = run_map(map_items);
    const double command = run_map_command(map_items);
    ours.push_back(map);
    vs_xargs.push_back(xargs / map);
    vs_xargs_command.push_back(xargs / command);
    vs_xargs_in_memory.push_back(xargs / run_map(map_items, Keep::in_memory));
    if (round % 2 == 0) vs_parallel.push_back(run_parallel(map_items) / map);  // it takes as long as all the others
  }
  report.add("process_per_s", map_items / median(std::move(ours)), "1/s");
  report.add("process_vs_xargs", median_or_nan(std::move(vs_xargs)), "");
  report.add("process_vs_xargs_command", median_or_nan(std::move(vs_xargs_command)), "");
  report.add("process_vs_parallel", median_or_nan(std::move(vs_parallel)), "");
  // How much of it is the disk: each item waits for one commit, so both figures move with the time of a bare one.
  const Folder folder;
  report.add("process_vs_xargs_in_memory", median_or_nan(std::move(vs_xargs_in_memory)), "");
  report.add("process_commit_p50_us", run_plain_sqlite(folder.path(), 64, 1, 1).commit_p50_s * 1e6, "us");
}

// A million processes would take a quarter of an hour: the map is prepared, its first items run, and the rest is cancelled. What all of
// them take once they have been run is measured with a function instead of a process.
void measure_memory(Report& report) {
  constexpr std::uint32_t items = 1'000'000;
  report.add("map_bytes_per_item", map_bytes_per_item(items, 2'000), "B");
  report.add("map_call_bytes_per_item", call_map_bytes_per_item(items), "B");
}

void measure_exec(Report& report) {
  constexpr int rounds = 101;
  const Folder folder;
  const std::vector<std::string> durable{reprise_program(), "exec",         "--progress", "quiet",
                                         "--store",         folder.store(), "--",         "/bin/true"};
  run_program(durable);  // makes the store
  std::vector<double> with;
  std::vector<double> bare;
  for (int round = 0; round < rounds; ++round) {
    with.push_back(run_program(durable));
    bare.push_back(run_program({"/bin/true"}));
  }
  report.add("exec_overhead_ms", (median_or_nan(std::move(with)) - median_or_nan(std::move(bare))) * 1e3, "ms");
}

void measure_startup(Report& report) {
  constexpr int rounds = 101;
  std::vector<double> ours;
  std::vector<double> bare;
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(processor_time_of({reprise_program(), "version"}));
    bare.push_back(processor_time_of({"/bin/true"}));
  }
  report.add("startup_vs_true", median_or_nan(std::move(ours)) / median_or_nan(std::move(bare)), "");
}

}  // namespace

void run_process_suite(Report& report) {
  const char* const only = std::getenv("REPRISE_BENCH_ONLY");  // such as exec, when one of them is being worked on
  const auto wanted = [&](std::string_view name) { return only == nullptr || name == only; };
  if (wanted("memory")) measure_memory(report);  // first: it forks, and wants no threads
  if (wanted("maps")) measure_maps(report);
  if (wanted("exec")) measure_exec(report);
  if (wanted("startup")) measure_startup(report);
}

}  // namespace reprise::bench
