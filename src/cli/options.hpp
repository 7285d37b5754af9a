// Options that several commands have: the same name, the same help, and the same answer to a mistake.
//
//   add_store(*command, options.store);
//   add_choice(*command, "--from", options.from, Choices<Dialect>{{"native", Dialect::native}, …}, "the dialect of FILE");
//
// What they write to must live as long as the parser. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace reprise::cli {

// One of a few words; help and mistakes list them, and a mistake says which was probably meant. `take` gets its number.
void add_words(CLI::App& command, const std::string& name, const std::vector<std::string_view>& words,
               const std::string& help, const std::function<void(std::size_t)>& take);

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// The same, each word with its value. `Target` takes a Value.
template <class Value, class Target>
void add_choice(CLI::App& command, const std::string& name, Target& target, const Choices<Value>& choices,
                const std::string& help) {
  std::vector<std::string_view> words;
  std::vector<Value> values;
  for (const auto& [word, value] : choices) {
    words.push_back(word);
    values.push_back(value);
  }
  add_words(command, name, words, help, [&target, values](std::size_t at) { target = values.at(at); });
}

struct NumberRange {
  std::uint64_t min;
  std::uint64_t max;
};

// A whole number.
void add_number(CLI::App& command, const std::string& name, NumberRange range, const std::string& help,
                const std::function<void(std::uint64_t)>& take);

// The same. `Target` takes a std::uint64_t.
template <class Target>
void add_number(CLI::App& command, const std::string& name, Target& target, NumberRange range,
                const std::string& help) {
  add_number(command, name, range, help, [&target](std::uint64_t number) { target = number; });
}

// --format text|json
void add_format(CLI::App& command, bool& json, const std::string& help = "default: text");

enum class StoreKind : bool { any, file };  // a store in memory is of no use to those who look at what others did
void add_store(CLI::App& command, std::string& store, StoreKind kind = StoreKind::any);

enum class Presence : bool { required, optional };
void add_run_name(CLI::App& command, std::string& run, Presence presence = Presence::required);
void add_place(CLI::App& command, std::string& place, Presence presence = Presence::optional);

}  // namespace reprise::cli
