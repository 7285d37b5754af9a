// A tree of values to be written: as JSON, or as YAML that a person would write.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <reprise/failure.hpp>

namespace reprise::text {

class Value {
 public:
  struct Number {  // already in its written form, so that nothing is lost on the way
    std::string text;
    bool operator==(const Number&) const = default;
  };
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;  // keeps the order

  Value() = default;  // null
  Value(bool value) : data_{value} {}
  Value(std::int64_t value) : data_{Number{std::to_string(value)}} {}
  Value(double value);
  Value(Number value) : data_{std::move(value)} {}
  Value(std::string value) : data_{std::move(value)} {}
  Value(const char* value) : data_{std::string{value}} {}

  static Value list() { return Value{Data{List{}}}; }
  static Value map() { return Value{Data{Map{}}}; }

  void add(Value item) { std::get<List>(data_).push_back(std::move(item)); }
  void set(std::string key, Value value) { std::get<Map>(data_).emplace_back(std::move(key), std::move(value)); }

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), data_);
  }
  bool is_map() const noexcept { return std::holds_alternative<Map>(data_); }
  bool is_list() const noexcept { return std::holds_alternative<List>(data_); }
  bool empty() const noexcept;  // a list or map without entries

 private:
  using Data = std::variant<std::monostate, bool, Number, std::string, List, Map>;
  explicit Value(Data data) : data_{std::move(data)} {}
  Data data_;
};

// One line, no blanks at the end. With `indent`, over several lines.
std::string to_json(const Value& value, int indent = 0);

// Block style, lists of scalars in flow style, words quoted where YAML would misread them. Ends with a line end.
std::string to_yaml(const Value& value);

std::string json_string(std::string_view text);

// Milliseconds with as many decimals as it takes.
Value milliseconds(Duration duration);

}  // namespace reprise::text
