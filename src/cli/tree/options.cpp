#include "cli/tree/options.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

CommandShape::Option& add(CommandShape& command, const std::string& names, const std::string& value,
                          const std::string& help, CommandShape::Take take) {
  CommandShape::Option option;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    option.names.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  option.value = value;
  option.description = help;
  option.takes_value = !value.empty();
  option.take = std::move(take);
  return command.options.emplace_back(std::move(option));
}

template <class Target>  // std::string, or one that may be absent
CommandShape::Take into(Target& target) {
  return [&target](const std::string& given) {
    target = given;
    return std::string{};
  };
}

CommandShape::Take into(std::vector<std::string>& target) {
  return [&target](const std::string& given) {
    target.push_back(given);
    return std::string{};
  };
}

CommandShape::Take one_of(std::vector<std::string> known, std::function<void(std::size_t)> take) {
  return [known = std::move(known), take = std::move(take)](const std::string& given) {
    const auto found = std::ranges::find(known, given);
    if (found == known.end()) {
      const std::vector<std::string_view> candidates(known.begin(), known.end());
      return fmt::format("expected {}, found {}{}", text::join_words(candidates), given,
                         text::did_you_mean(given, candidates));
    }
    take(static_cast<std::size_t>(found - known.begin()));
    return std::string{};
  };
}

}  // namespace

CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::string& target,
                                 const std::string& value, const std::string& help) {
  return add(command, name, value, help, into(target));
}

CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::optional<std::string>& target,
                                 const std::string& value, const std::string& help) {
  return add(command, name, value, help, into(target));
}

CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::vector<std::string>& target,
                                 const std::string& value, const std::string& help) {
  CommandShape::Option& option = add(command, name, value, help, into(target));
  option.may_repeat = true;
  return option;
}

void add_flag(CommandShape& command, const std::string& name, bool& target, const std::string& help) {
  add_flag(
      command, name, [&target] { target = true; }, help);
}

void add_flag(CommandShape& command, const std::string& name, std::function<void()> set, const std::string& help) {
  add(command, name, "", help, [set = std::move(set)](const std::string&) {
    set();
    return std::string{};
  });
}

void add_argument(CommandShape& command, const std::string& name, std::string& target, const std::string& help,
                  Presence presence) {
  command.arguments.push_back({.name = name,
                               .description = help,
                               .choices = {},
                               .is_required = presence == Presence::required,
                               .take = into(target)});
}

void add_arguments(CommandShape& command, const std::string& name, std::vector<std::string>& target,
                   const std::string& more, const std::string& help, Presence presence) {
  command.arguments.push_back({.name = name,
                               .description = help,
                               .choices = {},
                               .is_required = presence == Presence::required,
                               .may_repeat = true,
                               .more = more,
                               .take = into(target)});
}

Choices<Dialect> dialects() {
  Choices<Dialect> names;
  for (const Dialect dialect : all_dialects) names.emplace_back(name_of(dialect), dialect);
  return names;
}

void add_words(CommandShape& command, const std::string& name, const std::vector<std::string_view>& words,
               const std::string& help, const std::function<void(std::size_t)>& take) {
  const std::vector<std::string> known(words.begin(), words.end());  // the caller's may be gone when it is asked
  add(command, name, fmt::format("{}", fmt::join(known, "|")), help, one_of(known, take)).choices = known;
}

void add_word_argument(CommandShape& command, const std::string& name, const std::vector<std::string_view>& words,
                       std::string& target, const std::string& help, Presence presence) {
  const std::vector<std::string> known(words.begin(), words.end());
  command.arguments.push_back({.name = name,
                               .description = help,
                               .choices = known,
                               .is_required = presence == Presence::required,
                               .take = one_of(known, [&target, known](std::size_t at) { target = known.at(at); })});
}

void add_number(CommandShape& command, const std::string& name, NumberRange range, const std::string& help,
                const std::function<void(std::uint64_t)>& take) {
  add(command, name, "N", help, [range, take](const std::string& given) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    const bool is_whole = error == std::errc{} && stop == given.data() + given.size();
    if (!is_whole || number < range.min || number > range.max)
      return fmt::format("expected a whole number from {} to {}, found {}", range.min, range.max, given);
    take(number);
    return std::string{};
  });
}

void add_format(CommandShape& command, bool& json, const std::string& help) {
  add_words(command, "--format", {"text", "json"}, help, [&json](std::size_t chosen) { json = chosen == 1; });
}

void add_store(CommandShape& command, std::string& store, StoreKind kind) {
  add_option(command, "--store", store, "URL",
             fmt::format("sqlite:PATH{} (default: REPRISE_STORE, else sqlite:.reprise/reprise.db)",
                         kind == StoreKind::any ? " or memory:" : ""));
}

void add_run_name(CommandShape& command, std::string& run, Presence presence) {
  add_argument(command, "RUN", run, "an id, the beginning of one, @last or @last-failed", presence);
}

void add_place(CommandShape& command, std::string& place, Presence presence) {
  add_argument(command, "STEP[ITEM]", place, "a step, or one item of it: fetch, 'fetch[57]'", presence);
}

}  // namespace reprise::cli
