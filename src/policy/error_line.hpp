// What the last lines of a failed program say in the form of its language: the type of the error, and its message.
//
//   last_error_line("Traceback …\n  File …\nValueError: no such order\n")   // {"ValueError", "ValueError: no such order"}
//
// Python, Node, Java, Go and Rust. Only the end counts: an error that was logged earlier may have been dealt with, so behind the error line
// nothing may stand but its trace. Pure. Thread safety: everything is an argument. Bounds: the last 64 KiB and 400 lines are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reprise {

struct ErrorLine {
  std::string type = {};  // as the type tree knows it, if it does: Node's ECONNREFUSED is a ConnectionRefusedError
  std::string text = {};  // the line for people
};
std::optional<ErrorLine> last_error_line(std::string_view written);

// What curl says at the end: `curl: (22) The requested URL returned error: 503`.
struct CurlReport {
  int code = 0;
  std::optional<int> http_status = {};  // 22, if it names one
};
std::optional<CurlReport> curl_report(std::string_view written) noexcept;
// The error type of a code of curl's that another attempt may get over: 6, 7, 28, 35, 52, 56. Empty: it is another one.
std::string_view curl_error_type(int code) noexcept;

}  // namespace reprise
