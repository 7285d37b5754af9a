#include "process_map.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <boost/json/object.hpp>

#include "workplace.hpp"

namespace reprise::bench {
namespace {

using namespace std::chrono_literals;

host::FlowHostSettings settings_in(const Folder& folder) {
  return {.store = folder.store(), .store_folder = std::filesystem::absolute(folder.path()).string()};
}

exec::RunInput input_for(std::uint32_t items) {
  exec::RunInput input;
  input.file = "map.yaml";
  input.text = map_document(items);
  input.directory = std::filesystem::current_path().string();
  input.params = boost::json::object{};
  return input;
}

// ---- memory ----------------------------------------

std::size_t peak_bytes() {
  std::ifstream file{"/proc/self/status"};
  std::string word;
  while (file >> word) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && file >> kilobytes) return kilobytes << 10U;
  }
  return 0;
}

void forget_peak() { std::ofstream{"/proc/self/clear_refs"} << "5"; }

// In a child, so that the memory other workloads left behind is not taken for ours, nor used by us unseen.
template <class F>
double in_child(F&& measure) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const double value = measure();
    const bool told = write(ends[1], &value, sizeof value) == static_cast<ssize_t>(sizeof value);
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (read(ends[0], &value, sizeof value) != static_cast<ssize_t>(sizeof value)) {
    value = std::numeric_limits<double>::quiet_NaN();
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return value;
}

double growth_per_item(std::size_t before, std::uint32_t items) {
  const std::size_t peak = peak_bytes();
  return peak > before ? static_cast<double>(peak - before) / static_cast<double>(items) : 0;
}

}  // namespace

std::string map_document(std::uint32_t items) {
  return "steps:\n  - {id: map, for_each: {command: seq " + std::to_string(items) +
         "}, max_parallel: 2, argv: [/bin/true, \"${item}\"]}\n";
}

double run_map(std::uint32_t items, Keep keep) {
  const Folder folder;
  host::FlowHostSettings settings = settings_in(folder);
  if (keep == Keep::in_memory) settings.store = "memory:";
  const auto start = Clock::now();
  {
    const auto host = expect(host::FlowHost::open(std::move(settings)));
    const RunId run = expect(host->submit(input_for(items)));
    expect(host->go_on(run));
    const RunOutcome outcome = expect(host->engine().wait(run));
    if (outcome.status != RunStatus::succeeded) std::exit(1);
  }
  return seconds_since(start);
}

double run_map_command(std::uint32_t items) {
  const Folder folder;
  const std::string file = folder.path() + "/map.yaml";
  std::ofstream{file} << map_document(items);
  return run_program({reprise_program(), "run", "--progress", "quiet", "--store", folder.store(), file});
}

double map_bytes_per_item(std::uint32_t items, std::uint32_t touched) {
  return in_child([&] {
    const Folder folder;
    const auto host = expect(host::FlowHost::open(settings_in(folder)));
    const RunId small = expect(host->submit(input_for(10)));  // what is needed once is there
    expect(host->go_on(small));
    expect(host->engine().wait(small));
    const std::size_t before = resident_bytes();
    forget_peak();
    const RunId run = expect(host->submit(input_for(items)));
    expect(host->go_on(run));
    while (host->engine().stats().attempts < touched) std::this_thread::sleep_for(1ms);
    expect(host->engine().cancel(run, "enough"));
    expect(host->engine().wait(run));
    return growth_per_item(before, items);
  });
}

double call_map_bytes_per_item(std::uint32_t items) {
  return in_child([&] {
    const Folder folder;
    Engine engine{{.store = folder.store(), .threads = 2}};
    expect(engine.handle("list", [](std::string_view count) {
      std::vector<std::string> numbers;
      for (std::uint32_t number = 1; number <= std::stoul(std::string{count}); ++number)
        numbers.push_back(std::to_string(number));
      return encode_list(numbers);
    }));
    expect(engine.handle("nothing", [] {}));
    expect(engine.flow({.name = "map",
                        .steps = {{.name = "list", .handler = "list"},
                                  {.name = "each", .handler = "nothing", .needs = {"list"}, .for_each = "list"}}}));
    expect(engine.wait(expect(engine.submit({.flow = "map", .input = "10"}))));
    const std::size_t before = resident_bytes();
    forget_peak();
    const RunOutcome outcome =
        expect(engine.wait(expect(engine.submit({.flow = "map", .input = std::to_string(items)}))));
    if (outcome.status != RunStatus::succeeded) std::exit(1);
    return growth_per_item(before, items);
  });
}

namespace {

struct Spent {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double processor_seconds = std::numeric_limits<double>::quiet_NaN();
};

Spent spend(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const auto start = Clock::now();
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  rusage usage{};
  if (problem != 0 || wait4(child, &status, 0, &usage) != child || status != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {.seconds = seconds_since(start), .processor_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

}  // namespace

double run_program(const std::vector<std::string>& argv) { return spend(argv).seconds; }

double processor_time_of(const std::vector<std::string>& argv) { return spend(argv).processor_seconds; }

std::string reprise_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "reprise").string();
}

}  // namespace reprise::bench
