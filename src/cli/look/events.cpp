// reprise events: what happened, one line each, from the first event on; with --follow until the run has ended.
#include <chrono>
#include <cstdio>
#include <stop_token>

#include <reprise/env.hpp>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

constexpr std::chrono::milliseconds look_again_after{200};

// Who asked for it, and why, if the line has not said so.
std::string asked_words(const Event& event) {
  const std::string by = observe::asker_words(event.request);
  if (by.empty()) return "";
  const bool has_why = event.type == EventType::cancel_requested || event.request->why.empty();
  return "," + by + (has_why ? "" : ": " + event.request->why);
}

// Prints what came after `last`, which it moves on.
std::expected<void, Error> print_new(Looked& looked, const EventsOptions& options, std::uint64_t& last) {
  const observe::PlainPrinter printer = looked.printer();
  return looked.reader->each_event(looked.id, [&](Event&& event) {
    if (event.sequence <= last) return true;
    last = event.sequence;
    if (options.run.json) {
      if (event.failure) looked.reader->add_evidence(looked.id, *event.failure);
      print(to_json(event) + "\n");
    } else if (const std::string line = printer.line(event); !line.empty()) {
      print(line + asked_words(event) + "\n");
    }
    return true;
  });
}

}  // namespace

int events(const EventsOptions& options) {
  std::uint64_t last = 0;
  RunOptions run = options.run;
  while (true) {
    {
      auto looked = look_at(run);  // let go before the wait, or the owner could not shorten its files
      if (!looked) return looked.error();
      run.run = to_string(looked->id);  // @last must not become another one
      if (const auto printed = print_new(*looked, options, last); !printed) return show_error(printed.error());
      if (!options.follow || !is_open(looked->view.info.status)) return exit_done;
    }
    if (std::fflush(stdout) != 0) return exit_usage;
    (void)system_env().wait_until(system_env().now() + look_again_after, std::stop_token{});
  }
}

}  // namespace reprise::cli
