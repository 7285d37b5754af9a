// Expressions and templates: any text is read or refused with a place inside it; what was read computes the same each time, within its bounds.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "flow/expression/expression.hpp"
#include "require.hpp"

namespace {

namespace flow = reprise::flow;
namespace json = reprise::json;
using reprise::fuzz::require;

constexpr std::size_t result_bytes_max = std::size_t{16} * 1024 * 1024;

// Knows a little of everything, so that paths get somewhere.
class SmallScope final : public flow::Scope {
 public:
  std::expected<const json::Json*, std::string> find(std::span<const std::string> path,
                                                     std::size_t& used) const override {
    require(!path.empty(), "a path has a name");
    used = 1;
    if (const json::Json* value = root_.get_object().if_contains(path[0])) return value;
    return std::unexpected{std::string{"there is no such name"}};
  }

 private:
  const json::Json root_ =
      json::parse_json(R"({"a": {"b": [1, -2.5, "x'y\n$z`", null, true, {"c": {}}], "d": "[1, {\"e\": 2}]"},
    "n": 9223372036854775807, "u": 18446744073709551615, "s": "EOF\n';\"", "l": ["", "E", []]})")
          .value();
};

const SmallScope scope;

void check_mistake(std::string_view text, const flow::ExpressionMistake& mistake) {
  require(mistake.offset <= text.size(), "a mistake lies inside the text", text);
  require(!mistake.message.empty(), "a mistake is said in words", text);
}

void check_references(std::string_view text, const std::vector<flow::Reference>& references) {
  for (const flow::Reference& reference : references) {
    require(!reference.path.empty(), "a reference names something", text);
    require(text.substr(reference.offset).starts_with(reference.path[0]), "a reference stands where it says", text);
  }
}

void check_expression(std::string_view text) {
  const auto expression = flow::parse_expression(text);
  if (!expression) return check_mistake(text, expression.error());
  require(expression->text() == text, "an expression keeps its text", text);
  check_references(text, expression->references());
  const auto value = expression->evaluate(scope);
  const auto again = expression->evaluate(scope);
  require(value.has_value() == again.has_value(), "the same expression ends the same way", text);
  if (!value) return require(!value.error().empty() && value.error() == again.error(), "an error is a sentence", text);
  require(json::to_text(*value) == json::to_text(*again), "the same expression has the same value", text);
  flow::is_true(*value);
}

void check_template(std::string_view text) {
  const auto parsed = flow::parse_template(text);
  if (!parsed) return check_mistake(text, parsed.error());
  check_references(text, parsed->references());
  require(!parsed->is_literal() || parsed->references().empty(), "literal text refers to nothing", text);
  const auto plain = parsed->render(scope, flow::Quoting::none);
  require(plain.has_value() == parsed->evaluate(scope).has_value() || plain.error().find("16 MiB") != std::string::npos,
          "a template has a value when it can be written", text);
  for (const auto quoting : {flow::Quoting::shell, flow::Quoting::url}) {
    const auto quoted = parsed->render(scope, quoting);
    require(plain.has_value() || !quoted.has_value(), "what has no value has none in quotes either", text);
    require(!parsed->is_literal() || quoted == plain, "literal text is never changed", text);
    require(!quoted || quoted->size() <= text.size() + result_bytes_max, "what is written has a bound", text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  check_expression(text);
  check_template(text);
  check_template("${" + std::string{text} + "}");
  return 0;
}
