// Regular expressions over messages, by RE2: linear time, bounded memory, whatever the pattern and the text.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

namespace reprise::text {

// The error says what is wrong with the expression.
std::expected<std::shared_ptr<const MessagePattern>, std::string> compile_pattern(std::string_view expression);

}  // namespace reprise::text
