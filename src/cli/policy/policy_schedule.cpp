// reprise policy schedule: what happens if every attempt fails at once, as bars, as JSON, or as a picture.
#include "cli/io.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/saturating_time.hpp"
#include "text/duration.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

using text::format_duration;
using text::rough_duration;

constexpr std::size_t rows_max = 40;  // a screenful; the rest is counted

std::string stop_sentence(const Schedule& plan, std::uint64_t failures) {
  if (plan.stop == StopReason::none) return fmt::format("goes on after {} failures", failures);
  return fmt::format("stops after attempt {}: {}", plan.after_attempt, name_of(plan.stop));
}

Duration longest_wait(const Schedule& plan) {
  Duration longest{1};
  for (const DelayRange& range : plan.retries) longest = std::max(longest, range.max);
  return longest;
}

Duration sum_of(const Schedule& plan, Duration DelayRange::*part) {
  Duration sum{0};
  for (const DelayRange& range : plan.retries) {
    sum = base::saturating_sum(sum, range.*part);
  }
  return sum;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos ||
           locale.find("UTF8") != std::string_view::npos || locale.find("utf-8") != std::string_view::npos;
  }
  return false;
}

double share_of(Duration part, Duration whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

// Solid for the part that is always waited, light for where the draw may fall.
std::string bar(const DelayRange& range, Duration longest) {
  constexpr double width = 40;
  const bool utf8 = locale_is_utf8();
  const auto certain = static_cast<int>(share_of(range.min, longest) * width + 0.5);
  const auto possible =
      std::max(static_cast<int>(share_of(range.max, longest) * width + 0.5), range.max > Duration{0} ? 1 : 0);
  std::string drawn;
  for (int column = 0; column < possible; ++column) {
    const bool solid = column < certain || range.min == range.max;
    drawn += utf8 ? (solid ? "█" : "░") : (solid ? "#" : ".");
  }
  return drawn;
}

void print_text(const Schedule& plan, std::uint64_t failures) {
  const Duration longest = longest_wait(plan);
  if (!plan.retries.empty()) print(fmt::format("{:>5}  {:>9}  {:>21}\n", "retry", "wait", "between"));
  for (std::size_t index = 0; index < std::min(plan.retries.size(), rows_max); ++index) {
    const DelayRange& range = plan.retries[index];
    const std::string between = range.min == range.max
                                    ? "exactly"
                                    : fmt::format("{} and {}", rough_duration(range.min), rough_duration(range.max));
    print(fmt::format("{:>5}  {:>9}  {:>21}  {}\n", index + 1, rough_duration(range.nominal), between,
                      bar(range, longest)));
  }
  if (plan.retries.size() > rows_max)
    print(fmt::format("  {} {} more\n", locale_is_utf8() ? "…" : "...", plan.retries.size() - rows_max));
  if (!plan.retries.empty()) {
    const Duration least = sum_of(plan, &DelayRange::min);
    const Duration most = sum_of(plan, &DelayRange::max);
    print(least == most ? fmt::format("waits {} in all; ", rough_duration(most))
                        : fmt::format("waits between {} and {} in all; ", rough_duration(least), rough_duration(most)));
  }
  print(stop_sentence(plan, failures) + "\n");
}

void print_json(const Schedule& plan) {
  text::Value retries = text::Value::list();
  for (std::size_t index = 0; index < plan.retries.size(); ++index) {
    text::Value retry = text::Value::map();
    retry.set("retry", static_cast<std::int64_t>(index + 1));
    retry.set("nominal_ms", text::milliseconds(plan.retries[index].nominal));
    retry.set("min_ms", text::milliseconds(plan.retries[index].min));
    retry.set("max_ms", text::milliseconds(plan.retries[index].max));
    retries.add(std::move(retry));
  }
  text::Value stop;
  if (plan.stop != StopReason::none) {
    stop = text::Value::map();
    stop.set("reason", std::string{name_of(plan.stop)});
    stop.set("after_attempt", static_cast<std::int64_t>(plan.after_attempt));
  }
  text::Value answer = text::Value::map();
  answer.set("retries", std::move(retries));
  answer.set("stop", std::move(stop));
  print(text::to_json(answer) + "\n");
}

void print_svg(const Schedule& plan, std::uint64_t failures) {
  constexpr int row_height = 26;
  constexpr int left = 90;
  constexpr int chart_width = 460;
  constexpr int right = 150;
  const std::size_t rows = std::min(plan.retries.size(), rows_max);
  const int height = 70 + static_cast<int>(rows) * row_height;
  const Duration longest = longest_wait(plan);
  print(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"system-ui, "
                  "sans-serif\" font-size=\"13\" "
                  "role=\"img\" aria-label=\"Waits before each retry\">\n",
                  left + chart_width + right, height));
  print(
      "<style>text{fill:#24292f}.may{fill:#9ec5fe}.must{fill:#0b5ed7}"
      "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.may{fill:#2b4a78}.must{fill:#6ea8fe}}</style>\n");
  print("<text x=\"10\" y=\"24\" font-weight=\"600\">Waits before each retry</text>\n");
  for (std::size_t index = 0; index < rows; ++index) {
    const DelayRange& range = plan.retries[index];
    const int y = 40 + static_cast<int>(index) * row_height;
    const int certain = static_cast<int>(share_of(range.min, longest) * chart_width);
    const int possible = std::max(1, static_cast<int>(share_of(range.max, longest) * chart_width));
    const std::string label = range.min == range.max
                                  ? rough_duration(range.nominal)
                                  : fmt::format("{} – {}", rough_duration(range.min), rough_duration(range.max));
    print(fmt::format("<text x=\"10\" y=\"{}\">retry {}</text>", y + 15, index + 1));
    print(
        fmt::format("<rect class=\"may\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"3\"/>", left, y, possible));
    if (certain > 0)
      print(fmt::format("<rect class=\"must\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"3\"/>", left, y,
                        certain));
    print(fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", left + possible + 8, y + 14, label));
  }
  print(fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n</svg>\n", height - 12, stop_sentence(plan, failures)));
}

}  // namespace

int policy_schedule(const PolicyScheduleOptions& options) {
  const auto policy = load_policy(options.policy, Warnings::hide);
  if (!policy) return policy.error();
  const Schedule plan = schedule(*policy, options.failures);
  switch (options.format) {
    case PolicyScheduleOptions::Format::text:
      print_text(plan, options.failures);
      break;
    case PolicyScheduleOptions::Format::json:
      print_json(plan);
      break;
    case PolicyScheduleOptions::Format::svg:
      print_svg(plan, options.failures);
      break;
  }
  return exit_done;
}

}  // namespace reprise::cli
