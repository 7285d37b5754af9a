#include "policy/error_line.hpp"

#include <algorithm>
#include <utility>

#include "policy/words.hpp"

namespace reprise {
namespace {

constexpr std::size_t read_bytes_max = std::size_t{64} << 10U;
constexpr int lines_max = 400;

using words::is_digit;
using words::is_word;

std::string_view without_line_end(std::string_view text) noexcept {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

std::string_view taken_off(std::string_view text, std::string_view begin) noexcept {
  return text.starts_with(begin) ? text.substr(begin.size()) : text;
}

// The codes by which systems name their errors, as Node and Rust print them.
constexpr std::pair<std::string_view, std::string_view> system_errors[] = {
    {"ECONNREFUSED", "ConnectionRefusedError"},
    {"ECONNRESET", "ConnectionResetError"},
    {"ECONNABORTED", "ConnectionAbortedError"},
    {"EPIPE", "BrokenPipeError"},
    {"ETIMEDOUT", "TimeoutError"},
    {"ESOCKETTIMEDOUT", "TimeoutError"},
    {"ENOTFOUND", "NetworkError"},
    {"EAI_AGAIN", "NetworkError"},
    {"ENETUNREACH", "NetworkError"},
    {"EHOSTUNREACH", "NetworkError"},
    {"ENOENT", "FileNotFoundError"},
    {"EACCES", "PermissionError"},
    {"EPERM", "PermissionError"},
    {"MODULE_NOT_FOUND", "ModuleNotFoundError"},
    {"ERR_MODULE_NOT_FOUND", "ModuleNotFoundError"},
    {"Cannot find module", "ModuleNotFoundError"},
    {"ConnectionRefused", "ConnectionRefusedError"},
    {"ConnectionReset", "ConnectionResetError"},
    {"ConnectionAborted", "ConnectionAbortedError"},
    {"BrokenPipe", "BrokenPipeError"},
    {"TimedOut", "TimeoutError"},
    {"NotFound", "FileNotFoundError"},
    {"PermissionDenied", "PermissionError"},
};

bool has_word(std::string_view text, std::string_view word) noexcept {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

std::string_view system_error_in(std::string_view text) noexcept {
  const auto found =
      std::ranges::find_if(system_errors, [&](const auto& error) { return has_word(text, error.first); });
  return found != std::end(system_errors) ? found->second : std::string_view{};
}

bool is_type_name(std::string_view name) noexcept {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_word(c) || c == '.' || c == '$'; });
}

// requests.exceptions.ReadTimeout: a class with the path of its module.
bool is_class_of_a_module(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot + 1 < name.size() && name[dot + 1] >= 'A' && name[dot + 1] <= 'Z';
}

// Python, Node and Java: `Type: message`, `Type [CODE]: message`, or the type alone.
std::optional<ErrorLine> named_error(std::string_view line, bool after_traceback) {
  line = taken_off(line, "Caused by: ");
  line = taken_off(line, "Uncaught ");
  if (constexpr std::string_view thread = "Exception in thread \""; line.starts_with(thread)) {
    const std::size_t end = line.find("\" ", thread.size());
    if (end == std::string_view::npos) return std::nullopt;
    line = line.substr(end + 2);
  }
  std::string_view name = line.substr(0, std::min(line.find(':'), line.size()));
  std::string_view code;
  if (const std::size_t bracket = name.find(" ["); bracket != std::string_view::npos && name.ends_with(']')) {
    code = name.substr(bracket + 2, name.size() - bracket - 3);
    name = name.substr(0, bracket);
  }
  if (!is_type_name(name)) return std::nullopt;
  const bool is_error = name.ends_with("Error") || name.ends_with("Exception") || name == "KeyboardInterrupt";
  if (!is_error && !(after_traceback && is_class_of_a_module(name))) return std::nullopt;
  // The bare Error of Node and Rust says what it is in its message.
  const bool is_bare = name == "Error" || name == "AggregateError" || name == "SystemError" || name == "IOException";
  const std::string_view meant = is_bare ? system_error_in(code.empty() ? line.substr(name.size()) : code) : "";
  if (is_bare && meant.empty() && name == "Error" && line.size() <= name.size() + 1) return std::nullopt;
  return ErrorLine{.type = std::string{meant.empty() ? name : meant}, .text = std::string{line}};
}

// Go: `panic: …`, `fatal error: …`
std::optional<ErrorLine> go_error(std::string_view line) {
  if (line.starts_with("panic: runtime error: ") || line.starts_with("fatal error: "))
    return ErrorLine{.type = "RuntimeError", .text = std::string{line}};
  if (line.starts_with("panic: ")) return ErrorLine{.type = "PanicError", .text = std::string{line}};
  return std::nullopt;
}

// Rust: `thread 'main' panicked at src/main.rs:2:5:` with the message on the next line, or before its place in older versions.
std::optional<ErrorLine> rust_panic(std::string_view line, std::string_view next_line) {
  constexpr std::string_view mark = "' panicked at ";
  const std::size_t at = line.find(mark);
  if (!line.starts_with("thread '") || at == std::string_view::npos) return std::nullopt;
  std::string_view said = line.substr(at + mark.size());
  if (said.starts_with('\'')) {
    said = said.substr(1, said.rfind('\'') - 1);
  } else {
    said = next_line;
  }
  const std::string_view meant = system_error_in(said);
  return ErrorLine{.type = std::string{meant.empty() ? "PanicError" : meant}, .text = "panicked: " + std::string{said}};
}

// Belongs to the trace of an error, or is what its runtime says after it.
bool is_trace(std::string_view line) noexcept {
  if (line.empty() || line.front() == ' ' || line.front() == '\t') return true;
  for (const std::string_view begin :
       {"Node.js v", "note: ", "stack backtrace:", "goroutine ", "exit status ", "created by ", "[signal ",
        "During handling of", "npm ERR!", "npm error", "error Command failed", "make: ***"}) {
    if (line.starts_with(begin)) return true;
  }
  if (line == "}" || line == "]" || line == "{" || line == "Caused by:") return true;
  // A frame of Go's: main.handler(0xc000010000, …)
  const std::size_t arguments = line.find('(');
  return line.ends_with(')') && arguments != std::string_view::npos && arguments > 0 && line.find(' ') > arguments;
}

}  // namespace

std::optional<ErrorLine> last_error_line(std::string_view written) {
  if (written.size() > read_bytes_max) written.remove_prefix(written.size() - read_bytes_max);
  const bool after_traceback = written.find("Traceback (most recent call last)") != std::string_view::npos;
  const bool after_panic = written.find("' panicked at ") != std::string_view::npos;
  written = without_line_end(written);
  std::string_view next_line;
  for (int lines = 0; lines < lines_max && !written.empty(); ++lines) {
    const std::size_t end = written.rfind('\n');
    const std::string_view line = without_line_end(end == std::string_view::npos ? written : written.substr(end + 1));
    written = end == std::string_view::npos ? std::string_view{} : written.substr(0, end);
    if (auto panic = rust_panic(line, next_line)) return panic;
    if (auto panic = go_error(line)) return panic;
    if (auto named = named_error(line, after_traceback)) return named;
    // The message of a panic stands under it, in any form.
    if (!is_trace(line) && !(after_panic && next_line.empty())) return std::nullopt;
    if (!is_trace(line)) next_line = line;
  }
  return std::nullopt;
}

std::optional<CurlReport> curl_report(std::string_view written) noexcept {
  constexpr std::string_view begin = "curl: (";
  constexpr std::string_view returned = "returned error: ";
  const auto number_at = [&](std::size_t at) {
    int number = 0;
    for (std::size_t digits = 0; digits < 3 && at < written.size() && is_digit(written[at]); ++digits, ++at)
      number = number * 10 + (written[at] - '0');
    return number;
  };
  const std::size_t at = written.rfind(begin);
  if (at == std::string_view::npos || (at > 0 && written[at - 1] != '\n')) return std::nullopt;
  CurlReport report{.code = number_at(at + begin.size())};
  const std::size_t line_end = std::min(written.find('\n', at), written.size());
  const std::size_t status_at = written.find(returned, at);
  if (report.code == 22 && status_at < line_end) {
    const int status = number_at(status_at + returned.size());
    if (status >= 300 && status <= 599) report.http_status = status;
  }
  return report;
}

std::string_view curl_error_type(int code) noexcept {
  switch (code) {
    case 6:
      return "NetworkError";
    case 7:
      return "ConnectionRefusedError";
    case 28:
      return "TimeoutError";
    case 35:
      return "ConnectionError";
    case 52:
    case 56:
      return "ConnectionResetError";
    default:
      return "";
  }
}

}  // namespace reprise
