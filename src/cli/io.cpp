#include "cli/io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

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

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int usage_error(std::string_view message) {
  print_error(fmt::format("reprise: {}\n", message));
  return exit_usage;
}

}  // namespace reprise::cli
