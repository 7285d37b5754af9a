// A mistake (or a warning) in a document: where it is, what it is, and what to write instead.
//
// Plain values; rendering is a function. Thread safety: none needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reprise {

enum class Severity : std::uint8_t { error, warning };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string file = {};
  std::uint32_t line = 1;    // 1-based
  std::uint32_t column = 1;  // 1-based, in characters
  std::uint32_t length = 1;  // characters to underline
  std::string message = {};
  std::string help = {};         // what is allowed, what to write instead; may be empty
  std::string source_line = {};  // may be empty; a part of the line when that is very long
  std::uint32_t caret = 1;       // the character of source_line that `column` stands for

  bool operator==(const Diagnostic&) const = default;
};

// file:line:column: error: message, the source line with a caret, and the help.
std::string render(std::span<const Diagnostic> diagnostics);

// A JSON array of objects: severity, file, line, column, message, help.
std::string render_json(std::span<const Diagnostic> diagnostics);

}  // namespace reprise
