// Regular expressions over messages, by RE2: linear time, bounded memory, whatever the pattern and the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

namespace reprise::text {

// The defaults are far more than patterns over error messages need, and compiled within a millisecond.
struct PatternLimits {
  std::size_t expression_bytes_max = 1000;
  std::int64_t compiled_bytes_max = 64 * 1024;
};

// The error says what is wrong with the expression.
std::expected<std::shared_ptr<const MessagePattern>, std::string> compile_pattern(std::string_view expression,
                                                                                  PatternLimits limits = {});

}  // namespace reprise::text
