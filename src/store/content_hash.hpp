// SHA-256 of a payload: the name under which the store keeps it once.
//
// Thread safety: a function of its argument.
#pragma once

#include <string>
#include <string_view>

namespace reprise::store {

std::string content_hash(std::string_view bytes);  // 32 bytes

}  // namespace reprise::store
