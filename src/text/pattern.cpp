#include "text/pattern.hpp"

#include <re2/re2.h>

namespace reprise::text {
namespace {

class Re2Pattern final : public MessagePattern {
 public:
  Re2Pattern(std::string_view expression, std::int64_t compiled_bytes_max)
      : regex_{re2::StringPiece{expression.data(), expression.size()}, options(compiled_bytes_max)} {}

  bool ok() const { return regex_.ok(); }
  const std::string& problem() const { return regex_.error(); }
  bool matches(std::string_view message) const noexcept override {
    return RE2::PartialMatch(re2::StringPiece{message.data(), message.size()}, regex_);
  }

 private:
  static RE2::Options options(std::int64_t compiled_bytes_max) {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(compiled_bytes_max);
    return options;
  }

  RE2 regex_;
};

}  // namespace

std::expected<std::shared_ptr<const MessagePattern>, std::string> compile_pattern(std::string_view expression,
                                                                                  PatternLimits limits) {
  if (expression.size() > limits.expression_bytes_max)
    return std::unexpected("it is longer than " + std::to_string(limits.expression_bytes_max) + " characters");
  auto pattern = std::make_shared<const Re2Pattern>(expression, limits.compiled_bytes_max);
  if (!pattern->ok()) return std::unexpected(pattern->problem());
  return pattern;
}

}  // namespace reprise::text
