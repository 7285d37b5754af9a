// Base64, and the comparison of secrets: OpenSSL's own.
//
// Thread safety: functions of their arguments.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reprise::base {

std::string base64(std::string_view bytes);           // RFC 4648, section 4, with = at the end
std::string base64_for_urls(std::string_view bytes);  // section 5: - and _, nothing at the end

// The other way for base64(); std::nullopt: it is none, or bits are left over.
std::optional<std::string> from_base64(std::string_view text);

// Takes the same time wherever they differ. How long they are is no secret.
bool same_secret(std::string_view left, std::string_view right) noexcept;

}  // namespace reprise::base
