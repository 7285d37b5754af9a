// Makes a picture of a recording: screen_svg RECORDING [--title TEXT] [--window TEXT] [--moments N] >picture.svg
//
// With --text the last screen is printed as text instead: what stands in the picture's <desc>.
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "terminal/svg.hpp"

namespace reprise::terminal {
namespace {

int make_picture(const std::vector<std::string>& words) {
  Picture picture;
  std::string file;
  bool as_text = false;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const auto value = [&] { return words.at(++at); };
    if (word == "--title") {
      picture.title = value();
    } else if (word == "--window") {
      picture.window_title = value();
    } else if (word == "--moments") {
      picture.moments = std::stoull(value());
    } else if (word == "--text") {
      as_text = true;
    } else {
      file = word;
    }
  }
  std::ifstream in{file, std::ios::binary};
  const auto recording = read_recording(in);
  if (!recording || recording->happenings.empty()) throw std::runtime_error{"this is no recording: " + file};
  if (as_text) {
    for (const std::string& row : last_screen(*recording)) std::cout << row << '\n';
  } else {
    std::cout << svg_of(*recording, picture);
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace
}  // namespace reprise::terminal

int main(int count, char** words) try {
  return reprise::terminal::make_picture({words + 1, words + count});
} catch (const std::exception& problem) {
  std::cerr << "screen_svg: " << problem.what() << '\n';
  return 1;
}
