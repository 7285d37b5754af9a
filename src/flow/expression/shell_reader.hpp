// Where in a text for sh the next character would stand: between words, inside quotes, in a comment, in a here-document …
//
// It follows the text as every sh reads it. What shells read differently, or what would need a whole parser, ends in Place::lost; from there
// on no value can be written safely. Bounds: 64 open brackets and quotes. Thread safety: one reader belongs to one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::flow {

class ShellReader {
 public:
  enum class Place : std::uint8_t {
    command,         // among words
    single_quotes,   // '…'
    double_quotes,   // "…"
    backquotes,      // `…`
    braces,          // ${…} of the shell
    arithmetic,      // $((…))
    comment,         // # …
    document,        // the lines of a here-document, in which $ is special
    plain_document,  // … whose delimiter was quoted: nothing is special
    escaped,         // behind a backslash
    lost,
  };

  // More of what the author wrote.
  void read(std::string_view text);
  // A value was written here, in a way that leaves quotes and brackets as they are.
  void pass_value(std::string_view written);

  Place place() const noexcept;
  std::string_view lost_because() const noexcept { return lost_; }
  bool is_inside(Place place) const noexcept;  // at any level
  bool is_assignment() const noexcept;         // the current word is `name=…`

 private:
  struct Frame {
    Place place = Place::command;
    bool is_quoted = false;       // braces: they stand inside "…"
    std::size_t parentheses = 0;  // arithmetic
    std::string word = {};        // command: the beginning of the current word
  };
  struct Document {
    std::string delimiter = {};
    bool strips_tabs = false;
    bool is_quoted = false;
  };

  void step();
  void step_in_command();
  void step_in_quotes();
  void step_in_braces();
  void step_in_arithmetic();
  void step_in_document();
  void read_dollar();
  void read_delimiter();
  void read_delimiter_word(Document& document);
  void end_word();
  void end_command_line();
  void open_document();
  void end_document_line();
  // Also when there is nothing left, because the reader has lost its way meanwhile.
  void skip(std::size_t bytes) noexcept { rest_.remove_prefix(std::min(bytes, rest_.size())); }
  void skip_escape();
  void push(Place place, std::size_t sign_bytes);
  void pop() { frames_.pop_back(); }
  void add_to_word(std::string_view text);
  void lose(std::string_view why);

  std::vector<Frame> frames_{Frame{}};
  std::deque<Document> documents_;  // announced by <<; their text begins behind the line
  Document open_;                   // whose text is being read
  std::string line_;                // … and its current line
  bool line_has_value_ = false;
  bool is_escaped_ = false;
  std::string_view rest_;
  std::string_view lost_;
};

}  // namespace reprise::flow
