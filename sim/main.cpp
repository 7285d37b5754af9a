// reprise-sim: runs histories, one for each seed, and says how to see a broken promise again.
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sim/history.hpp"
#include "sim/scenario.hpp"

namespace {

using reprise::sim::HistoryReport;

struct Options {
  std::uint64_t seeds = 100;
  std::uint64_t first = 1;
  bool verbose = false;
  bool go_on = false;  // count the violations instead of stopping at the first
  std::vector<std::string> scenarios;
};

constexpr const char* usage =
    "usage: reprise-sim [--seeds N] [--first K] [--verbose] [--go-on]\n"
    "       reprise-sim --scenario FILE...\n";

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto [end, mistake] = std::from_chars(text.data(), text.data() + text.size(), number);
  return mistake == std::errc{} && end == text.data() + text.size();
}

bool read_options(int count, char** words, Options& options) {
  for (int index = 1; index < count; ++index) {
    const std::string_view word = words[index];
    const bool has_next = index + 1 < count;
    if (word == "--verbose") {
      options.verbose = true;
    } else if (word == "--go-on") {
      options.go_on = true;
    } else if (word == "--scenario" && has_next) {
      while (index + 1 < count) options.scenarios.emplace_back(words[++index]);
    } else if (word == "--seeds" && has_next) {
      if (!read_number(words[++index], options.seeds)) return false;
    } else if (word == "--first" && has_next) {
      if (!read_number(words[++index], options.first)) return false;
    } else {
      return false;
    }
  }
  return true;
}

void print_violation(std::uint64_t seed, const HistoryReport& report) {
  std::printf("seed %llu: %s\n%s  (%s)\nreplay: reprise-sim --first %llu --seeds 1 --verbose\n",
              static_cast<unsigned long long>(seed), report.what.c_str(), report.events.c_str(),
              report.settings.c_str(), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
}

// A crash of the product is a finding like any other: it must name its seed. Written beforehand, because a signal handler may only write.
char crash_report[160];
std::size_t crash_report_size = 0;

void on_crash(int signal) {
  [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, crash_report, crash_report_size);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void prepare_for_crash(std::uint64_t seed) {
  const int size =
      std::snprintf(crash_report, sizeof crash_report,
                    "seed %llu: the program crashed\nreplay: reprise-sim --first %llu --seeds 1 --verbose\n",
                    static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
  crash_report_size = size > 0 ? static_cast<std::size_t>(size) : 0;
}

int run_seeds(const Options& options) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, on_crash);
  HistoryReport total;
  std::uint64_t broken = 0;
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    prepare_for_crash(seed);
    const HistoryReport report = reprise::sim::run_history(seed);
    total.runs += report.runs;
    total.events_recorded += report.events_recorded;
    total.crashes += report.crashes;
    total.commits += report.commits;
    total.attempts_lost += report.attempts_lost;
    if (options.verbose) {
      std::printf("seed %llu: %llu runs, %llu events, %llu commits, %llu crashes (%s)\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(report.runs),
                  static_cast<unsigned long long>(report.events_recorded),
                  static_cast<unsigned long long>(report.commits), static_cast<unsigned long long>(report.crashes),
                  report.settings.c_str());
    }
    if (report.ok) continue;
    ++broken;
    print_violation(seed, report);
    if (!options.go_on) return 1;
  }
  std::printf(
      "%llu histories: %llu runs, %llu events, %llu commits, %llu crashes, %llu attempts lost; %llu with a broken "
      "promise\n",
      static_cast<unsigned long long>(options.seeds), static_cast<unsigned long long>(total.runs),
      static_cast<unsigned long long>(total.events_recorded), static_cast<unsigned long long>(total.commits),
      static_cast<unsigned long long>(total.crashes), static_cast<unsigned long long>(total.attempts_lost),
      static_cast<unsigned long long>(broken));
  return broken == 0 ? 0 : 1;
}

int run_scenarios(const std::vector<std::string>& files) {
  bool ok = true;
  for (const std::string& file : files) {
    std::ifstream in{file};
    if (!in) {
      std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
      return 2;
    }
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    const auto mistakes = reprise::sim::run_scenario(file, text);
    for (const std::string& mistake : mistakes) std::printf("%s\n", mistake.c_str());
    if (mistakes.empty()) std::printf("%s: ok\n", file.c_str());
    ok = ok && mistakes.empty();
  }
  return ok ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read_options(count, words, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  return options.scenarios.empty() ? run_seeds(options) : run_scenarios(options.scenarios);
}
