#include "text/value.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "text/ascii.hpp"
#include "text/scalar.hpp"
#include "text/utf8.hpp"

namespace reprise::text {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

std::string newline(int indent, int depth) {
  return indent == 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent * depth), ' ');
}

void write_json(const Value& value, int indent, int depth, std::string& out) {
  const auto write_all = [&](const auto& entries, char open, char close, const auto& write_entry) {
    out += open;
    for (std::size_t index = 0; index < entries.size(); ++index) {
      if (index > 0) out += ',';
      out += newline(indent, depth + 1);
      write_entry(entries[index]);
    }
    if (!entries.empty()) out += newline(indent, depth);
    out += close;
  };
  value.visit(Overloaded{
      [&](std::monostate) { out += "null"; },
      [&](bool truth) { out += truth ? "true" : "false"; },
      [&](const Value::Number& number) { out += number.text; },
      [&](const std::string& text) { out += json_string(text); },
      [&](const Value::List& list) {
        write_all(list, '[', ']', [&](const Value& item) { write_json(item, indent, depth + 1, out); });
      },
      [&](const Value::Map& map) {
        write_all(map, '{', '}', [&](const auto& member) {
          out += json_string(member.first);
          out += indent == 0 ? ":" : ": ";
          write_json(member.second, indent, depth + 1, out);
        });
      },
  });
}

// Plain where every YAML reader, old ones too, takes it for the same text.
std::string yaml_string(const std::string& text) {
  constexpr std::string_view misread[] = {"on", "off", "yes", "no", "y", "n", "true", "false", "null"};
  const auto harmless = [](char c) {
    return (to_lower(c) >= 'a' && to_lower(c) <= 'z') || is_digit(c) || c == '_' || c == '.' || c == '%' || c == '-';
  };
  const auto letter = [](char c) { return to_lower(c) >= 'a' && to_lower(c) <= 'z'; };
  // 1h30m and 25% are text to every reader; 0x1F, 1_000 and 2026-01-01 are numbers or dates to some.
  const bool like_a_duration = is_digit(text.empty() ? ' ' : text.front()) &&
                               (letter(text.back()) || text.back() == '%') &&
                               text.find_first_of("_-xXoObB") == std::string::npos;
  const bool plain = !text.empty() && (letter(text.front()) || like_a_duration) &&
                     std::ranges::all_of(text, harmless) && scalar_type(text) == NodeType::string &&
                     std::ranges::find(misread, lowered(text)) == std::ranges::end(misread);
  return plain ? text : json_string(text);  // a JSON string is a YAML double-quoted scalar
}

bool holds_scalars_only(const Value::List& list) {
  return std::ranges::none_of(list, [](const Value& item) { return item.is_list() || item.is_map(); });
}

void write_yaml(const Value& value, int depth, std::string& out);

void write_yaml_inline(const Value& value, std::string& out) {
  value.visit(Overloaded{
      [&](const std::string& text) { out += yaml_string(text); },
      [&](const Value::List& list) {
        out += '[';
        for (std::size_t index = 0; index < list.size(); ++index) {
          if (index > 0) out += ", ";
          write_yaml_inline(list[index], out);
        }
        out += ']';
      },
      [&](const auto&) { write_json(value, 0, 0, out); },
  });
}

// What stands after "key:" or "-": on the same line if it can.
void write_yaml_after(const Value& value, int depth, std::string& out) {
  const bool block = !value.empty() && value.visit(Overloaded{
                                           [](const Value::List& list) { return !holds_scalars_only(list); },
                                           [](const Value::Map&) { return true; },
                                           [](const auto&) { return false; },
                                       });
  if (block) {
    out += '\n';
    write_yaml(value, depth, out);
    return;
  }
  out += ' ';
  write_yaml_inline(value, out);
  out += '\n';
}

void write_yaml(const Value& value, int depth, std::string& out) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  value.visit(Overloaded{
      [&](const Value::Map& map) {
        if (map.empty()) out += indent + "{}\n";
        for (const auto& [key, member] : map) {
          out += indent + yaml_string(key) + ":";
          write_yaml_after(member, depth + 1, out);
        }
      },
      [&](const Value::List& list) {
        if (list.empty()) out += indent + "[]\n";
        for (const Value& item : list) {
          out += indent + "-";
          write_yaml_after(item, depth + 1, out);
        }
      },
      [&](const auto&) {
        out += indent;
        write_yaml_inline(value, out);
        out += '\n';
      },
  });
}

}  // namespace

Value::Value(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  data_ = Number{std::string(buffer, error == std::errc{} ? end : buffer)};
}

bool Value::empty() const noexcept {
  return visit(Overloaded{
      [](const List& list) { return list.empty(); },
      [](const Map& map) { return map.empty(); },
      [](const auto&) { return false; },
  });
}

Value milliseconds(Duration duration) {
  constexpr std::int64_t ns_per_millisecond = 1'000'000;
  return Value::Number{decimal_text(duration, ns_per_millisecond)};
}

std::string to_json(const Value& value, int indent) {
  std::string out;
  write_json(value, indent, 0, out);
  return out;
}

std::string to_yaml(const Value& value) {
  std::string out;
  write_yaml(value, 0, out);
  return out;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view written = text.substr(0, std::max<std::size_t>(character.bytes, 1));
    text.remove_prefix(written.size());
    if (character.bytes == 0) {
      out += "\\ufffd";
    } else if (written == "\"" || written == "\\") {
      out += '\\';
      out += written;
    } else if (written == "\n" || written == "\t" || written == "\r") {
      out += written == "\n" ? "\\n" : written == "\t" ? "\\t" : "\\r";
    } else if (character.code_point <= 0xFFFF && is_control(character.code_point)) {
      out += fmt::format("\\u{:04x}", character.code_point);
    } else {
      out += written;
    }
  }
  return out + "\"";
}

}  // namespace reprise::text
