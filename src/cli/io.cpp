#include "cli/io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "text/utf8.hpp"

namespace reprise::cli {
namespace {

bool read_all(int descriptor, std::size_t bytes_max, std::string& text) {
  char buffer[64 * 1024];
  while (text.size() < bytes_max) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count == 0) return true;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return true;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Writes to the descriptor and closes it; false leaves the reason in errno.
bool write_and_close(int descriptor, std::string_view text) {
  const bool written = write_all(descriptor, text);
  const int problem = errno;
  const bool closed = ::close(descriptor) == 0;
  if (!written) errno = problem;
  return written && closed;
}

bool write_in_place(const std::string& path, std::string_view text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  return descriptor >= 0 && write_and_close(descriptor, text);
}

// Under another name in the same folder first, so that nobody ever sees half of it.
bool replace_file(const std::string& path, std::string_view text) {
  std::string other = path + ".XXXXXX";
  const int descriptor = ::mkostemp(other.data(), O_CLOEXEC);
  if (descriptor < 0) return false;
  const mode_t hidden = ::umask(0);
  ::umask(hidden);
  const bool is_readable = ::fchmod(descriptor, 0666 & ~hidden) == 0;
  if (write_and_close(descriptor, text) && is_readable && ::rename(other.c_str(), path.c_str()) == 0) return true;
  const int problem = errno;
  ::unlink(other.c_str());
  errno = problem;
  return false;
}

}  // namespace

std::expected<Input, int> read_input(const std::string& path) {
  const bool standard_input = path == "-";
  Input input{standard_input ? "<stdin>" : path, {}};
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::size_t enough = text::Limits{}.bytes_max + 1;
  const bool read = descriptor >= 0 && read_all(descriptor, enough, input.text);
  const int problem = errno;
  if (descriptor >= 0 && !standard_input) ::close(descriptor);
  if (!read) return std::unexpected(usage_error(fmt::format("cannot read {}: {}", input.name, std::strerror(problem))));
  return input;
}

std::expected<text::Document, int> read_input_document() {
  auto input = read_input("-");
  if (!input) return std::unexpected(input.error());
  auto document = text::read_document(std::move(input->text), std::move(input->name));
  if (document) return *std::move(document);
  print_error(render(document.error()));
  return std::unexpected(exit_invalid);
}

std::expected<Policy, int> load_policy(const PolicySource& source, Warnings warnings) {
  auto input = read_input(source.file);
  if (!input) return std::unexpected(input.error());
  auto read = read_policy(std::move(input->text), source.from, std::move(input->name));
  if (!read) {
    print_error(render(read.error()));
    return std::unexpected(exit_invalid);
  }
  if (warnings == Warnings::show) print_error(render(read->warnings));
  return std::move(read->policy);
}

std::expected<void, int> write_file(const std::string& path, std::string_view text) {
  bool is_written = false;
  if (path == "-") {
    print_bytes(text);
    is_written = std::fflush(stdout) == 0;
  } else {
    std::error_code problem;
    const std::filesystem::path real = std::filesystem::canonical(path, problem);  // what a link leads to
    const std::string target = problem ? path : real.string();
    const auto kind = std::filesystem::status(target, problem).type();
    const bool is_device = kind == std::filesystem::file_type::character || kind == std::filesystem::file_type::fifo;
    is_written = is_device ? write_in_place(target, text) : replace_file(target, text);
  }
  if (is_written) return {};
  return std::unexpected(
      usage_error(fmt::format("cannot write {}: {}", path == "-" ? "standard output" : path, std::strerror(errno))));
}

void print(std::string_view text) { print_bytes(text::lines_safe_to_show(text)); }

void print_error(std::string_view text) { print_error_bytes(text::lines_safe_to_show(text)); }

void print_bytes(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

void print_error_bytes(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

int usage_error(std::string_view message) {
  print_error(fmt::format("reprise: {}\n", message));
  return exit_usage;
}

}  // namespace reprise::cli
