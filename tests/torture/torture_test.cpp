// Kills a working program again and again with SIGKILL, lets it finish, and checks from outside that every promise was kept.
//
//   torture_test [--kills N] [--seed S] [--keep FOLDER]
//
// A kill comes up to 60 ms after the first sign of life, or while the program opens its store and recovers, or while it stops in order. Chance
// comes from the seed alone, but the machine has its own: the same seed tries the same things and need not meet the same moment.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <reprise/random.hpp>

#include "support/child.hpp"
#include "support/run_program.hpp"
#include "torture/checker.hpp"

namespace reprise::torture {
namespace {

using namespace std::chrono_literals;
using testing_support::Child;

struct Arguments {
  std::uint64_t kills = 25;
  std::uint64_t seed = 0;
  std::string keep = {};  // the files stay here
};

std::optional<Arguments> read_arguments(int argc, char** argv) {
  Arguments arguments{.seed = std::random_device{}()};
  for (int index = 1; index < argc; index += 2) {
    const std::string_view name = argv[index];
    if (index + 1 == argc) return std::nullopt;
    const std::string_view value = argv[index + 1];
    const auto read = [&](std::uint64_t& number) {
      return std::from_chars(value.data(), value.data() + value.size(), number).ptr == value.data() + value.size();
    };
    if (name == "--keep") {
      arguments.keep = value;
    } else if (!(name == "--kills" && read(arguments.kills)) && !(name == "--seed" && read(arguments.seed))) {
      return std::nullopt;
    }
  }
  return arguments;
}

class Torture {
 public:
  Torture(const Arguments& arguments, const std::string& folder)
      : arguments_{arguments}, store_{folder + "/torture.db"}, log_{folder + "/log"}, accepted_{folder + "/accepted"} {}

  int run() {
    const auto start = std::chrono::steady_clock::now();
    for (life_ = 1; life_ <= arguments_.kills; ++life_) {
      if (!live()) return complain();
    }
    Child last{command("finish")};
    if (const int code = last.join(); code != 0)
      return complain("the last life, which had to finish everything, ended with code " + std::to_string(code));
    const Findings findings = check(store_, log_, accepted_);
    for (const std::string& mistake : findings.mistakes) std::printf("%s\n", mistake.c_str());
    if (findings.more > 0) std::printf("… and %s more\n", std::to_string(findings.more).c_str());
    if (!findings.mistakes.empty()) return complain();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf(
        "%s kills (%s while opening, %s while stopping) in %.1f s: %s runs, %s attempts, %s of them killed, %s "
        "interrupted, %s retries; nothing lost, nothing repeated\n",
        std::to_string(arguments_.kills).c_str(), std::to_string(while_opening_).c_str(),
        std::to_string(while_stopping_).c_str(), seconds.count(), std::to_string(findings.runs).c_str(),
        std::to_string(findings.attempts).c_str(), std::to_string(findings.lost).c_str(),
        std::to_string(findings.interrupted).c_str(), std::to_string(findings.retries).c_str());
    return EXIT_SUCCESS;
  }

 private:
  std::vector<std::string> command(const char* mode) {
    return {REPRISE_TORTURE_WORKER, store_, log_, accepted_, std::to_string(random_.between(0, INT64_MAX)), mode};
  }

  void sleep_up_to(std::chrono::microseconds most) {
    std::this_thread::sleep_for(std::chrono::microseconds{random_.between(0, most.count())});
  }

  // From birth to death.
  bool live() {
    Child child{command("go")};
    if (!child.wait_for("born", 30s)) return misbehaved(child);
    const std::int64_t way = random_.between(0, 99);
    if (way < 25) {
      ++while_opening_;
      sleep_up_to(15ms);
    } else {
      if (!child.wait_for("ready", 60s)) return misbehaved(child);
      sleep_up_to(60ms);
    }
    const bool stops = way >= 85;
    if (stops) {
      ++while_stopping_;
      child.signal(SIGTERM);
      sleep_up_to(20ms);
    }
    child.signal(SIGKILL);
    const int code = child.join();
    if (code == 128 + SIGKILL || (stops && code == 0)) return true;
    std::printf("life %s ended by itself with code %d\n", std::to_string(life_).c_str(), code);
    return false;
  }

  bool misbehaved(Child& child) const {
    child.signal(SIGKILL);
    std::printf("life %s never got going (code %d); it said: %s\n", std::to_string(life_).c_str(), child.join(),
                child.said().c_str());
    return false;
  }

  int complain(const std::string& what = {}) const {
    if (!what.empty()) std::printf("%s\n", what.c_str());
    std::printf("seed %s; again: torture_test --kills %s --seed %s --keep FOLDER\n",
                std::to_string(arguments_.seed).c_str(), std::to_string(arguments_.kills).c_str(),
                std::to_string(arguments_.seed).c_str());
    return EXIT_FAILURE;
  }

  Arguments arguments_;
  std::string store_;
  std::string log_;
  std::string accepted_;
  Random random_{arguments_.seed};
  std::uint64_t life_ = 0;
  std::uint64_t while_opening_ = 0;
  std::uint64_t while_stopping_ = 0;
};

}  // namespace
}  // namespace reprise::torture

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto arguments = reprise::torture::read_arguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "usage: torture_test [--kills N] [--seed S] [--keep FOLDER]\n");
    return 2;
  }
  if (!arguments->keep.empty()) {
    std::filesystem::create_directories(arguments->keep);
    return reprise::torture::Torture{*arguments, arguments->keep}.run();
  }
  const reprise::testing_support::TemporaryDirectory folder;
  return reprise::torture::Torture{*arguments, folder.path()}.run();
}
