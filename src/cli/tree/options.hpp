// Options that several commands have: the same name, the same help, and the same answer to a mistake.
//
//   add_store(command, options.store);
//   add_option(command, "--id", options.id, "KEY", "the same key later finds the same run");
//   add_choice(command, "--from", options.from, Choices<Dialect>{{"native", Dialect::native}, …}, "the dialect of FILE");
//
// What they write to must live as long as the tree. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/dialect.hpp>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// ---- any value ----

// `name` may be two: "-n,--no-stdin". `value` stands for the value in help.
CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::string& target,
                                 const std::string& value, const std::string& help);
CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::optional<std::string>& target,
                                 const std::string& value, const std::string& help);
// May be given again.
CommandShape::Option& add_option(CommandShape& command, const std::string& name, std::vector<std::string>& target,
                                 const std::string& value, const std::string& help);
void add_flag(CommandShape& command, const std::string& name, bool& target, const std::string& help);
void add_flag(CommandShape& command, const std::string& name, std::function<void()> set, const std::string& help);

enum class Presence : bool { required, optional };
void add_argument(CommandShape& command, const std::string& name, std::string& target, const std::string& help,
                  Presence presence = Presence::required);
// Several; `more` stands behind the name in help.
void add_arguments(CommandShape& command, const std::string& name, std::vector<std::string>& target,
                   const std::string& more, const std::string& help, Presence presence = Presence::required);

// ---- values of a kind ----

// One of a few words; help and mistakes list them, and a mistake says which was probably meant. `take` gets its number.
void add_words(CommandShape& command, const std::string& name, const std::vector<std::string_view>& words,
               const std::string& help, const std::function<void(std::size_t)>& take);
void add_word_argument(CommandShape& command, const std::string& name, const std::vector<std::string_view>& words,
                       std::string& target, const std::string& help, Presence presence = Presence::required);

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// The same, each word with its value. `Target` takes a Value.
template <class Value, class Target>
void add_choice(CommandShape& command, const std::string& name, Target& target, const Choices<Value>& choices,
                const std::string& help) {
  std::vector<std::string_view> words;
  std::vector<Value> values;
  for (const auto& [word, value] : choices) {
    words.push_back(word);
    values.push_back(value);
  }
  add_words(command, name, words, help, [&target, values](std::size_t at) { target = values.at(at); });
}

// The dialects by name.
Choices<Dialect> dialects();

struct NumberRange {
  std::uint64_t min;
  std::uint64_t max;
};

// A whole number.
void add_number(CommandShape& command, const std::string& name, NumberRange range, const std::string& help,
                const std::function<void(std::uint64_t)>& take);

// The same. `Target` takes a std::uint64_t.
template <class Target>
void add_number(CommandShape& command, const std::string& name, Target& target, NumberRange range,
                const std::string& help) {
  add_number(command, name, range, help, [&target](std::uint64_t number) { target = number; });
}

// ---- those with one meaning everywhere ----

// --format text|json
void add_format(CommandShape& command, bool& json, const std::string& help = "default: text");

enum class StoreKind : bool { any, file };  // a store in memory is of no use to those who look at what others did
void add_store(CommandShape& command, std::string& store, StoreKind kind = StoreKind::any);

void add_run_name(CommandShape& command, std::string& run, Presence presence = Presence::required);
void add_place(CommandShape& command, std::string& place, Presence presence = Presence::optional);

}  // namespace reprise::cli
