// Reading with Boost.JSON's event parser, writing by hand.
//
// The parser's own handler is not used for two reasons: its doubles may be off by one unit in the last place, and its errors do not say
// what was expected. Boost.JSON's serializer is not used because it writes 0.2 as 2E-1.
#include "json/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value_stack.hpp>

#include "base/hex.hpp"
#include "json/json_number.hpp"
#include "text/ascii.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::json {
namespace {

namespace boost_json = boost::json;
using boost_json::error_code;

constexpr std::string_view blanks = " \t\r\n";

// Not UTF-8, and with a sign that no name of an environment variable has: only this file makes such a member.
constexpr std::string_view spelling_key = "\xFF=";

// The text of a number that is held by its spelling; nullptr for every other value.
const boost_json::string* spelling_of(const Json& value) noexcept {
  const boost_json::object* const object = value.if_object();
  if (object == nullptr || object->size() != 1 || object->begin()->key() != spelling_key) return nullptr;
  return object->begin()->value().if_string();
}

std::string written(double number);

// What the parser tells becomes values on a stack. The parser sees the whole text at once, so that numbers come in one piece.
class Builder {
 public:
  static constexpr std::size_t max_object_size = boost_json::object::max_size();
  static constexpr std::size_t max_array_size = boost_json::array::max_size();
  static constexpr std::size_t max_key_size = boost_json::string::max_size();
  static constexpr std::size_t max_string_size = boost_json::string::max_size();

  bool on_document_begin(error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return open(Inside::array); }
  bool on_object_begin(error_code&) { return open(Inside::object); }
  bool on_array_end(std::size_t count, error_code&) {
    stack_.push_array(count);
    return close();
  }
  bool on_object_end(std::size_t count, error_code&) {
    stack_.push_object(count);
    return close();
  }
  bool on_key_part(boost_json::string_view part, std::size_t, error_code&) { return push_part(part); }
  bool on_key(boost_json::string_view rest, std::size_t, error_code&) {
    stack_.push_key(rest);
    return true;
  }
  bool on_string_part(boost_json::string_view part, std::size_t, error_code&) { return push_part(part); }
  bool on_string(boost_json::string_view rest, std::size_t, error_code&) {
    stack_.push_string(rest);
    return true;
  }
  bool on_number_part(boost_json::string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, boost_json::string_view text, error_code&) {
    if (number == 0 && text.front() == '-') return push_spelling(text);
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, boost_json::string_view, error_code&) {
    stack_.push_uint64(number);
    return true;
  }
  bool on_double(double nearly, boost_json::string_view text, error_code& error) {
    double exact = nearly;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), exact);
    if (read.ec == std::errc::result_out_of_range) exact = nearly < 1 && nearly > -1 ? 0.0 : HUGE_VAL;
    if (!std::isfinite(exact)) {
      error = boost_json::error::exponent_overflow;
      return false;
    }
    if (written(exact) != std::string_view{text}) return push_spelling(text);
    stack_.push_double(exact);
    return true;
  }
  bool on_bool(bool value, error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(boost_json::string_view, error_code&) { return true; }
  bool on_comment(boost_json::string_view, error_code&) { return true; }

  Json take() { return stack_.release(); }

  enum class Inside : unsigned char { nothing, array, object };
  Inside inside() const noexcept { return depth_ == 0 ? Inside::nothing : containers_[depth_ - 1]; }

 private:
  bool open(Inside container) {
    if (depth_ < containers_.size()) containers_[depth_++] = container;
    return true;
  }
  bool close() {
    if (depth_ > 0) --depth_;
    return true;
  }
  bool push_spelling(boost_json::string_view text) {
    stack_.push_key(spelling_key);
    stack_.push_string(text);
    stack_.push_object(1);
    return true;
  }
  bool push_part(boost_json::string_view part) {
    stack_.push_chars(part);
    return true;
  }

  boost_json::value_stack stack_;
  std::array<Inside, json_depth_max + 1> containers_{};
  std::size_t depth_ = 0;
};

// What would have been right where the text breaks off or goes on in a wrong way.
std::string expectation(Builder::Inside inside, std::string_view before) {
  const std::size_t last = before.find_last_not_of(blanks);
  const char previous = last == std::string_view::npos ? '\0' : before[last];
  if (previous == '\0') return "expected a value";
  const bool in_object = inside == Builder::Inside::object;
  if (in_object && (previous == '{' || previous == ',')) return "expected a name in double quotes";
  if (previous == '[' || previous == ',' || previous == ':') return "expected a value";
  const bool ends_value = previous == '"' || previous == ']' || previous == '}' || previous == 'e' || previous == 'l' ||
                          (previous >= '0' && previous <= '9');
  if (!ends_value) return "this is not JSON";
  if (in_object) return "expected a comma or }";
  return inside == Builder::Inside::array ? "expected a comma or ]" : "this is not JSON";
}

bool misses_colon(std::string_view before, Builder::Inside inside) {
  const std::size_t quote = before.find_last_not_of(blanks);
  if (inside != Builder::Inside::object || quote == std::string_view::npos || before[quote] != '"') return false;
  std::size_t open = quote;  // a name stands after { or a comma, a value after a colon
  while (open > 0 && (before[open - 1] != '"' || (open > 1 && before[open - 2] == '\\'))) --open;
  const std::size_t mark = open > 1 ? before.substr(0, open - 1).find_last_not_of(blanks) : std::string_view::npos;
  return mark != std::string_view::npos && (before[mark] == '{' || before[mark] == ',');
}

// \ud83d, perhaps with the backslash of something else behind it.
bool ends_with_half_pair(std::string_view before) {
  if (before.ends_with('\\')) before.remove_suffix(1);
  const std::size_t escape = before.rfind("\\u");
  if (escape == std::string_view::npos || escape + 6 != before.size()) return false;
  const char first = text::to_lower(before[escape + 2]);
  const char second = text::to_lower(before[escape + 3]);
  return first == 'd' && (second == '8' || second == '9' || second == 'a' || second == 'b');
}

std::string explain(const error_code& error, const Builder& builder, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  if (error == boost_json::error::incomplete) {
    if (text.find_first_not_of(blanks) == std::string_view::npos) return "there is no value, the text is empty";
    return "the text ends before the value does";
  }
  if (error == boost_json::error::too_deep) return "nested deeper than " + std::to_string(json_depth_max) + " levels";
  if (error == boost_json::error::extra_data) return "there is more text after the value";
  if (error == boost_json::error::exponent_overflow) return "the number is too large";
  if (error == boost_json::error::expected_hex_digit) return "expected four hexadecimal digits after \\u";
  if (error == boost_json::error::illegal_leading_surrogate || error == boost_json::error::illegal_trailing_surrogate ||
      error == boost_json::error::expected_utf16_escape)
    return "half of a surrogate pair";
  if (error != boost_json::error::syntax) return error.message();
  if (offset < text.size() && text::first_character(text.substr(offset)).bytes == 0) return "not valid UTF-8";
  if (offset < text.size() && static_cast<unsigned char>(text[offset]) < 0x20)
    return "a line end or control character inside of a value; write it as an escape like \\n";
  if (ends_with_half_pair(before)) return "half of a surrogate pair";
  if (before.ends_with('\\')) return "unknown escape";
  return misses_colon(before, builder.inside()) ? "expected a colon" : expectation(builder.inside(), before);
}

void put_escaped(std::string& out, char c) {
  constexpr std::string_view plain = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (std::size_t at = 0; at < plain.size(); at += 2) {
    if (plain[at] != c) continue;
    out += '\\';
    out += plain[at + 1];
    return;
  }
  out += "\\u00";
  base::append_hex(out, static_cast<unsigned char>(c), 2);
}

constexpr bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void put_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t bytes = text::first_character(text).bytes;
    if (bytes > 1) {
      out += text.substr(0, bytes);
    } else if (bytes == 1) {
      put_escaped(out, text.front());
    } else {
      out += "\xEF\xBF\xBD";
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  out += '"';
}

template <typename Whole>
void put_whole(std::string& out, Whole number) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  out.append(buffer.data(), end);
}

std::string written(double number) {
  if (!std::isfinite(number)) return "null";  // no text says so, only arithmetic can; JSON has no word for it
  const double size = std::fabs(number);
  const bool is_handy = size == 0 || (size >= 1e-7 && size < 1e21);  // as JavaScript does it
  std::array<char, 48> buffer{};
  const auto form = is_handy ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, form).ptr;
  std::string text{buffer.data(), end};
  if (is_handy && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string_view view(const boost_json::string& text) noexcept { return {text.data(), text.size()}; }

void put(std::string& out, const Json& value);

void put_array(std::string& out, const boost_json::array& list) {
  out += '[';
  bool is_first = true;
  for (const Json& element : list) {
    if (!std::exchange(is_first, false)) out += ',';
    put(out, element);
  }
  out += ']';
}

void put_object(std::string& out, const boost_json::object& map) {
  out += '{';
  bool is_first = true;
  for (const auto& member : map) {
    if (!std::exchange(is_first, false)) out += ',';
    put_string(out, {member.key().data(), member.key().size()});
    out += ':';
    put(out, member.value());
  }
  out += '}';
}

void put(std::string& out, const Json& value) {
  if (const boost_json::string* const spelling = spelling_of(value)) {
    out += view(*spelling);
    return;
  }
  switch (value.kind()) {
    case boost_json::kind::null:
      out += "null";
      return;
    case boost_json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case boost_json::kind::int64:
      return put_whole(out, value.get_int64());
    case boost_json::kind::uint64:
      return put_whole(out, value.get_uint64());
    case boost_json::kind::double_:
      out += written(value.get_double());
      return;
    case boost_json::kind::string:
      return put_string(out, view(value.get_string()));
    case boost_json::kind::array:
      return put_array(out, value.get_array());
    case boost_json::kind::object:
      return put_object(out, value.get_object());
  }
}

bool equal_lists(const boost_json::array& left, const boost_json::array& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t at = 0; at < left.size(); ++at) {
    if (!equal(left[at], right[at])) return false;
  }
  return true;
}

bool equal_maps(const boost_json::object& left, const boost_json::object& right) {
  if (left.size() != right.size()) return false;
  for (const auto& member : left) {
    const Json* other = right.if_contains(member.key());
    if (other == nullptr || !equal(member.value(), *other)) return false;
  }
  return true;
}

}  // namespace

std::expected<Json, std::string> parse_json(std::string_view text) {
  boost_json::parse_options options;
  options.max_depth = json_depth_max;
  boost_json::basic_parser<Builder> parser{options};
  error_code error;
  std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost_json::error::extra_data;
  if (!error) return parser.handler().take();
  const text::Place place = text::place_of_offset(text, used);
  return std::unexpected("line " + std::to_string(place.line) + ", column " + std::to_string(place.column) + ": " +
                         explain(error, parser.handler(), text, used));
}

bool is_number(const Json& value) noexcept { return value.is_number() || spelling_of(value) != nullptr; }

bool is_map(const Json& value) noexcept { return if_map(value) != nullptr; }

const boost_json::object* if_map(const Json& value) noexcept {
  return spelling_of(value) == nullptr ? value.if_object() : nullptr;
}

std::optional<Json> number_in(std::string_view text) {
  if (text.empty() || (text.front() != '-' && !text::is_digit(text.front())) || !text::is_digit(text.back()))
    return std::nullopt;  // what parse_json() would read as something else, or without the blanks around it
  auto value = parse_json(text);
  return value && is_number(*value) ? std::optional{*std::move(value)} : std::nullopt;
}

Json computable(const Json& value) noexcept {
  const boost_json::string* const spelling = spelling_of(value);
  if (spelling == nullptr) return value;
  const char* const begin = spelling->data();
  const char* const end = begin + spelling->size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(begin, end, whole); read.ec == std::errc{} && read.ptr == end)
    return Json(whole);
  double real = 0;  // and stays so for what is too small: what is too large was not read
  std::from_chars(begin, end, real);
  return Json(real);
}

std::string to_text(const Json& value) {
  std::string out;
  put(out, value);
  return out;
}

std::string to_plain(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return std::string{view(value.get_string())};
  return to_text(value);
}

bool equal(const Json& left, const Json& right) {
  if (is_number(left) || is_number(right)) {
    return is_number(left) && is_number(right) && compare_numbers(left, right) == std::partial_ordering::equivalent;
  }
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case boost_json::kind::array:
      return equal_lists(left.get_array(), right.get_array());
    case boost_json::kind::object:
      return equal_maps(left.get_object(), right.get_object());
    case boost_json::kind::string:
      return view(left.get_string()) == view(right.get_string());
    case boost_json::kind::bool_:
      return left.get_bool() == right.get_bool();
    default:
      return true;
  }
}

}  // namespace reprise::json
