// Runs a command in a terminal of its own and writes down what the terminal was sent (terminal/recording.hpp has the format):
//
//   record_session --size 100x30 --out map.cast --when '(\d+)/1000' --at-least 300 --resize 60x15 -- reprise run map.yaml
//
//   --size WxH          the terminal's size
//   --out FILE          the recording
//   --folder DIR        where the command runs
//   --set NAME=VALUE    an environment variable of the command; there are no others but PATH, TERM and LC_ALL
//   --prompt TEXT       is shown first, as if it had been typed
//   --when RE           from here on: do the next thing once a line of the screen matches
//   --at-least N        … and the number in its first group is N or more
//   --resize WxH        give the terminal another size
//   --press KEYS        press keys; ^C is Ctrl-C
//   --signal NAME       send the command a signal, such as KILL
//   --fg                let the stopped command go on
//   --through           show everything in the terminal that this runs in, and follow its size
//   --cpu               say at the end how much time of the processor the command itself took
//
// The exit code is the command's; 124 when the moment for something never came, 125 for bad usage.
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "terminal/session.hpp"

namespace reprise::terminal {
namespace {

struct Options {
  SessionSettings settings = {};
  std::string out = {};
  bool tells_cpu = false;
};

// "^C" is one key, and so is every other character.
std::string keys_of(const std::string& text) {
  std::string keys;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool with_control = text[at] == '^' && at + 1 < text.size();
    keys += with_control ? static_cast<char>(text[++at] & 0x1F) : text[at];
  }
  return keys;
}

int signal_named(const std::string& name) {
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  throw std::invalid_argument{"no signal is called " + name};
}

Size size_named(const std::string& text) {
  const auto size = parse_size(text);
  if (!size) throw std::invalid_argument{"not a size: " + text};
  return *size;
}

Options options_of(const std::vector<std::string>& words) {
  Options options;
  Action next;
  std::size_t at = 0;
  const auto value = [&] {
    if (at == words.size()) throw std::invalid_argument{words[at - 1] + " needs a value"};
    return words[at++];
  };
  const auto then = [&](auto what) {
    next.what = what;
    options.settings.actions.push_back(std::exchange(next, {}));
  };
  while (at < words.size()) {
    const std::string& word = words[at++];
    if (word == "--") {
      options.settings.command.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
      break;
    }
    if (word == "--size")
      options.settings.size = size_named(value());
    else if (word == "--out")
      options.out = value();
    else if (word == "--folder")
      options.settings.folder = value();
    else if (word == "--prompt")
      options.settings.prompt = value();
    else if (word == "--when")
      next.when = value();
    else if (word == "--at-least")
      next.at_least = std::stoull(value());
    else if (word == "--resize")
      then(Resize{size_named(value())});
    else if (word == "--press")
      then(Press{keys_of(value())});
    else if (word == "--signal")
      then(Signal{signal_named(value())});
    else if (word == "--fg")
      then(Foreground{});
    else if (word == "--through")
      options.settings.through = true;
    else if (word == "--cpu")
      options.tells_cpu = true;
    else if (word == "--set") {
      const std::string setting = value();
      const std::size_t equals = setting.find('=');
      if (equals == std::string::npos) throw std::invalid_argument{"not NAME=VALUE: " + setting};
      options.settings.environment.push_back({setting.substr(0, equals), setting.substr(equals + 1)});
    } else
      throw std::invalid_argument{"unknown: " + word};
  }
  if (options.settings.command.empty()) throw std::invalid_argument{"no command: write it after --"};
  return options;
}

int record(const Options& options) {
  const Session session = run_session(options.settings);
  if (!options.out.empty()) {
    std::ofstream file{options.out, std::ios::binary};
    write(file, session.recording);
    if (!file.flush()) throw std::runtime_error{"cannot write " + options.out};
  }
  if (options.tells_cpu)
    std::cout << "elapsed " << session.recording.happenings.back().seconds << " cpu " << session.cpu_seconds << '\n';
  for (const std::string& when : session.not_done)
    std::cerr << "record_session: this was never to be seen: " << when << '\n';
  return session.not_done.empty() ? session.exit_code : 124;
}

}  // namespace
}  // namespace reprise::terminal

int main(int count, char** words) try {
  return reprise::terminal::record(reprise::terminal::options_of({words + 1, words + count}));
} catch (const std::exception& problem) {
  std::cerr << "record_session: " << problem.what() << '\n';
  return 125;
}
