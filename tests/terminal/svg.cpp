#include "terminal/svg.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "support/screen.hpp"

namespace reprise::terminal {
namespace {

using testing_support::Cell;
using testing_support::default_colour;
using testing_support::first_rgb_colour;
using testing_support::Row;
using testing_support::Screen;
using testing_support::Style;

constexpr double font_size = 14;
constexpr double column_width = 8.4;
constexpr double row_height = 20;
constexpr double side = 18;
constexpr double bar_height = 38;
constexpr double bottom = 16;

constexpr std::string_view background = "#0d1117";
constexpr std::string_view foreground = "#d6dde6";

// The sixteen colours on that background; all of them can be read on it.
constexpr std::array<std::string_view, 16> palette{"#6e7681", "#ff7b72", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff",
                                                   "#56d4dd", "#d6dde6", "#8b949e", "#ffa198", "#7ee787", "#f2cc60",
                                                   "#a5d6ff", "#e2c5ff", "#a2eef5", "#ffffff"};

std::string number(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::round(value * 100) / 100).ptr;
  return {digits.data(), end};
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<' || c == '>') {
      out += c == '<' ? "&lt;" : "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string hex_colour(int red, int green, int blue) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (const int part : {red, green, blue})
    text += {digits[static_cast<std::size_t>(part / 16)], digits[static_cast<std::size_t>(part % 16)]};
  return text;
}

// The palette of 256: sixteen named ones, a cube, and greys.
std::string colour_text(std::int32_t colour, std::string_view otherwise) {
  if (colour == default_colour) return std::string{otherwise};
  if (colour >= first_rgb_colour) return hex_colour(colour >> 16 & 0xFF, colour >> 8 & 0xFF, colour & 0xFF);
  if (colour < 16) return std::string{palette[static_cast<std::size_t>(colour)]};
  if (colour >= 232) return hex_colour(8 + (colour - 232) * 10, 8 + (colour - 232) * 10, 8 + (colour - 232) * 10);
  const auto level = [](int step) { return step == 0 ? 0 : 55 + step * 40; };
  return hex_colour(level((colour - 16) / 36), level((colour - 16) / 6 % 6), level((colour - 16) % 6));
}

std::string style_of(const Style& style) {
  std::string text;
  const std::string front =
      colour_text(style.inverse ? style.background : style.foreground, style.inverse ? background : foreground);
  if (front != foreground) text += "fill:" + front + ";";
  if (style.bold) text += "font-weight:bold;";
  if (style.dim) text += "opacity:.62;";
  if (style.italic) text += "font-style:italic;";
  if (style.underlined) text += "text-decoration:underline;";
  return text;
}

// Short names for the styles that occur.
class StyleSheet {
 public:
  std::string class_of(const Style& style) {
    const std::string text = style_of(style);
    if (text.empty()) return {};
    const auto [entry, is_new] = names_.try_emplace(text, "s" + std::to_string(names_.size()));
    return entry->second;
  }
  std::string rules() const {
    std::string text;
    for (const auto& [style, name] : names_) text += "." + name + "{" + style + "}";
    return text;
  }

 private:
  std::map<std::string, std::string> names_;
};

std::string box(const Style& style, std::size_t column, std::size_t columns, double top) {
  const std::int32_t colour = style.inverse ? style.foreground : style.background;
  if (!style.inverse && colour == default_colour) return {};
  return "<rect x=\"" + number(side + static_cast<double>(column) * column_width) + "\" y=\"" + number(top) +
         "\" width=\"" + number(static_cast<double>(columns) * column_width) + "\" height=\"" + number(row_height) +
         "\" fill=\"" + colour_text(colour, foreground) + "\"/>";
}

// One row: for each stretch of one style a text that is held to its columns. Where more than one blank stands, a new stretch begins.
std::string drawn_row(const Row& row, double top, StyleSheet& styles) {
  std::string out;
  const std::vector<Cell>& cells = row.cells;
  const std::size_t used = row.used();
  const auto is_blank = [&](std::size_t column) {
    return !cells[column].is_second && (cells[column].text.empty() || cells[column].text == " ");
  };
  for (std::size_t begin = 0; begin < used;) {
    const Style& style = cells[begin].style;
    const bool shows_blanks = style.inverse || style.background != default_colour || style.underlined;
    if (is_blank(begin) && !shows_blanks) {
      ++begin;
      continue;
    }
    std::string text;
    std::size_t end = begin;
    for (; end < used && cells[end].style == style; ++end) {
      const bool gap = is_blank(end) && (end + 1 == used || is_blank(end + 1));
      if (gap && !shows_blanks) break;
      if (!cells[end].is_second) text += cells[end].text.empty() ? " " : cells[end].text;
    }
    out += box(style, begin, end - begin, top);
    const std::string name = styles.class_of(style);
    out += "<text x=\"" + number(side + static_cast<double>(begin) * column_width) + "\" y=\"" + number(top + 14.5) +
           "\" textLength=\"" + number(static_cast<double>(end - begin) * column_width) + "\"" +
           (name.empty() ? "" : " class=\"" + name + "\"") + ">" + escaped(text) + "</text>";
    begin = end;
  }
  return out;
}

// ---- moments ----

struct Shot {
  double seconds = 0;
  std::vector<Row> rows = {};

  std::size_t used() const {
    std::size_t count = rows.size();
    while (count > 0 && rows[count - 1].used() == 0) --count;
    return count;
  }
  // What is told, without the numbers that run and the signs that turn.
  std::string story() const {
    std::string text;
    for (const Row& row : rows) {
      for (const char c : row.text()) {
        if (static_cast<unsigned char>(c) < 0x80 && (c < '0' || c > '9')) text += c;
      }
      text += '\n';
    }
    return text;
  }
};

Shot shot_of(const Screen& screen, double seconds) {
  Shot shot{.seconds = seconds};
  for (std::size_t number = 0; number < screen.height(); ++number) shot.rows.push_back(screen.row(number));
  return shot;
}

// The screen after each output that left it whole.
std::vector<Shot> shots_of(const Recording& recording) {
  std::vector<Shot> shots;
  Screen screen{recording.size.width, recording.size.height};
  double last_change = 0;
  for (const Happening& happening : recording.happenings) {
    if (happening.kind == Kind::resize) {
      const Size size = parse_size(happening.data).value_or(recording.size);
      screen.resize(size.width, size.height);
    } else if (happening.kind == Kind::output) {
      screen.feed(happening.data);
      last_change = happening.seconds;
    }
    if (!screen.updating()) shots.push_back(shot_of(screen, last_change));
  }
  return shots;
}

// The ones in which something new is told, and of these not more than `moments`, evenly; the first and the last always.
std::vector<Shot> chosen(const std::vector<Shot>& shots, std::size_t moments) {
  if (moments < 2) return {shots.back()};
  std::vector<Shot> telling;
  for (const Shot& shot : shots) {
    if (telling.empty() || shot.story() != telling.back().story()) telling.push_back(shot);
  }
  std::vector<Shot> picked;
  const std::size_t count = std::min(moments, telling.size());
  for (std::size_t index = 0; index < count; ++index) {
    picked.push_back(telling[count == 1 ? telling.size() - 1 : index * (telling.size() - 1) / (count - 1)]);
  }
  return picked;
}

// When each moment begins, and at the end the length of the film. Waits are shortened, so that a film is never dull.
std::vector<double> beginnings(const std::vector<Shot>& shots) {
  constexpr double shortest = 0.45;
  constexpr double longest = 1.1;
  constexpr double at_the_end = 4;
  std::vector<double> times{0};
  for (std::size_t index = 0; index + 1 < shots.size(); ++index) {
    times.push_back(times.back() + std::clamp(shots[index + 1].seconds - shots[index].seconds, shortest, longest));
  }
  times.push_back(times.back() + at_the_end);
  return times;
}

// A row that stays the same for some moments is drawn once and shown for as long.
class Film {
 public:
  Film(const std::vector<Shot>& shots, StyleSheet& styles) : times_{beginnings(shots)}, last_{shots.size()} {
    std::size_t height = 0;
    for (const Shot& shot : shots) height = std::max(height, shot.used());
    for (std::size_t row = 0; row < height; ++row) {
      const double top = bar_height + static_cast<double>(row) * row_height;
      for (std::size_t begin = 0; begin < last_;) {
        const auto drawn_at = [&](const Shot& shot) {
          return row < shot.rows.size() ? drawn_row(shot.rows[row], top, styles) : std::string{};
        };
        const std::string drawn = drawn_at(shots[begin]);
        std::size_t end = begin + 1;
        while (end < last_ && drawn_at(shots[end]) == drawn) ++end;
        if (!drawn.empty()) add(drawn, begin, end);
        begin = end;
      }
    }
    height_ = height;
  }

  std::size_t height() const { return height_; }
  const std::string& drawn() const { return drawn_; }
  std::string rules() const {
    if (spans_.empty()) return {};
    const double length = times_.back();
    std::string text = "g[class]{animation-duration:" + number(length) +
                       "s;animation-timing-function:step-end;animation-iteration-count:infinite}";
    for (const auto& [begin, end] : spans_) {
      const std::string name = name_of(begin, end);
      const auto at = [&](std::size_t moment) { return number(times_[moment] / length * 100) + "%"; };
      const std::string before = begin == 0 ? "" : "0%{visibility:hidden}";
      const std::string after = end == last_ ? "" : at(end) + "{visibility:hidden}";
      text += "." + name + "{animation-name:" + name + (end == last_ ? "" : ";visibility:hidden") + "}";
      text += "@keyframes " + name + "{" + before + at(begin) + "{visibility:visible}" + after +
              (end == last_ ? "to{visibility:visible}" : "") + "}\n";
    }
    return text + "@media(prefers-reduced-motion:reduce){g[class]{animation-name:none}}\n";
  }

 private:
  static std::string name_of(std::size_t begin, std::size_t end) {
    return "m" + std::to_string(begin) + "-" + std::to_string(end);
  }

  void add(const std::string& drawn, std::size_t begin, std::size_t end) {
    if (begin == 0 && end == last_) {
      drawn_ += "<g>" + drawn + "</g>\n";
      return;
    }
    spans_.emplace(begin, end);
    drawn_ += "<g class=\"" + name_of(begin, end) + "\">" + drawn + "</g>\n";
  }

  std::vector<double> times_;
  std::size_t last_;
  std::size_t height_ = 0;
  std::string drawn_;
  std::set<std::pair<std::size_t, std::size_t>> spans_;
};

std::string frame_of_window(double width, double height, const std::string& title) {
  std::string out = "<rect x=\".5\" y=\".5\" width=\"" + number(width - 1) + "\" height=\"" + number(height - 1) +
                    "\" rx=\"10\" fill=\"" + std::string{background} + "\" stroke=\"#3d444d\"/>\n";
  constexpr std::array<std::string_view, 3> buttons{"#ff5f57", "#febc2e", "#28c840"};
  for (std::size_t index = 0; index < buttons.size(); ++index) {
    out += "<circle cx=\"" + number(20 + 18 * static_cast<double>(index)) + "\" cy=\"19\" r=\"5.5\" fill=\"" +
           std::string{buttons[index]} + "\"/>";
  }
  return out + "<text x=\"" + number(width / 2) + "\" y=\"23.5\" text-anchor=\"middle\" class=\"bar\">" +
         escaped(title) + "</text>\n";
}

}  // namespace

std::vector<std::string> last_screen(const Recording& recording) {
  std::vector<std::string> texts;
  const Shot last = shots_of(recording).back();
  for (const Row& row : std::span{last.rows}.first(last.used())) texts.push_back(row.text());
  return texts;
}

std::string svg_of(const Recording& recording, const Picture& picture) {
  StyleSheet styles;
  const std::vector<Shot> shots = chosen(shots_of(recording), picture.moments);
  const Film film{shots, styles};
  const double width = 2 * side + static_cast<double>(recording.size.width) * column_width;
  const double height = bar_height + static_cast<double>(film.height()) * row_height + bottom;

  std::string description;
  for (const std::string& row : last_screen(recording)) description += escaped(row) + "\n";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
         "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\" role=\"img\">\n<title>" +
         escaped(picture.title) + "</title>\n<desc>\n" + description +
         "</desc>\n<style>text{font:" + number(font_size) +
         "px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation "
         "Mono',monospace;white-space:pre;fill:" +
         std::string{foreground} + "}.bar{font-size:12.5px;fill:#8b949e}" + styles.rules() + "\n" + film.rules() +
         "</style>\n" + frame_of_window(width, height, picture.window_title) + film.drawn() + "</svg>\n";
}

}  // namespace reprise::terminal
