// What libcurl reports, told as one of our problems and in words that name host, port and cause.
//
// Thread safety: none needed, this is a function of its argument.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "exec/http/http_client.hpp"

namespace reprise::exec {

enum class HttpOverrun : std::uint8_t { none, headers, body };

// What is known about a request that has ended without a whole answer.
struct HttpFacts {
  CURLcode code = CURLE_OK;
  std::string_view place;        // host:port
  std::string_view detail = {};  // libcurl's own words; shown for TLS only, where they name the certificate's fault
  int system_error = 0;          // errno of the connection
  bool connected = false;        // the request could be sent
  int status = 0;                // as far as the answer got; 0 = not one line of it
  bool headers_complete = false;
  std::uint64_t received = 0;                   // bytes of the body
  std::optional<std::uint64_t> announced = {};  // by Content-Length
  HttpOverrun overrun = HttpOverrun::none;
  std::uint64_t body_max = 0;
  Duration timeout{0};
  Duration connect_timeout{0};
};

struct HttpDiagnosis {
  HttpProblem problem = HttpProblem::other;
  std::string message;

  bool operator==(const HttpDiagnosis&) const = default;
};

HttpDiagnosis diagnose(const HttpFacts& facts);

}  // namespace reprise::exec
