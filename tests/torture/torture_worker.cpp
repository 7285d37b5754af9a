// The program that is killed: submits runs, works on them, and leaves two files that no kill can take back.
//
//   torture_worker STORE LOG ACCEPTED SEED go|finish      finish: submit what may have been on its way, do everything, exit
//
// LOG: "start RUN STEP ITEM ATTEMPT NANOSECONDS" before the work of each attempt and "end …" after it. ACCEPTED: "NUMBER RUN" after
// submit() has returned. Each line is one write() to a file that is only appended to, so the kernel has it whatever happens to us.
// Says "born", "open" and "ready" on standard output as it gets there. SIGTERM asks it to stop in order.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <reprise/engine.hpp>
#include <reprise/random.hpp>

#include "torture/script.hpp"

namespace reprise::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t submitters = 3;      // each has its own numbers: submitter s has those with number % 3 == s
constexpr std::uint64_t open_usually = 200;  // beyond it they wait, so that the end of the test is near
constexpr std::uint64_t open_in_a_flood = 3'000;
constexpr std::uint64_t batch_max = 25;
constexpr std::uint64_t asked_again = 4;    // numbers before the last accepted one that are submitted again
constexpr std::size_t attended_again = 50;  // flows that may have missed their signal or their cancel

[[noreturn]] void give_up(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "torture_worker: %s: %s\n", what.c_str(), why.c_str());
  std::_Exit(3);
}

void say(std::string_view word) {
  const std::string line = std::string{word} + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) give_up("standard output", "gone");
}

class AppendedFile {
 public:
  explicit AppendedFile(const char* path) : file_{::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)} {
    if (file_ < 0) give_up(path, "cannot be opened");
  }
  void add(const std::string& line) const {
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      give_up("log", "cannot be written");
  }

 private:
  int file_;
};

class FileLog final : public Log {
 public:
  explicit FileLog(const char* path) : file_{path} {}
  void began(const Work& work) override { add("start", work); }
  void ended(const Work& work, Verdict verdict) override {
    constexpr std::array names{"ok", "failed", "refused"};
    add(names[static_cast<std::size_t>(verdict)], work);
  }

 private:
  void add(const char* what, const Work& work) const {
    const auto now = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
    file_.add(std::string{what} + " " + to_string(work.run()) + " " + std::string{work.step()} + " " +
              std::to_string(work.item()) + " " + std::to_string(work.attempt()) + " " + std::to_string(now.count()) +
              "\n");
  }
  AppendedFile file_;
};

bool needs_attention(std::uint64_t number) {
  return kind_of(number) == Kind::approval || kind_of(number) == Kind::canceled;
}

struct Accepted {
  std::array<std::uint64_t, submitters> next{0, 1, 2};  // the first number of each submitter that was never accepted
  std::vector<RunId> attended;
};

Accepted read_accepted(const char* path) {
  Accepted accepted;
  std::ifstream file{path};
  std::uint64_t number = 0;
  std::string run;
  while (file >> number >> run) {
    std::uint64_t& next = accepted.next[number % submitters];
    next = std::max(next, number + submitters);
    if (needs_attention(number)) accepted.attended.push_back(run_id_from(run).value());
  }
  return accepted;
}

class Worker {
 public:
  Worker(Engine& engine, const char* accepted, bool finish, std::uint64_t open_max)
      : engine_{engine}, before_{read_accepted(accepted)}, accepted_{accepted}, finish_{finish}, open_max_{open_max} {}

  // Begins with what may have been on its way when the last life ended, and with some that were accepted for sure.
  void submit_from(std::uint64_t lane, Random random) {
    std::uint64_t number = before_.next[lane];
    const std::uint64_t again = std::min((number - lane) / submitters, asked_again);
    number -= again * submitters;
    submit(number, again + batch_max);
    number += (again + batch_max) * submitters;
    while (!finish_) {
      if (engine_.stats().open > open_max_) {
        std::this_thread::sleep_for(500us);
        continue;
      }
      const auto count = static_cast<std::uint64_t>(random.between(0, 3) == 0 ? random.between(2, batch_max) : 1);
      submit(number, count);
      number += count * submitters;
    }
  }

  // It may happen twice: nobody knows whether the time before was recorded.
  void attend_again() {
    const std::size_t first = finish_ ? 0 : before_.attended.size() - std::min(before_.attended.size(), attended_again);
    for (std::size_t index = first; index < before_.attended.size(); ++index) attend_to(before_.attended[index]);
  }

  void wait_for_everything() const {
    const auto until = std::chrono::steady_clock::now() + 30s;
    for (EngineStats stats = engine_.stats(); stats.open > 0 || stats.loading; stats = engine_.stats()) {
      if (std::chrono::steady_clock::now() > until) {
        give_up("not finished after 30 s", std::to_string(stats.open) + " open, " + std::to_string(stats.running) +
                                               " running, " + std::to_string(stats.ready) + " ready, " +
                                               std::to_string(stats.waiting) + " waiting, " +
                                               std::to_string(stats.resident) + " in memory; " + stats.trouble);
      }
      std::this_thread::sleep_for(2ms);
    }
  }

 private:
  void submit(std::uint64_t number, std::uint64_t count) {
    std::vector<Task> tasks;
    for (std::uint64_t index = 0; index < count; ++index) tasks.push_back(task_of(number + index * submitters));
    std::vector<RunId> runs;
    if (count == 1) {
      const auto run = engine_.submit(std::move(tasks.front()));
      if (!run) return refused(run.error());
      runs.push_back(*run);
    } else {
      const auto all = engine_.submit_all(std::move(tasks));
      if (!all) return refused(all.error());
      runs = *all;
    }
    for (std::uint64_t index = 0; index < count; ++index) {
      accepted_.add(std::to_string(number + index * submitters) + " " + to_string(runs[index]) + "\n");
    }
    for (std::uint64_t index = 0; index < count; ++index) {
      if (needs_attention(number + index * submitters)) attend_to(runs[index]);
    }
  }

  // What the flow waits for: a signal, or its end.
  void attend_to(const RunId& run) {
    const auto info = engine_.info(run);
    if (!info) return refused(info.error());
    if (!is_open(info->status)) return;
    const auto done = info->name == name_of(Kind::approval) ? engine_.signal(run, signal_name, info->key + " approved")
                                                            : engine_.cancel(run, "enough");
    if (!done && done.error().code != ErrorCode::invalid) refused(done.error());  // invalid: it has ended since
  }

  static void refused(const Error& error) {
    if (error.code != ErrorCode::stopped) give_up("refused", error.message);
    std::this_thread::sleep_for(1s);  // the program is about to end
  }

  Engine& engine_;
  Accepted before_;
  AppendedFile accepted_;
  bool finish_;
  std::uint64_t open_max_;
};

int run(const char* store, const char* log_path, const char* accepted_path, std::uint64_t seed, bool finish) {
  say("born");
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, nullptr);

  // Little memory and short patience, so that runs leave memory and come back as they do in a large installation.
  Random random{seed};
  EngineSettings settings{.store = std::string{"sqlite:"} + store, .threads = 8, .park_after = 10ms, .grace = 20ms};
  if (random.between(0, 2) == 0) settings.memory = 64U << 10U;
  FileLog log{log_path};
  auto opened = Engine::open(settings);
  if (!opened) give_up("open", opened.error().message);
  Engine& engine = *opened;
  say("open");
  if (const auto ready = set_up(engine, log); !ready) give_up("set_up", ready.error().message);
  say("ready");

  Worker worker{engine, accepted_path, finish, random.between(0, 3) == 0 ? open_in_a_flood : open_usually};
  std::vector<std::thread> threads;
  for (std::uint64_t lane = 0; lane < submitters; ++lane) {
    threads.emplace_back([&worker, lane, random = Random{random.next()}] { worker.submit_from(lane, random); });
  }
  threads.emplace_back([&worker] { worker.attend_again(); });
  if (finish) {
    for (std::thread& thread : threads) thread.join();
    worker.wait_for_everything();
    return engine.stop(10s) ? 0 : 4;
  }
  int number = 0;
  sigwait(&term, &number);
  engine.stop(std::chrono::milliseconds{random.between(0, 12)});
  std::_Exit(0);  // the submitters still run
}

}  // namespace
}  // namespace reprise::torture

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: torture_worker STORE LOG ACCEPTED SEED go|finish\n");
    return 2;
  }
  return reprise::torture::run(argv[1], argv[2], argv[3], std::strtoull(argv[4], nullptr, 10),
                               std::string_view{argv[5]} == "finish");
}
