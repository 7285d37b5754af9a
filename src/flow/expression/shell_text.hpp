// A line for sh that is put together from text of its author and from values, so that a value is data wherever it stands.
//
// A value is written the way its place needs: as quoted words among words, escaped inside quotes and here-documents. Where no writing is safe
// in every sh (inside backquotes, behind a backslash …) it is refused, with a remedy. Not covered: programs that the line itself starts
// and that read their arguments as code again, such as `sh -c "echo ${value}"`. Thread safety: one line belongs to one thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "flow/expression/shell_reader.hpp"

namespace reprise::flow {

class ShellText {
 public:
  void add_literal(std::string_view text);
  // One value: each element is a word among words; inside quotes they are joined by blanks. The error says where the value stands that
  // it cannot be written: `stands inside backquotes; …`.
  std::expected<void, std::string> add_words(const std::vector<std::string>& words);

  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  ShellReader reader_;
};

}  // namespace reprise::flow
