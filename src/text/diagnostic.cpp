#include <reprise/diagnostic.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise {
namespace {

constexpr std::size_t shown_max = 50;  // a page of mistakes is enough to start with

std::string_view name_of(Severity severity) noexcept { return severity == Severity::error ? "error" : "warning"; }

void render_one(const Diagnostic& diagnostic, std::string& out) {
  out += fmt::format("{}:{}:{}: {}: {}\n", text::safe_to_show(diagnostic.file), diagnostic.line, diagnostic.column,
                     name_of(diagnostic.severity), diagnostic.message);
  if (!diagnostic.source_line.empty()) {
    const std::string number = std::to_string(diagnostic.line);
    const std::string margin(number.size(), ' ');
    const std::uint32_t tail = std::clamp<std::uint32_t>(diagnostic.length, 1, 80) - 1;
    out += fmt::format("  {} | {}\n", number, diagnostic.source_line);
    out += fmt::format("  {} | {}^{}\n", margin, std::string(std::max<std::uint32_t>(diagnostic.caret, 1) - 1, ' '),
                       std::string(tail, '~'));
  }
  if (!diagnostic.help.empty()) out += fmt::format("  = {}\n", diagnostic.help);
}

}  // namespace

std::string render(std::span<const Diagnostic> diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.first(std::min(diagnostics.size(), shown_max)))
    render_one(diagnostic, out);
  if (diagnostics.size() > shown_max) out += fmt::format("… and {} more\n", diagnostics.size() - shown_max);
  return out;
}

std::string render_json(std::span<const Diagnostic> diagnostics) {
  text::Value list = text::Value::list();
  for (const Diagnostic& diagnostic : diagnostics) {
    text::Value entry = text::Value::map();
    entry.set("severity", std::string{name_of(diagnostic.severity)});
    entry.set("file", diagnostic.file);
    entry.set("line", static_cast<std::int64_t>(diagnostic.line));
    entry.set("column", static_cast<std::int64_t>(diagnostic.column));
    entry.set("message", diagnostic.message);
    entry.set("help", diagnostic.help);
    list.add(std::move(entry));
  }
  return text::to_json(list);
}

}  // namespace reprise
