// Reading inputs and writing answers: data to standard output, everything for people to standard error.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "cli/commands.hpp"
#include "text/document.hpp"

namespace reprise::cli {

struct Input {
  std::string name;  // for diagnostics: the path, or <stdin>
  std::string text;  // a little more than a document may have at most, so that the reader can say it is too large
};

// "-" is standard input. The error is an exit code; the message has been written already.
std::expected<Input, int> read_input(const std::string& path);

// A document on standard input; its mistakes have been shown.
std::expected<text::Document, int> read_input_document();

// Reads a policy; shows its mistakes and gives exit code 3, or shows its warnings (if asked to) and gives the policy.
enum class Warnings : bool { hide, show };
std::expected<Policy, int> load_policy(const PolicySource& source, Warnings warnings);

// All of it or nothing: a file that is there already is replaced in one step. "-" is standard output; devices and pipes are written to as
// they are. The error is an exit code; the message has been written already.
std::expected<void, int> write_file(const std::string& path, std::string_view text);

// Everything for people and all JSON goes through these: text from a document, a store or the command line may hold characters that would
// control a terminal, and they are replaced here, whoever forgot it before.
void print(std::string_view text);          // standard output
void print_error(std::string_view text);    // standard error
int usage_error(std::string_view message);  // "reprise: …", exit code 2

// As they are: what commands wrote, files, and the escape codes that are our own.
void print_bytes(std::string_view bytes);        // standard output
void print_error_bytes(std::string_view bytes);  // standard error

}  // namespace reprise::cli
