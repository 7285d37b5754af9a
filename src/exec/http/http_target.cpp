#include "exec/http/http_target.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "exec/http/curl_library.hpp"
#include "text/ascii.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t url_characters_max = 64U << 10U;
constexpr std::size_t method_characters_max = 32;
constexpr std::size_t header_bytes_max = 64U << 10U;  // of all of them

struct UrlDeleter {
  void operator()(CURLU* url) const noexcept { curl().url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl().url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy{text};
  curl().free(text);
  return copy;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost") || host == "[::1]" ||
         (host.starts_with("127.") && std::ranges::all_of(host, [](char c) { return text::is_digit(c) || c == '.'; }));
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view word) {
  static constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  const auto allowed = [](char c) {
    const char small = text::to_lower(c);
    return (small >= 'a' && small <= 'z') || text::is_digit(c) || marks.find(c) != std::string_view::npos;
  };
  return !word.empty() && std::ranges::all_of(word, allowed);
}

bool is_field_value(std::string_view value) {
  return std::ranges::none_of(value, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < 0x20U && c != '\t') || code == 0x7FU;
  });
}

std::string check_headers(const HttpRequest& request) {
  constexpr std::array<std::string_view, 2> ours{"content-length", "transfer-encoding"};
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name))
      return "the name of a header is not valid: write letters, digits and dashes, such as X-Request-Id";
    if (!is_field_value(value))
      return "the header " + name + " has a line break or another control character in its value: remove it";
    if (std::ranges::find(ours, text::lowered(name)) != ours.end())
      return "the header " + name + " follows from the body: leave it out";
    bytes += name.size() + value.size() + 4;
  }
  if (bytes > header_bytes_max)
    return "the headers have " + std::to_string(bytes) + " bytes, at most " + std::to_string(header_bytes_max);
  return {};
}

}  // namespace

std::expected<HttpTarget, std::string> target_of(const std::string& url) {
  const auto refused = [](const std::string& why) {
    return std::unexpected{"the URL " + why + ": write http://host/path or https://host/path"};
  };
  if (url.empty()) return refused("is empty");
  if (url.size() > url_characters_max)
    return refused("is longer than " + std::to_string(url_characters_max) + " characters");
  if (url.find('\0') != std::string::npos) return refused("has a control character in it");
  const std::unique_ptr<CURLU, UrlDeleter> parsed{curl().url()};
  if (const CURLUcode code = curl().url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME);
      code != CURLUE_OK)
    return refused(std::string{"cannot be read ("} + curl().url_strerror(code) + ")");
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return refused("has the scheme " + scheme);
  // libcurl would take http:/host and http:///host for what was meant; a path without a host is more likely.
  const std::size_t after_scheme = scheme.size() + 3;
  if (url.compare(scheme.size(), 3, "://") != 0 || url.compare(after_scheme, 1, "/") == 0)
    return refused("names no host");
  const std::string host = part_of(parsed.get(), CURLUPART_HOST);
  return HttpTarget{.place = host + ":" + part_of(parsed.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT),
                    .loopback = is_loopback(text::lowered(host))};
}

std::expected<HttpTarget, std::string> check_request(const HttpRequest& request) {
  if (!is_token(request.method) || request.method.size() > method_characters_max || request.method == "CONNECT")
    return std::unexpected{"the method is not one that can be sent: write GET, POST, PUT, PATCH or DELETE"};
  if (std::string problem = check_headers(request); !problem.empty()) return std::unexpected{std::move(problem)};
  return target_of(request.url);
}

}  // namespace reprise::exec
