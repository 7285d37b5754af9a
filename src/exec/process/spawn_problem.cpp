// Why a command could not be started, in words. The kernel says one number; what it meant is looked up in the file system afterwards.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "exec/process/spawn.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t first_line_max = 256;  // what the kernel reads of it

std::string in_quotes(std::string_view text) { return '"' + std::string{text} + '"'; }
std::string words_of(int error) { return std::generic_category().message(error); }

// As the child saw it: relative places count from its directory.
std::string seen_from(const std::string& directory, const std::string& place) {
  return directory.empty() ? place : (std::filesystem::path{directory} / place).string();
}

std::optional<mode_t> mode_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_mode;
}

// "/usr/bin/python9" for a script that begins with "#! /usr/bin/python9 -u"; empty for anything else.
std::string interpreter_of(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  std::array<char, first_line_max> buffer;
  const ssize_t count = file.is_open() ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
  if (count <= 2) return {};
  std::string_view line{buffer.data(), static_cast<std::size_t>(count)};
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  return std::string{line.substr(0, line.find_first_of(" \t\r"))};
}

std::string explain_missing(const ProcessSpec& spec, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    const std::string path = seen_from(spec.directory, place);
    if (!mode_of(path)) continue;
    const std::string interpreter = interpreter_of(path);
    if (interpreter.empty()) return in_quotes(place) + " is there, but the loader it was built for is not";
    return in_quotes(place) + " is there, but what should run it, " + in_quotes(interpreter) +
           " in its first line, is not";
  }
  const std::string& command = spec.argv.front();
  if (command.find('/') == std::string::npos) return "there is no command " + in_quotes(command) + " in PATH";
  return "there is no file " + in_quotes(command) + (spec.directory.empty() ? "" : " in " + in_quotes(spec.directory));
}

std::string explain_forbidden(const ProcessSpec& spec, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    const std::optional<mode_t> mode = mode_of(seen_from(spec.directory, place));
    if (!mode) continue;
    if (S_ISDIR(*mode)) return in_quotes(place) + " is a directory, not a command";
    if (!S_ISREG(*mode)) return in_quotes(place) + " is not a file that can be executed";
    if ((*mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
      return in_quotes(place) + " is not executable (chmod +x would make it so)";
  }
  return in_quotes(spec.argv.front()) + " may not be executed: " + words_of(EACCES);
}

}  // namespace

SpawnProblem explain_exec_problem(const ProcessSpec& spec, const std::vector<std::string>& places, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {error, explain_missing(spec, places)};
    case EACCES:
      return {error, explain_forbidden(spec, places)};
    case ENOEXEC:
      return {error, in_quotes(spec.argv.front()) + " is not a program of this machine, nor a script"};
    case E2BIG:
      return {error, "the arguments and the environment of " + in_quotes(spec.argv.front()) +
                         " are longer than the system allows (hand large values over with `stdin:`, or in a file)"};
    default:
      return {error, in_quotes(spec.argv.front()) + " could not be executed: " + words_of(error)};
  }
}

SpawnProblem explain_directory_problem(const std::string& directory, int error) {
  if (error == ENOENT) return {error, "the directory " + in_quotes(directory) + " to run in does not exist"};
  if (error == ENOTDIR) return {error, in_quotes(directory) + ", to run in, is not a directory"};
  return {error, "the directory " + in_quotes(directory) + " to run in cannot be entered: " + words_of(error)};
}

SpawnProblem explain_input_problem(const std::string& file, int error) {
  if (error == ENOENT) return {error, "the input file " + in_quotes(file) + " does not exist"};
  return {error, "the input file " + in_quotes(file) + " cannot be read: " + words_of(error)};
}

}  // namespace reprise::exec
