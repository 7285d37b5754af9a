#include "observe/words.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <reprise/classify.hpp>

#include "base/rfc3339.hpp"
#include "event/evidence.hpp"
#include "policy/verdict.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

std::string shortened(std::string_view text) { return text::shorten(text, message_characters_max); }

// How the attempt ended, in numbers.
std::string ending_of(const Failure& failure) {
  if (failure.http_status) return "HTTP " + std::to_string(*failure.http_status);
  if (failure.signal) {
    const std::string_view name = signal_name(*failure.signal);
    return name.empty() ? "signal " + std::to_string(*failure.signal) : std::string{name};
  }
  if (failure.exit_code) return "exit " + std::to_string(*failure.exit_code);
  return "";
}

// Only the class is recorded with a decision. The kind is what the same evidence would be called today, if it fits the class.
FailureKind kind_of(const Failure& failure) {
  if (failure.kind != FailureKind::none || !failure.failure_class) return failure.kind;
  Failure evidence = failure;
  evidence.failure_class.reset();
  const Classification found = classify(evidence_of(evidence));
  return found.failed && found.failure_class == failure.failure_class ? found.kind : FailureKind::none;
}

constexpr std::size_t output_lines_max = 10;

void add_list(std::vector<std::string>& lines, std::string_view title, const std::vector<std::string>& list) {
  if (list.size() < 2) return;  // a single one stands in the message
  lines.emplace_back(title);
  for (const std::string& each : list) lines.push_back("  - " + text::shorten(each, message_characters_max));
}

// The last lines, unless they are one line that the message has already.
void add_end(std::vector<std::string>& lines, std::string_view what, std::string_view text, std::string_view message) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty() || (text.find('\n') == std::string_view::npos && message.find(text) != std::string_view::npos))
    return;
  std::vector<std::string> all;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find('\n');
    all.push_back("  | " + text::shorten(rest.substr(0, end), message_characters_max));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  const std::size_t first = all.size() > output_lines_max ? all.size() - output_lines_max : 0;
  lines.push_back("The end of its " + std::string{what} + (first > 0 ? " (--format json has more):" : ":"));
  lines.insert(lines.end(), all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
}

}  // namespace

std::string what_failed(const Failure& failure) {
  std::string words = ending_of(failure);
  if (!words.empty() && failure.message.find(words) != std::string::npos)
    return shortened(failure.message);  // it says that itself
  const auto add = [&](std::string_view text) {
    if (text.empty() || words.find(text) != std::string::npos) return;
    if (!words.empty()) words += ": ";
    words += text;
  };
  add(shortened(failure.type));
  const std::string message = shortened(failure.message);
  if (message.find(words) != std::string::npos && !words.empty()) return message;  // it says all of that itself
  add(message);
  if (!words.empty()) return words;
  return failure.kind == FailureKind::none ? "failed without a message" : std::string{name_of(failure.kind)};
}

std::string class_words(const Failure& failure) {
  if (policy::is_verdict(failure))
    return *failure.permanent ? "permanent, says the handler" : "not completed, says the handler";
  std::string words{failure.failure_class ? name_of(*failure.failure_class) : "not classified"};
  if (const FailureKind kind = kind_of(failure); kind != FailureKind::none) words += ", " + std::string{name_of(kind)};
  return words;
}

std::vector<std::string> evidence_lines(const Failure& failure) {
  const event::FailureEvidence evidence = event::evidence_in(failure);
  std::vector<std::string> lines;
  add_list(lines, "Mistakes in its result:", evidence.mistakes);
  add_list(lines, "Tests that failed:", evidence.failing);
  add_end(lines, "standard error", evidence.err, failure.message);
  add_end(lines, "output", evidence.out, failure.message);
  return lines;
}

std::string_view reason_words(StopReason reason) noexcept {
  constexpr std::array<std::string_view, 12> words{"it goes on",
                                                   "it was cancelled",
                                                   "this failure is permanent",
                                                   "this failure is not among those it retries",
                                                   "the handler gave no verdict",
                                                   "the circuit breaker was open",
                                                   "its attempts were used up",
                                                   "its time was over",
                                                   "its budget for waiting was used up",
                                                   "the step was visited too often",
                                                   "it was lost too often in a row",
                                                   "it is unclear whether it was done"};
  static_assert(words.size() == static_cast<std::size_t>(last_stop_reason) + 1);
  const auto number = static_cast<std::size_t>(reason);
  return number < words.size() ? words[number] : "of a reason this version does not know";
}

std::string numbered_attempt(std::uint64_t attempt, std::optional<std::uint64_t> max_attempts) {
  const bool is_known = max_attempts && attempt <= *max_attempts;
  return "attempt " + std::to_string(attempt) + (is_known ? "/" + std::to_string(*max_attempts) : "");
}

std::string numbered_attempt(std::uint64_t attempt, std::optional<std::uint64_t> max_attempts,
                             const AttemptCounts& counts) {
  const bool all_count = counts.interrupted == 0 && counts.lost == 0 && counts.used == attempt;
  if (all_count || (counts.used == 0 && counts.interrupted == 0 && counts.lost == 0))
    return numbered_attempt(attempt, max_attempts);
  std::string words = "attempt " + std::to_string(attempt) + " (" + std::to_string(counts.used) +
                      (max_attempts ? " of " + std::to_string(*max_attempts) : "") + " used";
  std::string rest;
  if (counts.interrupted > 0) rest = std::to_string(counts.interrupted) + " interrupted";
  if (counts.lost > 0) rest += (rest.empty() ? "" : ", ") + std::to_string(counts.lost) + " lost";
  return words + (rest.empty() ? "" : "; " + rest) + ")";
}

std::string asker_words(const std::optional<ChangeRequest>& request) {
  if (!request || request->by.empty()) return "";
  const std::string by = text::safe_to_show(request->by);
  const std::size_t colon = by.find(": ");
  if (colon == std::string::npos) return " by " + by;
  return " by " + by.substr(0, colon) + " (" + by.substr(colon + 2) + ")";
}

std::string work_name(std::string_view step, std::uint32_t item, bool has_items) {
  return has_items ? std::string{step} + "[" + std::to_string(item) + "]" : std::string{step};
}

std::string labelled(std::string work, std::string_view label) {
  return label.empty() ? work : work + " " + text::shorten(label, label.size());
}

std::string date_and_time(WallTime time) { return base::to_rfc3339(time); }

std::string clock_time(WallTime time) { return base::utc_clock(time) + "Z"; }

std::string calm_duration(Duration duration) {
  using namespace std::chrono;
  const auto tenths = std::max<std::int64_t>(0, round<milliseconds>(duration).count() + 50) / 100;
  if (tenths < 100) return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
  const auto all = std::max<std::int64_t>(0, floor<seconds>(duration).count());
  if (all < 60) return std::to_string(all) + "s";
  if (all < 3600) return std::to_string(all / 60) + "m" + std::to_string(all % 60) + "s";
  return std::to_string(all / 3600) + "h" + std::to_string(all % 3600 / 60) + "m";
}

std::string time_left(std::uint64_t count, double per_second) {
  const double seconds = std::min(static_cast<double>(count) / per_second, 1e8);  // three years are long enough
  const auto whole = static_cast<std::int64_t>(seconds) + (count > 0 ? 1 : 0);
  return whole < 10 ? std::to_string(whole) + "s" : calm_duration(std::chrono::seconds{whole});
}

std::string counted(std::uint64_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string{noun} + (number == 1 ? "" : "s");
}

std::string counted_retries(std::uint64_t number) {
  return number == 1 ? std::string{"1 retry"} : std::to_string(number) + " retries";
}

std::string rough_number(double number) {
  const auto tenths = static_cast<std::uint64_t>(std::max(0.0, number) * 10 + 0.5);
  if (tenths >= 100) return std::to_string((tenths + 5) / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  if (part == whole) return "100 %";
  const std::uint64_t tenths = std::clamp<std::uint64_t>(
      static_cast<std::uint64_t>(static_cast<double>(part) / static_cast<double>(whole) * 1000 + 0.5), 1, 999);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";  // never rounded to none or all
}

}  // namespace reprise::observe
