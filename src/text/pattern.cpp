#include "text/pattern.hpp"

#include <re2/re2.h>

namespace reprise::text {
namespace {

// Far more than patterns over error messages need, and compiled within a millisecond.
constexpr std::size_t expression_bytes_max = 1000;
constexpr std::int64_t compiled_bytes_max = 64 * 1024;

class Re2Pattern final : public MessagePattern {
 public:
  explicit Re2Pattern(std::string_view expression)
      : regex_{re2::StringPiece{expression.data(), expression.size()}, options()} {}

  bool ok() const { return regex_.ok(); }
  const std::string& problem() const { return regex_.error(); }
  bool matches(std::string_view message) const noexcept override {
    return RE2::PartialMatch(re2::StringPiece{message.data(), message.size()}, regex_);
  }

 private:
  static RE2::Options options() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(compiled_bytes_max);
    return options;
  }

  RE2 regex_;
};

}  // namespace

std::expected<std::shared_ptr<const MessagePattern>, std::string> compile_pattern(std::string_view expression) {
  if (expression.size() > expression_bytes_max) return std::unexpected("it is longer than 1000 characters");
  auto pattern = std::make_shared<const Re2Pattern>(expression);
  if (!pattern->ok()) return std::unexpected(pattern->problem());
  return pattern;
}

}  // namespace reprise::text
