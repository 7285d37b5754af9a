#include "exec/http/listen_address.hpp"

#include <arpa/inet.h>

#include <array>

#include "text/scalar.hpp"

namespace reprise::exec {
namespace {

bool is_number_of(int family, const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(family, host.c_str(), bytes.data()) == 1;
}

}  // namespace

std::expected<ListenAddress, std::string> parse_listen_address(std::string_view text) {
  const auto refused = [&](const char* why) {
    return std::unexpected{"\"" + std::string{text} + "\" is no address to listen on: " + why +
                           "; write it as 127.0.0.1:9000, [::1]:9000 or 0.0.0.0:9000"};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused("the port is missing");
  const auto port = text::whole_number(text.substr(colon + 1));
  if (!port || *port < 1 || *port > UINT16_MAX) return refused("a port is a number from 1 to 65535");
  std::string host{text.substr(0, colon)};
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  if (!is_number_of(has_brackets ? AF_INET6 : AF_INET, host))
    return refused("the host is not the number of an address");
  return ListenAddress{std::move(host), static_cast<std::uint16_t>(*port)};
}

std::string to_string(const ListenAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_any_address(const ListenAddress& address) { return address.host == "0.0.0.0" || address.host == "::"; }

std::expected<std::string, std::string> parse_callback_url(std::string_view text) {
  const std::size_t scheme = text.starts_with("http://") ? 7 : text.starts_with("https://") ? 8 : 0;
  while (text.ends_with('/')) text.remove_suffix(1);
  const bool is_plain = text.find_first_of("?# \t\r\n\"<>\\") == std::string_view::npos;
  if (scheme == 0 || text.size() <= scheme || !is_plain)
    return std::unexpected{"\"" + std::string{text} +
                           "\" is no URL that work can be reported to: write it as https://ci.example.org/reprise"};
  return std::string{text};
}

}  // namespace reprise::exec
