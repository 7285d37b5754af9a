#include "checks.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include <re2/re2.h>

namespace reprise::house {
namespace {

constexpr std::size_t line_characters_max = 160;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_test(std::string_view path) { return path.ends_with("_test.cpp") || path.ends_with("_bench.cpp"); }

// Cuts a source into code, comments and texts (string and character literals), in order and without gaps.
class Scanner {
 public:
  enum class Part { code, comment, text };
  struct Piece {
    Part part;
    std::string_view text;
  };

  explicit Scanner(std::string_view source) : rest_{source} {}

  std::optional<Piece> next() {
    if (rest_.empty()) return std::nullopt;
    if (rest_.starts_with("//")) return take(Part::comment, std::min(rest_.find('\n'), rest_.size()));
    if (rest_.starts_with("/*")) return take(Part::comment, after(rest_.find("*/", 2), 2));
    if (rest_.front() == '"') return take(Part::text, raw_ ? raw_text_length() : text_length('"'));
    if (rest_.front() == '\'' && !is_word(before_))
      return take(Part::text, text_length('\''));  // else it separates digits
    return take(Part::code, 1);
  }

 private:
  std::size_t after(std::size_t found, std::size_t length) const {
    return found == std::string_view::npos ? rest_.size() : found + length;
  }

  std::size_t text_length(char quote) const {
    for (std::size_t at = 1; at < rest_.size(); ++at) {
      if (rest_[at] == '\\') {
        ++at;
      } else if (rest_[at] == quote || rest_[at] == '\n') {
        return at + 1;
      }
    }
    return rest_.size();
  }

  std::size_t raw_text_length() const {
    const std::size_t open = rest_.find('(');
    if (open == std::string_view::npos) return rest_.size();
    const std::string close = ")" + std::string{rest_.substr(1, open - 1)} + "\"";
    return after(rest_.find(close, open), close.size());
  }

  Piece take(Part part, std::size_t length) {
    const Piece piece{part, rest_.substr(0, length)};
    raw_ = part == Part::code && piece.text == "R";
    before_ = part == Part::code ? piece.text.back() : ' ';
    rest_.remove_prefix(length);
    return piece;
  }

  std::string_view rest_;
  char before_ = ' ';
  bool raw_ = false;
};

std::string keep(std::string_view source, std::initializer_list<Scanner::Part> parts) {
  std::string kept;
  kept.reserve(source.size());
  Scanner scanner{source};
  while (const auto piece = scanner.next()) {
    const bool wanted = std::ranges::find(parts, piece->part) != parts.end();
    for (const char c : piece->text) kept += wanted || c == '\n' ? c : ' ';
  }
  return kept;
}

// Each line of `text` in which the expression is found.
void find_lines(std::string_view text, const RE2& expression, const std::string& what, Findings& findings) {
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    std::string found;
    if (RE2::PartialMatch(lines[index], expression, &found)) findings.push_back({index + 1, what + ": " + found});
  }
}

std::size_t characters_in(std::string_view line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string stem_of(std::string_view path) { return std::filesystem::path{path}.stem().string(); }

// `#include "text/place.hpp"` in src/text/place.cpp, or the public header of the same name: it says what the file is.
bool includes_own_header(std::string_view path, std::string_view first_line) {
  const std::vector<Include> found = includes_of(first_line);
  if (!path.ends_with(".cpp") || found.empty()) return false;
  const std::string folder = "/" + std::filesystem::path{path}.parent_path().generic_string();
  const std::filesystem::path header_folder = std::filesystem::path{found.front().path}.parent_path();
  const bool same_folder =
      !found.front().angled && (header_folder.empty() || folder.ends_with("/" + header_folder.generic_string()));
  const bool is_public = found.front().angled && found.front().path.starts_with("reprise/");
  return stem_of(found.front().path) == stem_of(path) && (same_folder || is_public);
}

// Statements, not sentences. Examples in a header's opening comment are indented and stay.
const RE2& commented_code() {
  static const RE2 expression{R"(^\s*// ?()"
                              R"(#\s*(?:include|if|ifdef|ifndef|define|endif|else|undef|pragma)\b.*)"
                              R"(|(?:if|for|while|switch) ?\(.*\) ?(?:\{|.*;))"
                              R"(|(?:\} ?)?(?:else|do|try) ?\{)"
                              R"(|\}[;,)]*)"
                              R"(|(?:return\b.*|break|continue);)"
                              R"(|[\w:.<>*&\[\]-]+\(.*\);)"
                              R"(|[\w:*&][\w:.<>*&, \[\]-]* ?[-+*/|&]?= ?\S.*;)"
                              R"()\s*$)"};
  return expression;
}

void check_lines(std::string_view source, Findings& findings) {
  const std::vector<std::string> lines = lines_of(source);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const std::string& line = lines[index];
    if (line.find('\t') != std::string::npos) findings.push_back({index + 1, "a tab"});
    if (line.ends_with(' ') || line.ends_with('\r') || line.ends_with('\t'))
      findings.push_back({index + 1, "blanks at the end of the line"});
    if (const std::size_t characters = characters_in(line); characters > line_characters_max) {
      findings.push_back({index + 1, "a line of " + std::to_string(characters) + " characters, at most " +
                                         std::to_string(line_characters_max)});
    }
  }
  if (!source.ends_with('\n'))
    findings.push_back({std::max<std::size_t>(lines.size(), 1), "no line end at the end of the file"});
}

bool is_standard_header(std::string_view path) { return path.find_first_of("/.") == std::string_view::npos; }

bool is_system_header(std::string_view path) {
  constexpr std::array<std::string_view, 11> plain{"arpa/inet.h", "cxxabi.h",  "dlfcn.h", "fcntl.h",  "malloc.h",
                                                   "poll.h",      "pthread.h", "pwd.h",  "sched.h", "signal.h", "unistd.h"};
  return path.starts_with("sys/") || path.starts_with("linux/") || std::ranges::find(plain, path) != plain.end();
}

bool is_test_library(std::string_view path) {
  return path.starts_with("gtest/") || path.starts_with("gmock/") || path.starts_with("rapidcheck/") ||
         path == "rapidcheck.h" || path.starts_with("benchmark/");
}

// Markdown without what only looks like links: code blocks, code spans and comments.
std::string prose_of(std::string_view markdown) {
  std::string prose;
  bool fenced = false;
  for (std::string& line : lines_of(markdown)) {
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const bool fence = line.compare(first, 3, "```") == 0 || line.compare(first, 3, "~~~") == 0;
    if (fence) fenced = !fenced;
    if (fence || fenced) line.clear();
    bool code = false;
    for (char& c : line) {
      if (c == '`') code = !code;
      if (code) c = ' ';
    }
    prose += line + '\n';
  }
  for (std::size_t begin = prose.find("<!--"); begin != std::string::npos; begin = prose.find("<!--", begin)) {
    const std::size_t end = std::min(prose.find("-->", begin), prose.size());
    std::replace_if(
        prose.begin() + static_cast<std::ptrdiff_t>(begin), prose.begin() + static_cast<std::ptrdiff_t>(end),
        [](char c) { return c != '\n'; }, ' ');
  }
  return prose;
}

std::string percent_decoded(std::string_view text) {
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size() && is_hex(text[at + 1]) && is_hex(text[at + 2])) {
      decoded += static_cast<char>(std::stoi(std::string{text.substr(at + 1, 2)}, nullptr, 16));
      at += 2;
    } else {
      decoded += text[at];
    }
  }
  return decoded;
}

// The file a link leads to; "" when it leads out of the tree or into the same page.
std::string local_file(std::string_view target) {
  static const RE2 scheme{R"(^(?:[A-Za-z][A-Za-z0-9+.-]*:|//))"};
  if (RE2::PartialMatch(re2::StringPiece{target.data(), target.size()}, scheme)) return {};
  return percent_decoded(target.substr(0, target.find('#')));
}

}  // namespace

std::string code_of(std::string_view source) { return keep(source, {Scanner::Part::code}); }
std::string comments_of(std::string_view source) { return keep(source, {Scanner::Part::comment}); }

std::vector<Include> includes_of(std::string_view source) {
  static const RE2 expression{R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])"};
  std::vector<Include> includes;
  const std::vector<std::string> lines = lines_of(keep(source, {Scanner::Part::code, Scanner::Part::text}));
  const std::vector<std::string> code = lines_of(code_of(source));
  for (std::size_t index = 0; index < lines.size(); ++index) {
    const bool directive = code[index].find('#') != std::string::npos;  // and not a line inside a text
    std::string opening;
    std::string path;
    if (directive && RE2::PartialMatch(lines[index], expression, &opening, &path))
      includes.push_back({index + 1, path, opening == "<"});
  }
  return includes;
}

std::vector<Room> rooms_in_picture(std::string_view markdown) {
  static const RE2 labelled{R"(^\s*(\w+)\["([\w/]+)/ )"};
  static const RE2 arrow{R"(\s*(\w+)(?:\[.*\])? --> (\w+)\s*)"};
  std::map<std::string, std::string> folder_of;
  std::map<std::string, std::set<std::string>> reaches;
  const std::size_t begin = markdown.find("```mermaid");
  if (begin == std::string_view::npos) return {};
  for (const std::string& line : lines_of(markdown.substr(begin, markdown.find("\n```", begin) - begin))) {
    std::string from;
    std::string to;
    if (RE2::PartialMatch(line, labelled, &from, &to)) folder_of[from] = to;
    if (RE2::FullMatch(line, arrow, &from, &to)) reaches[from].insert(to);
  }
  for (std::size_t round = 0; round < folder_of.size(); ++round) {  // no way is longer than there are rooms
    for (auto& [room, below] : reaches) {
      for (const std::string& next : std::set<std::string>{below})
        below.insert(reaches[next].begin(), reaches[next].end());
    }
  }
  std::vector<Room> rooms;
  for (const auto& [node, folder] : folder_of) {
    Room room{folder, {}};
    for (const std::string& below : reaches[node]) room.may_include.push_back(folder_of[below]);
    rooms.push_back(std::move(room));
  }
  return rooms;
}

const Room* room_of(std::string_view path, std::span<const Room> rooms) {
  const Room* deepest = nullptr;
  for (const Room& room : rooms) {
    const bool inside = path.starts_with(room.name + "/");
    if (inside && (deepest == nullptr || room.name.size() > deepest->name.size())) deepest = &room;
  }
  return deepest;
}

Findings check_rooms(std::string_view path, std::string_view source, std::span<const Room> rooms) {
  const Room* room = room_of(path, rooms);
  if (room == nullptr)
    return {{1, "src/" + std::string{path} + " is in no known room; the picture in docs/architecture.md has them all"}};
  Findings findings;
  for (const Include& include : includes_of(source)) {
    const Room* target = room_of(include.path, rooms);
    if (include.angled) {
      if (target != nullptr) findings.push_back({include.line, "<" + include.path + "> is ours: write it in quotes"});
      continue;
    }
    if (is_test(path) && include.path.starts_with("support/")) continue;  // tools of the tests, in tests/support
    if (target == nullptr) {
      findings.push_back(
          {include.line, "\"" + include.path + "\" is in no known room; includes are written from src/"});
    } else if (target != room && std::ranges::find(room->may_include, target->name) == room->may_include.end()) {
      findings.push_back(
          {include.line, room->name + " must not include " + target->name + ": \"" + include.path + "\""});
    }
  }
  return findings;
}

Findings check_public_includes(std::string_view source) {
  Findings findings;
  for (const Include& include : includes_of(source)) {
    const bool ours = include.angled && include.path.starts_with("reprise/");
    const bool standard = include.angled && is_standard_header(include.path);
    if (!ours && !standard) findings.push_back({include.line, "a public header includes " + include.path});
  }
  return findings;
}

Findings check_time_and_chance(std::string_view source) {
  static const RE2 expression{
      R"(([Cc]lock::now\b|\b(?:u|nano)?sleep\s*\(|\bsleep_(?:for|until)\b|\brandom_device\b|\bs?rand\s*\(|\bmt19937)"
      R"(|\bgettimeofday\b|\bclock_gettime\b|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)))"};
  Findings findings;
  find_lines(code_of(source), expression, "only src/env may ask for time or chance", findings);
  return findings;
}

Findings check_layout(std::string_view path, std::string_view source) {
  static const RE2 leftover{R"(\b(TODO|FIXME|XXX)\b)"};
  Findings findings;
  const std::string_view first_line = source.substr(0, source.find('\n'));
  if (!first_line.starts_with("// ") && !includes_own_header(path, first_line)) {
    findings.push_back({1, "the first line should say what this file is"});
  }
  check_lines(source, findings);
  const std::string comments = comments_of(source);
  find_lines(comments, leftover, "unfinished", findings);
  find_lines(comments, commented_code(), "code in a comment", findings);
  const std::string code = code_of(source);
  if (path.ends_with(".hpp") && code.find("#pragma once") == std::string::npos)
    findings.push_back({1, "#pragma once is missing"});
  return findings;
}

Findings check_libraries(std::string_view path, std::string_view source, std::span<const Room> rooms,
                         std::span<const Library> libraries) {
  Findings findings;
  const Room* room = room_of(path, rooms);
  for (const Include& include : includes_of(source)) {
    const std::string& header = include.path;
    if (!include.angled || header.starts_with("reprise/") || is_standard_header(header) || is_system_header(header))
      continue;
    if (is_test(path) && is_test_library(header)) continue;
    const auto library =
        std::ranges::find_if(libraries, [&](const Library& each) { return header.starts_with(each.begins); });
    if (library == libraries.end()) {
      findings.push_back(
          {include.line, "<" + header + "> is of no known library; they are listed in tests/house/house_test.cpp"});
    } else if (room == nullptr || std::ranges::find(library->rooms, room->name) == library->rooms.end()) {
      findings.push_back({include.line, "<" + header + "> does not belong here"});
    }
  }
  return findings;
}

Findings check_links(std::string_view markdown, const std::function<bool(const std::string&)>& exists) {
  static const RE2 inline_link{R"(\]\(\s*<?([^()<>\s]+(?:\([^()\s]*\))?[^()<>\s]*)>?(?:\s+"[^"]*")?\s*\))"};
  static const RE2 definition{R"(^ {0,3}\[[^\]]+\]:\s*<?([^<>\s]+))"};
  Findings findings;
  const std::vector<std::string> lines = lines_of(prose_of(markdown));
  for (std::size_t index = 0; index < lines.size(); ++index) {
    for (const RE2* form : {&inline_link, &definition}) {
      re2::StringPiece rest{lines[index]};
      std::string target;
      while (RE2::FindAndConsume(&rest, *form, &target)) {
        const std::string file = local_file(target);
        if (!file.empty() && !exists(file))
          findings.push_back({index + 1, "a link to " + file + ", which is not there"});
      }
    }
  }
  return findings;
}

}  // namespace reprise::house
