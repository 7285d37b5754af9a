#include "json/regex_to_re2.hpp"

#include <cstdint>
#include <optional>

#include "base/hex.hpp"
#include "text/ascii.hpp"
#include "text/pattern.hpp"
#include "text/utf8.hpp"

namespace reprise::json {
namespace {

// A class like \p{L} alone takes some 30 kB; with this much even the worst expression compiles within some milliseconds.
constexpr text::PatternLimits limits{.expression_bytes_max = 32'000, .compiled_bytes_max = 512 * 1024};
constexpr std::size_t expression_bytes_max = 1000;  // before translation, which makes it longer
constexpr int groups_deep_max = 64;

std::unexpected<std::string> mistake(std::string sentence) { return std::unexpected(std::move(sentence)); }

// Reads an expression character by character; what it has written so far is RE2's syntax.
class Translator {
 public:
  explicit Translator(std::string_view expression) : rest_{expression} {}

 protected:
  bool at_end() const noexcept { return rest_.empty(); }
  char peek() const noexcept { return rest_.empty() ? '\0' : rest_.front(); }
  bool takes(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    rest_.remove_prefix(words.size());
    return true;
  }
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  // One character, whatever it takes in bytes, as it is. False when it is not UTF-8.
  bool copy_character() {
    const std::size_t bytes = text::first_character(rest_).bytes;
    if (bytes == 0) return false;
    out_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
  std::string out_;
};

constexpr bool is_one_of(char c, std::string_view set) noexcept {
  return c != '\0' && set.find(c) != std::string_view::npos;
}

class IRegexpTranslator : Translator {
 public:
  using Translator::Translator;

  std::expected<std::string, std::string> translate() {
    if (auto problem = alternatives(0)) return mistake(*problem);
    if (!at_end()) return mistake("unexpected " + std::string{rest_.substr(0, 1)});
    return std::move(out_);
  }

 private:
  using Problem = std::optional<std::string>;

  Problem alternatives(int depth) {
    if (depth > groups_deep_max) return "groups are nested too deeply";
    while (!at_end() && peek() != ')') {
      if (takes("|")) {
        out_ += '|';
        continue;
      }
      if (auto problem = atom(depth)) return problem;
      if (auto problem = quantifier()) return problem;
    }
    return {};
  }

  Problem atom(int depth) {
    if (takes(".")) {
      out_ += "[^\\n\\r]";
      return {};
    }
    if (takes("(")) {
      out_ += "(?:";
      if (auto problem = alternatives(depth + 1)) return problem;
      if (!takes(")")) return "a ( is never closed";
      out_ += ')';
      return {};
    }
    if (takes("[")) return character_class();
    if (takes("\\")) return escape();
    if (is_one_of(peek(), "*+?{}]")) return std::string{"unexpected "} + peek();
    // RFC 9485 has ^ and $ as plain characters but maps them to other engines unchanged, where they are anchors; so does everybody.
    return copy_character() ? Problem{} : Problem{"not valid UTF-8"};
  }

  Problem quantifier() {
    if (is_one_of(peek(), "*+?")) {
      out_ += take();
    } else if (peek() == '{') {
      const std::size_t end = rest_.find('}');
      if (end == std::string_view::npos) return "a { is never closed";
      const std::string_view range = rest_.substr(1, end - 1);
      if (!is_range(range)) return "expected {n}, {n,} or {n,m}";
      out_ += '{';
      out_ += range;
      out_ += '}';
      rest_.remove_prefix(end + 1);
    }
    return is_one_of(peek(), "*+?{") ? Problem{"two quantifiers in a row"} : Problem{};
  }

  static bool is_range(std::string_view range) {
    const std::size_t comma = range.find(',');
    const auto all_digits = [](std::string_view digits) {
      return digits.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const std::string_view least = range.substr(0, comma);
    if (least.empty() || !all_digits(least)) return false;
    return comma == std::string_view::npos || all_digits(range.substr(comma + 1));
  }

  Problem escape() {
    const char c = peek();
    if (c == 'p' || c == 'P') return category();
    if (!is_one_of(c, "()*+-.?[\\]^nrt{|}")) return "unknown escape";
    out_ += '\\';
    out_ += take();
    return {};
  }

  Problem category() {
    constexpr std::string_view all[] = {"Llmotu", "Mcen", "Ndlo", "Pcdefios", "Zlps", "Sckmo", "Ccfno"};
    const char letter = take();
    const std::size_t end = rest_.find('}');
    if (!takes("{") || end == std::string_view::npos) return "expected \\p{…}";
    const std::string_view name = rest_.substr(0, end - 1);
    bool known = false;
    for (const std::string_view group : all) {
      const bool whole = name.size() == 1 && name[0] == group[0];
      const bool part = name.size() == 2 && name[0] == group[0] && is_one_of(name[1], group.substr(1));
      known = known || whole || part;
    }
    if (!known) return "unknown category \\p{" + std::string{name} + "}";
    out_ += '\\';
    out_ += letter;
    out_ += '{';
    out_ += name;
    out_ += '}';
    rest_.remove_prefix(end);
    return {};
  }

  Problem character_class() {
    out_ += '[';
    if (takes("^")) out_ += '^';
    if (takes("-"))
      out_ += "\\-";
    else if (peek() == ']')
      return "an empty character class";
    while (!takes("]")) {
      if (at_end()) return "a [ is never closed";
      if (takes("-")) {
        if (peek() != ']') return "a - in the middle of a character class";
        out_ += "\\-";
        continue;
      }
      const bool was_category = rest_.starts_with("\\p") || rest_.starts_with("\\P");
      if (auto problem = class_character()) return problem;
      if (was_category || peek() != '-' || rest_.starts_with("-]")) continue;
      out_ += take();
      if (rest_.starts_with("\\p") || rest_.starts_with("\\P")) return "a category cannot end a range";
      if (auto problem = class_character()) return problem;
    }
    out_ += ']';
    return {};
  }

  Problem class_character() {
    if (takes("\\")) return escape();
    if (at_end() || is_one_of(peek(), "-[]")) return "expected a character";
    if (peek() == '^') out_ += '\\';
    return copy_character() ? Problem{} : Problem{"not valid UTF-8"};
  }
};

class EcmaTranslator : Translator {
 public:
  using Translator::Translator;

  std::expected<std::string, std::string> translate() {
    while (!at_end()) {
      if (auto problem = in_class_ ? inside_class() : outside_class()) return mistake(*problem);
    }
    if (in_class_) return mistake("a [ is never closed");
    return std::move(out_);
  }

 private:
  using Problem = std::optional<std::string>;

  Problem outside_class() {
    if (takes("\\")) return escape();
    if (takes(".")) {
      out_ += "[^\\n\\r\\x{2028}\\x{2029}]";
      return {};
    }
    if (takes("[^]")) {
      out_ += "(?s:.)";
      return {};
    }
    if (takes("[]")) {
      out_ += "[^\\x{0}-\\x{10FFFF}]";
      return {};
    }
    if (peek() == '[') {
      in_class_ = true;
      out_ += take();
      if (takes("^")) out_ += '^';
      return {};
    }
    for (const std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"}) {
      if (rest_.starts_with(look))
        return "look-around (" + std::string{look} + "…) is not supported; say it with allOf and not";
    }
    if (takes("(?<")) {
      out_ += "(?P<";
      return {};
    }
    return copy_character() ? Problem{} : Problem{"not valid UTF-8"};
  }

  Problem inside_class() {
    if (takes("\\")) return escape();
    if (takes("]")) {
      in_class_ = false;
      out_ += ']';
      return {};
    }
    if (takes("[")) {  // RE2 would look for a class like [:alpha:]
      out_ += "\\[";
      return {};
    }
    return copy_character() ? Problem{} : Problem{"not valid UTF-8"};
  }

  Problem escape() {
    if (at_end()) return "it ends with a backslash";
    const char c = take();
    if (c == 'u') return unicode();
    if (c == 'c' && !at_end() && text::to_lower(peek()) >= 'a' && text::to_lower(peek()) <= 'z') {
      put_code_point(static_cast<unsigned char>(take()) % 32U);
      return {};
    }
    if (c >= '1' && c <= '9') return "back-references (\\" + std::string{c} + ") are not supported";
    if (c == 'k') return "back-references (\\k) are not supported";
    if (c == '0') {
      out_ += "\\x{0}";
    } else if (c == 's' || c == 'S') {
      return space(c == 'S');
    } else if (c == 'b' && in_class_) {
      out_ += "\\x{8}";
    } else if (is_one_of(c, "dDwWbBtnrvfxpP") || static_cast<unsigned char>(c) < 0x80) {
      return known_or_literal(c);
    } else {
      rest_ = std::string_view{rest_.data() - 1, rest_.size() + 1};
      return copy_character() ? Problem{} : Problem{"not valid UTF-8"};
    }
    return {};
  }

  Problem known_or_literal(char c) {
    const bool is_letter = text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z';
    const bool known = is_one_of(c, "dDwWbBtnrvfxpP");
    if (!is_letter || known) out_ += '\\';  // an escaped letter that means nothing is itself
    out_ += c;
    return {};
  }

  // ECMA's white space is Unicode's, RE2's is ASCII's.
  Problem space(bool negated) {
    constexpr std::string_view all = "\\t\\n\\v\\f\\r\\x{FEFF}\\p{Z}";
    if (!in_class_) {
      out_ += negated ? "[^" : "[";
      out_ += all;
      out_ += ']';
    } else if (negated) {
      out_ += "\\S";
    } else {
      out_ += all;
    }
    return {};
  }

  Problem unicode() {
    std::uint32_t code = 0;
    if (takes("{")) {
      const std::size_t end = rest_.find('}');
      if (end == std::string_view::npos || end == 0 || end > 6 || !base::read_hex(rest_.substr(0, end), code))
        return "expected \\u{…}";
      rest_.remove_prefix(end + 1);
    } else {
      if (rest_.size() < 4 || !base::read_hex(rest_.substr(0, 4), code))
        return "expected four hexadecimal digits after \\u";
      rest_.remove_prefix(4);
      std::uint32_t low = 0;
      const bool pair = code >= 0xD800 && code < 0xDC00 && rest_.starts_with("\\u") && rest_.size() >= 6 &&
                        base::read_hex(rest_.substr(2, 4), low) && low >= 0xDC00 && low < 0xE000;
      if (pair) {
        code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        rest_.remove_prefix(6);
      }
    }
    put_code_point(code);
    return {};
  }

  void put_code_point(std::uint32_t code) {
    out_ += "\\x{";
    base::append_hex(out_, code, 6, base::upper_hex_digits);
    out_ += '}';
  }

  bool in_class_ = false;
};

std::expected<Pattern, std::string> compile(std::expected<std::string, std::string> translated) {
  if (!translated) return std::unexpected(std::move(translated.error()));
  return text::compile_pattern(*translated, limits);
}

}  // namespace

std::expected<Pattern, std::string> compile_i_regexp(std::string_view expression, Anchoring anchoring) {
  if (expression.size() > expression_bytes_max) return mistake("it is longer than 1000 characters");
  auto translated = IRegexpTranslator{expression}.translate();
  if (translated && anchoring == Anchoring::whole) *translated = "\\A(?:" + *translated + ")\\z";
  return compile(std::move(translated));
}

std::expected<Pattern, std::string> compile_ecma_regex(std::string_view expression) {
  if (expression.size() > expression_bytes_max) return mistake("it is longer than 1000 characters");
  return compile(EcmaTranslator{expression}.translate());
}

}  // namespace reprise::json
