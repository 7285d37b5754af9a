#include "cli/options.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "text/nearest.hpp"

namespace reprise::cli {

void add_words(CLI::App& command, const std::string& name, const std::vector<std::string_view>& words,
               const std::string& help, const std::function<void(std::size_t)>& take) {
  const std::vector<std::string> known(words.begin(), words.end());  // the caller's may be gone when it is asked
  const auto choose = [known, name, take](const std::string& given) {
    const auto found = std::ranges::find(known, given);
    if (found != known.end()) return take(static_cast<std::size_t>(found - known.begin()));
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    throw CLI::ValidationError(name, fmt::format("expected {}, found {}{}", text::join_words(candidates), given,
                                                 text::did_you_mean(given, candidates)));
  };
  command.add_option_function<std::string>(name, choose, help)->option_text(fmt::format("{}", fmt::join(known, "|")));
}

void add_number(CLI::App& command, const std::string& name, NumberRange range, const std::string& help,
                const std::function<void(std::uint64_t)>& take) {
  const auto read = [name, range, take](const std::string& given) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    const bool is_whole = error == std::errc{} && stop == given.data() + given.size();
    if (!is_whole || number < range.min || number > range.max) {
      throw CLI::ValidationError(
          name, fmt::format("expected a whole number from {} to {}, found {}", range.min, range.max, given));
    }
    take(number);
  };
  command.add_option_function<std::string>(name, read, help)->option_text("N");
}

void add_format(CLI::App& command, bool& json, const std::string& help) {
  add_words(command, "--format", {"text", "json"}, help, [&json](std::size_t chosen) { json = chosen == 1; });
}

void add_store(CLI::App& command, std::string& store, StoreKind kind) {
  command
      .add_option("--store", store,
                  fmt::format("sqlite:PATH{} (default: REPRISE_STORE, else sqlite:.reprise/reprise.db)",
                              kind == StoreKind::any ? " or memory:" : ""))
      ->option_text("URL");
}

void add_run_name(CLI::App& command, std::string& run, Presence presence) {
  command.add_option("RUN", run, "an id, the beginning of one, @last or @last-failed")
      ->required(presence == Presence::required)
      ->option_text(" ");
}

void add_place(CLI::App& command, std::string& place, Presence presence) {
  command.add_option("STEP[ITEM]", place, "a step, or one item of it: fetch, 'fetch[57]'")
      ->required(presence == Presence::required)
      ->option_text(" ");
}

}  // namespace reprise::cli
