// Plays a recording and looks at every frame (terminal/replay.hpp has what is looked for):
//
//   replay_session --first-line '^● many ' --never-stays '█|░' map.cast
//
// Prints the lines that are there at the end, scrollback first. Complaints go to standard error, and the exit code is 1 then.
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "terminal/replay.hpp"

namespace reprise::terminal {
namespace {

int play(const std::vector<std::string>& words) {
  Look look{.first_line = "^● "};
  std::string file;
  for (std::size_t at = 0; at < words.size(); ++at) {
    if (words[at] == "--first-line") {
      look.first_line = words.at(++at);
    } else if (words[at] == "--never-stays") {
      look.never_stays = words.at(++at);
    } else {
      file = words[at];
    }
  }
  std::ifstream in{file, std::ios::binary};
  const auto recording = read_recording(in);
  if (!recording) throw std::runtime_error{"this is no recording: " + file};
  const Replay result = replay(*recording, look);
  for (const std::string& line : result.screen.lines()) std::cout << line << '\n';
  std::cerr << in_words(result.complaints);
  return result.complaints.empty() ? 0 : 1;
}

}  // namespace
}  // namespace reprise::terminal

int main(int count, char** words) try {
  return reprise::terminal::play({words + 1, words + count});
} catch (const std::exception& problem) {
  std::cerr << "replay_session: " << problem.what() << '\n';
  return 2;
}
