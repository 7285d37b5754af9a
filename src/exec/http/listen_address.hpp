// Where webhooks are received, as people write it: 127.0.0.1:9000, [::1]:9000, localhost:9000, 0.0.0.0:9000.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace reprise::exec {

struct ListenAddress {
  std::string host = "127.0.0.1";  // a number of IPv4 or IPv6, without brackets
  std::uint16_t port = 0;          // 0 = any

  bool operator==(const ListenAddress&) const = default;
};

// The error is for people.
std::expected<ListenAddress, std::string> parse_listen_address(std::string_view text);
std::string to_string(const ListenAddress& address);
bool is_any_address(const ListenAddress& address);  // 0.0.0.0, [::]: nobody can be told to call there

// http://… or https://…, without query or fragment; a slash at its end is dropped. The error is for people.
std::expected<std::string, std::string> parse_callback_url(std::string_view text);

}  // namespace reprise::exec
