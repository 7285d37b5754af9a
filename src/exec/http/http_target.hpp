// Whom a request is for, and whether it can be sent at all: what is wrong with a URL, a method or a header is said before anything moves.
//
// Thread safety: none needed, these are functions of their arguments.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "exec/http/http_client.hpp"

namespace reprise::exec {

struct HttpTarget {
  std::string place;      // "example.org:443": what messages may show; never the user, the password or the query
  bool loopback = false;  // this very machine

  bool operator==(const HttpTarget&) const = default;
};

// The error is a sentence that repeats no part of the URL but its scheme and no header's value: both may be secret.
std::expected<HttpTarget, std::string> target_of(const std::string& url);
std::expected<HttpTarget, std::string> check_request(const HttpRequest& request);

}  // namespace reprise::exec
