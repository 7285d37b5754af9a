// Reading a map field by field, so that every mistake in it is found in one pass and each message has the same shape:
// the key, what was found, what is allowed, and the word that was probably meant.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/failure.hpp>

#include "text/document.hpp"
#include "text/duration.hpp"

namespace reprise::text {

// Collects the diagnostics of one document.
class Report {
 public:
  explicit Report(const Document& document) : document_{document} {}

  void error(const Node& node, std::string message, std::string help = {});
  void warning(const Node& node, std::string message, std::string help = {});
  bool has_errors() const noexcept { return errors_ > 0; }
  bool is_full() const noexcept { return diagnostics_.size() >= diagnostics_max; }  // nobody reads more of them
  Diagnostics take();                                                               // sorted by place

 private:
  static constexpr std::size_t diagnostics_max = 100;

  void add(Severity severity, const Node& node, std::string message, std::string help);

  const Document& document_;
  Diagnostics diagnostics_;
  std::size_t errors_ = 0;
};

// One value with the name it has in messages. The readers below report and return nullopt when the value is not acceptable.
struct Field {
  std::string_view key;
  const Node* node;  // never nullptr
};

struct WholeRange {
  std::int64_t min = 0;
  std::int64_t max = std::int64_t{1} << 32;
};

struct DecimalRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
};

std::optional<std::int64_t> read_whole(const Field& field, WholeRange range, Report& report);
std::optional<double> read_decimal(const Field& field, DecimalRange range, Report& report);
std::optional<Duration> read_decimal_duration(const Field& field, std::int64_t unit_ns, std::string_view unit_name,
                                              Report& report);
std::optional<Duration> read_duration(const Field& field, DurationGrammar grammar, Report& report);
std::optional<bool> read_boolean(const Field& field, Report& report);
std::optional<std::string_view> read_word(const Field& field, std::span<const std::string_view> allowed,
                                          Report& report);
std::optional<std::string_view> read_word(const Field& field, std::initializer_list<std::string_view> allowed,
                                          Report& report);
std::optional<std::vector<const Node*>> read_list(const Field& field, std::string_view of_what, Report& report,
                                                  std::size_t items_max = SIZE_MAX);

// A word of another tool and what to write here instead; `rewrite` may use the value.
struct Hint {
  std::string_view key;
  std::string (*rewrite)(const Node& value);
};

// The members of one map. Ask for each known key with find(); finish() reports the ones nobody asked for.
class Fields {
 public:
  // Reports and behaves like an empty map when the node is not a map. `name` is "" for the document itself.
  Fields(const Node& node, std::string_view name, Report& report);

  bool is_map() const noexcept { return node_.type == NodeType::mapping; }

  // nullopt when the key is absent.
  std::optional<Field> find(std::string_view key);

  // The same for inputs that programs write, where null means absent.
  std::optional<Field> find_given(std::string_view key);

  void finish(std::initializer_list<Hint> hints = {});

  // For maps whose unknown keys are allowed: only says that they do nothing.
  void finish_ignoring();

 private:
  const Node& node_;
  std::string_view name_;
  Report& report_;
  std::vector<std::string_view> known_;
};

}  // namespace reprise::text
