// Reading a filter word by word, and asking it.
#include "index/filter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/rfc3339.hpp"
#include "text/ascii.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"

namespace reprise::index {
namespace {

using Mistake = std::unexpected<FilterMistake>;
using Numbers = std::vector<NumberRange>;

constexpr std::array<std::string_view, 17> known_keys{"attempts", "class", "error",  "exit", "fingerprint", "flow",
                                                      "http",     "item",  "key",    "kind", "label",       "older",
                                                      "parent",   "since", "status", "step", "until"};

// A value and where it begins in its word.
struct Value {
  std::string text = {};
  std::size_t offset = 0;
};

struct Word {
  std::size_t number = 0;
  std::string_view key = {};
  std::vector<Value> values = {};

  Mistake wrong(const Value& value, std::string message, std::string help = {}) const {
    return Mistake{{number, value.offset, std::move(message), std::move(help)}};
  }
};

// The text in double quotes that begins at `at`, which moves behind it.
std::expected<std::string, FilterMistake> take_quoted(std::string_view word, std::size_t number, std::size_t& at) {
  const std::size_t opened = at++;
  std::string text;
  while (at < word.size() && word[at] != '"') {
    if (word[at] == '\\' && at + 1 < word.size() && (word[at + 1] == '"' || word[at + 1] == '\\')) ++at;
    text += word[at++];
  }
  if (at == word.size()) return Mistake{{number, opened, "the quotes are not closed", "write error:\"two words\""}};
  ++at;
  return text;
}

std::expected<std::vector<Value>, FilterMistake> values_in(std::string_view word, std::size_t number, std::size_t at) {
  std::vector<Value> values;
  while (true) {
    Value value{.offset = at};
    if (at < word.size() && word[at] == '"') {
      auto text = take_quoted(word, number, at);
      if (!text) return std::unexpected{text.error()};
      value.text = std::move(*text);
      if (at < word.size() && word[at] != ',')
        return Mistake{{number, at, "a comma or the end is expected behind the quotes", ""}};
    } else {
      const std::size_t end = std::min(word.find(',', at), word.size());
      value.text = word.substr(at, end - at);
      at = end;
    }
    if (value.text.empty()) return Mistake{{number, value.offset, "there is no value", "write key:value"}};
    values.push_back(std::move(value));
    if (values.size() > values_max)
      return Mistake{
          {number, at, "more than " + std::to_string(values_max) + " values", "use a range such as item:20-300"}};
    if (at == word.size()) return values;
    ++at;
  }
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// 17, 20-30, and 3+ for "three and more".
std::optional<NumberRange> range_in(std::string_view text) {
  if (text.ends_with('+')) {
    const auto from = number_in(text.substr(0, text.size() - 1));
    if (!from) return std::nullopt;
    return NumberRange{*from, std::numeric_limits<std::uint64_t>::max()};
  }
  const std::size_t dash = text.find('-');
  const auto from = number_in(text.substr(0, dash));
  const auto to = dash == std::string_view::npos ? from : number_in(text.substr(dash + 1));
  if (!from || !to || *to < *from) return std::nullopt;
  return NumberRange{*from, *to};
}

std::expected<void, FilterMistake> read_ranges(const Word& word, std::uint64_t max, std::string_view example,
                                               Numbers& out) {
  for (const Value& value : word.values) {
    const auto range = range_in(value.text);
    if (!range || range->from > max)
      return word.wrong(value, "\"" + value.text + "\" is no " + std::string{word.key} + " and no range of them",
                        "write " + std::string{example});
    out.push_back(*range);
  }
  return {};
}

// 429, 500-599, or 5xx.
std::expected<void, FilterMistake> read_http(const Word& word, Numbers& out) {
  for (const Value& value : word.values) {
    const std::string_view text = value.text;
    if (text.size() == 3 && text[0] >= '1' && text[0] <= '5' && text::to_lower(text[1]) == 'x' &&
        text::to_lower(text[2]) == 'x') {
      const auto hundred = static_cast<std::uint64_t>(text[0] - '0') * 100;
      out.push_back({hundred, hundred + 99});
      continue;
    }
    const auto range = range_in(text);
    if (!range || range->from < 100 || range->to > 599)
      return word.wrong(value, "\"" + value.text + "\" is no HTTP status", "write http:429, http:5xx or http:500-504");
    out.push_back(*range);
  }
  return {};
}

template <typename T>
std::expected<void, FilterMistake> read_names(const Word& word, std::optional<T> (*named)(std::string_view) noexcept,
                                              std::span<const std::string_view> names, std::vector<T>& out) {
  for (const Value& value : word.values) {
    const auto found = named(value.text);
    if (!found)
      return word.wrong(value,
                        "\"" + value.text + "\" is no " + std::string{word.key} + text::did_you_mean(value.text, names),
                        "it is one of " + text::join_words(names));
    out.push_back(*found);
  }
  return {};
}

std::expected<void, FilterMistake> read_status(const Word& word, std::vector<std::string>& out) {
  static constexpr std::array<std::string_view, 6> names{"running",   "interrupted", "paused",
                                                         "succeeded", "failed",      "canceled"};
  for (const Value& value : word.values) {
    const std::string_view text = value.text == "cancelled" ? "canceled" : std::string_view{value.text};
    if (std::ranges::find(names, text) == names.end())
      return word.wrong(value, "\"" + value.text + "\" is no status of a run" + text::did_you_mean(text, names),
                        "it is one of " + text::join_words(names));
    out.emplace_back(text);
  }
  return {};
}

std::expected<Duration, FilterMistake> duration_in(const Word& word, const Value& value) {
  const auto duration = text::parse_duration(value.text, text::DurationGrammar::native);
  if (duration) return *duration;
  return word.wrong(
      value, "\"" + value.text + "\" is no duration: " + duration.error().message,
      duration.error().remedy.empty() ? "write " + std::string{word.key} + ":2h" : duration.error().remedy);
}

std::expected<void, FilterMistake> read_time(const Word& word, std::optional<FilterTime>& out) {
  const Value& value = word.values.front();
  if (word.values.size() > 1) return word.wrong(word.values[1], "one time is enough");
  if (out) return word.wrong(value, std::string{word.key} + ": is given twice", "keep one of them");
  if (const auto at = base::parse_rfc3339(value.text)) {
    out = FilterTime{.at = WallTime{at->time_since_epoch()}};
    return {};
  }
  const auto ago = duration_in(word, value);
  if (!ago)
    return word.wrong(value, "\"" + value.text + "\" is neither a duration nor a time",
                      "write " + std::string{word.key} + ":24h or " + std::string{word.key} + ":2026-11-18T08:00:00Z");
  out = FilterTime{.ago = *ago};
  return {};
}

std::expected<void, FilterMistake> read_older(const Word& word, std::optional<Duration>& out) {
  if (word.values.size() > 1) return word.wrong(word.values[1], "one duration is enough");
  if (out) return word.wrong(word.values.front(), "older: is given twice", "keep one of them");
  const auto duration = duration_in(word, word.values.front());
  if (!duration) return std::unexpected{duration.error()};
  out = *duration;
  return {};
}

void read_labels(const Word& word, Filter& filter) {
  for (const Value& value : word.values) {
    const std::size_t equals = value.text.find('=');
    if (equals == std::string::npos) {
      filter.item_labels.push_back(value.text);
    } else {
      filter.run_labels.emplace_back(value.text.substr(0, equals), value.text.substr(equals + 1));
    }
  }
}

void read_texts(const Word& word, std::vector<std::string>& out) {
  for (const Value& value : word.values) out.push_back(value.text);
}

std::expected<void, FilterMistake> read_word(const Word& word, Filter& filter) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  const std::string_view key = word.key;
  if (key == "status") return read_status(word, filter.statuses);
  if (key == "class") return read_names(word, &failure_class_named, failure_class_names(), filter.classes);
  if (key == "kind") return read_names(word, &failure_kind_named, failure_kind_names(), filter.kinds);
  if (key == "http") return read_http(word, filter.http);
  if (key == "exit") return read_ranges(word, 255, "exit:75 or exit:64-74", filter.exits);
  if (key == "item") return read_ranges(word, any, "item:17,20-30", filter.items);
  if (key == "attempts") return read_ranges(word, any, "attempts:3, attempts:2-4 or attempts:3+", filter.attempts);
  if (key == "since") return read_time(word, filter.since);
  if (key == "until") return read_time(word, filter.until);
  if (key == "older") return read_older(word, filter.older);
  if (key == "label") {
    read_labels(word, filter);
  } else {
    read_texts(word, key == "flow"     ? filter.flows
                     : key == "key"    ? filter.keys
                     : key == "parent" ? filter.parents
                     : key == "step"   ? filter.steps
                     : key == "error"  ? filter.errors
                                       : filter.fingerprints);
  }
  return {};
}

Mistake unknown_key(std::size_t number, std::string_view key) {
  return Mistake{{number, 0, "a filter has no \"" + std::string{key} + ":\"" + text::did_you_mean(key, known_keys),
                  "it has " + text::join_words(known_keys, "and")}};
}

std::expected<void, FilterMistake> read(std::string_view text, std::size_t number, Filter& filter) {
  if (text.size() > word_bytes_max)
    return Mistake{{number, word_bytes_max, "longer than " + std::to_string(word_bytes_max) + " bytes", ""}};
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return Mistake{{number, 0, "\"" + std::string{text} + "\" is no filter: it has no colon",
                    "write key:value, such as step:" + std::string{text}}};
  const std::string_view key = text.substr(0, colon);
  if (std::ranges::find(known_keys, key) == known_keys.end()) return unknown_key(number, key);
  auto values = values_in(text, number, colon + 1);
  if (!values) return std::unexpected{values.error()};
  return read_word({number, key, std::move(*values)}, filter);
}

template <typename Words>
std::expected<Filter, FilterMistake> parse(const Words& words) {
  Filter filter;
  std::size_t number = 0;
  for (const auto& word : words) {
    if (number == words_max) return Mistake{{number, 0, "more than " + std::to_string(words_max) + " words", ""}};
    if (auto done = read(word, number, filter); !done) return std::unexpected{done.error()};
    ++number;
  }
  return filter;
}

// Blanks part words unless they stand in quotes. Quotes that are not closed are found when the word is read.
std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t from = 0;
  bool quoted = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const bool blank = at == text.size() || (!quoted && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n'));
    if (blank) {
      if (at > from) words.push_back(text.substr(from, at - from));
      from = at + 1;
    } else if (quoted && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    }
  }
  if (from < text.size()) words.push_back(text.substr(from));  // a backslash at the very end of open quotes
  return words;
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char left, char right) { return text::to_lower(left) == text::to_lower(right); };
  return !std::ranges::search(text, part, same).empty();
}

bool is_one_of(std::string_view text, const std::vector<std::string>& names) {
  return names.empty() || std::ranges::find(names, text) != names.end();
}

bool begins_with_one_of(std::string_view text, const std::vector<std::string>& beginnings) {
  return beginnings.empty() ||
         std::ranges::any_of(beginnings, [&](const std::string& begin) { return text.starts_with(begin); });
}

bool is_in(std::optional<std::uint64_t> number, const Numbers& ranges) {
  return ranges.empty() ||
         (number && std::ranges::any_of(ranges, [&](NumberRange range) { return range.has(*number); }));
}

std::optional<std::uint64_t> unsigned_of(std::optional<int> number) {
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

}  // namespace

WallTime FilterTime::before(WallTime now) const noexcept {
  return ago ? now - std::min(*ago, now.time_since_epoch()) : at;
}

bool Filter::looks_at_runs() const noexcept {
  return !statuses.empty() || !flows.empty() || !keys.empty() || !parents.empty() || since || until || older ||
         !run_labels.empty();
}

bool Filter::looks_at_items() const noexcept {
  return !steps.empty() || !items.empty() || !classes.empty() || !kinds.empty() || !http.empty() || !exits.empty() ||
         !attempts.empty() || !errors.empty() || !fingerprints.empty() || !item_labels.empty();
}

bool Filter::matches(const RunSubject& run, WallTime now) const {
  const auto has_label = [&](const auto& label) { return std::ranges::find(run.labels, label) != run.labels.end(); };
  return is_one_of(run.status, statuses) && is_one_of(run.flow, flows) && is_one_of(run.key, keys) &&
         begins_with_one_of(run.parent, parents) && (!since || run.created >= since->before(now)) &&
         (!until || run.created < until->before(now)) &&
         (!older || run.changed <= now - std::min(*older, now.time_since_epoch())) &&
         std::ranges::all_of(run_labels, has_label);
}

bool Filter::matches(const ItemSubject& item) const {
  if (!is_one_of(item.step, steps) || !is_in(item.item, items) || !is_in(item.attempts, attempts)) return false;
  if (!std::ranges::all_of(item_labels, [&](const std::string& part) { return contains(item.label, part); }))
    return false;
  if (classes.empty() && kinds.empty() && http.empty() && exits.empty() && errors.empty() && fingerprints.empty())
    return true;
  if (item.failure == nullptr) return false;
  const Failure& failure = *item.failure;
  const auto said = [&](const std::string& part) {
    return contains(failure.message, part) || contains(failure.type, part);
  };
  return (classes.empty() ||
          (item.failure_class && std::ranges::find(classes, *item.failure_class) != classes.end())) &&
         (kinds.empty() || std::ranges::find(kinds, failure.kind) != kinds.end()) &&
         is_in(unsigned_of(failure.http_status), http) && is_in(unsigned_of(failure.exit_code), exits) &&
         begins_with_one_of(item.fingerprint, fingerprints) && std::ranges::all_of(errors, said);
}

std::expected<Filter, FilterMistake> parse_filter(std::span<const std::string> words) { return parse(words); }
std::expected<Filter, FilterMistake> parse_filter(std::string_view text) { return parse(words_in(text)); }

bool is_filter_word(std::string_view word) noexcept {
  const std::size_t colon = word.find(':');
  const std::size_t bracket = word.find('[');
  return colon != std::string_view::npos && colon > 0 && colon < bracket;
}

}  // namespace reprise::index
