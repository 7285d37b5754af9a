// HTTP requests over libcurl's multi interface: one thread, as many requests at a time as there are.
//
//   HttpClient client;
//   client.start({.method = "POST", .url = "https://…", .body = "{}", .timeout = 30s}, [](HttpEnd&& end) { … });
//
// An answer with any status is an answer; what is none is told apart: name, connection, TLS, time, an answer that is cut off, not HTTP, or
// too large. Redirects are not followed: a 3xx is an answer. Only http and https. What is not idempotent (POST, PATCH) goes out once, even when
// a connection that was kept open turns out to be dead.
// libcurl is loaded when the first client is made. Where there is none, start() answers at once with bad_request and what to install.
// Thread safety: start() and cancel() from any thread; callbacks come from the client's thread, must return quickly, and may call both.
// Bounds: body_max bytes of an answer, 64 KiB of headers; the rest of a too large answer is not read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/env.hpp>
#include <reprise/failure.hpp>

namespace reprise::exec {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers =
      {};  // no line breaks in them, or the request is refused (bad_request)
  std::string body = {};
  Duration timeout{0};  // of the whole request; 0 = none
  Duration stall_timeout{0};  // the longest silence: no byte came for so long; 0 = any
  Duration connect_timeout = std::chrono::seconds{30};
  std::size_t body_max = std::size_t{16} << 20U;
};

enum class HttpProblem : std::uint8_t {
  none,         // there is an answer
  bad_request,  // it could not even be sent: the URL, a header
  dns,
  refused,  // connection refused, or no way to the host
  reset,    // closed or reset before the answer was complete
  tls,
  timed_out,
  stalled,  // nothing came for stall_timeout
  garbage,  // not HTTP
  too_large,
  canceled,
  other,
};

struct HttpEnd {
  HttpProblem problem = HttpProblem::none;
  std::string message = {};  // in words, with host and port; no secrets, no query string
  int status = 0;            // 0 = no answer
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in lower case
  std::string body = {};
  Duration took{0};

  const std::string* header(std::string_view name) const noexcept;  // lower case; nullptr = absent
};

class HttpClient {
 public:
  using Ticket = std::uint64_t;
  using Done = std::function<void(HttpEnd&&)>;

  HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();  // gives up what is still under way; Done is not called any more

  Ticket start(HttpRequest request, Done done);
  void cancel(Ticket ticket);  // Done still comes, with `canceled`

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::exec
