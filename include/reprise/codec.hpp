// Values as bytes: what handlers and functions take and give back, written to the log and read again after a crash.
//
//   struct Order { std::string id; std::int64_t cents = 0; };
//   REPRISE_FIELDS(Order, id, cents)                       // in Order's own namespace, after the type
//   std::string bytes = reprise::Codec<Order>::encode(order);          // {"id":"A-17","cents":1999}
//   std::expected<Order, std::string> back = reprise::Codec<Order>::decode(bytes);
//
// Built in: bool, numbers, enums, std::string, std::optional, std::vector, std::array, std::pair, std::tuple, maps whose keys are std::string, chrono durations
// and system times, Json, Bytes, and types with REPRISE_FIELDS. All are JSON, except that a std::string, Json or Bytes that stands alone is its own bytes.
// Fields that are missing keep their defaults, unknown ones are ignored: a struct may gain and lose fields while runs are open. For other types
// specialise Codec, and codec::Form where they stand inside of lists and structs.
// What has no Codec does not compile: the message names the type and the remedy. Bounds: 64 levels of nesting. Thread safety: none needed, these are values.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace reprise {

// Codec<T>::encode(const T&) -> std::string; decode(std::string_view) -> std::expected<T, std::string>, the error a sentence for people.
template <class T>
struct Codec;

template <class T>
concept Storable = std::is_void_v<T> || requires(const T& value, std::string_view bytes) {
  { Codec<T>::encode(value) } -> std::same_as<std::string>;
  { Codec<T>::decode(bytes) } -> std::same_as<std::expected<T, std::string>>;
};

// JSON as it is. Alone it is not looked at; within other values it has to be one JSON value.
struct Json {
  std::string text = "null";

  bool operator==(const Json&) const = default;
};

// Bytes as they are; base64 within other values.
struct Bytes {
  std::string data = {};

  bool operator==(const Bytes&) const = default;
};

namespace codec {

inline constexpr std::size_t depth_max = 64;

// Reads one JSON value piece by piece. After a mistake every call says no; `mistake()` is the first one, with its place.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) noexcept : text_{text} {}

  bool read_null() noexcept;  // false without a mistake when the next value is something else
  bool read(bool& value);
  bool read(std::string& value);
  bool read_number(std::string_view& spelling);     // as it is written
  bool begin(char bracket);                         // '[' or '{'
  bool next_element();                              // false at the end of the list, or after a mistake
  bool next_field(std::string& name);               // false at the end of the object, or after a mistake
  bool skip(std::string_view* spelling = nullptr);  // any value
  bool at_string() noexcept;
  bool at_end();  // nothing but blanks is left

  bool wrong(std::string what);  // takes down a mistake at this place; always false
  bool failed() const noexcept { return !mistake_.empty(); }
  const std::string& mistake() const noexcept { return mistake_; }

 private:
  bool next(char end, bool& more);
  void skip_blanks() noexcept;
  bool take(std::string_view word);
  bool read_escape(std::string& value);
  bool read_hex(std::uint32_t& unit);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  bool first_ = false;  // of a list or object that has just begun
  std::string mistake_ = {};
};

void put_string(std::string& out, std::string_view text);  // with quotes; bytes that are no UTF-8 stay as they are
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);
std::string to_text(std::chrono::sys_time<std::chrono::nanoseconds> time);
std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> time_in(std::string_view text);

template <class T>
struct Form;  // put(std::string&, const T&) and get(JsonReader&, T&) -> bool

template <class T>
concept HasForm = requires(std::string& out, JsonReader& reader, const T& value, T& into) {
  Form<T>::put(out, value);
  { Form<T>::get(reader, into) } -> std::same_as<bool>;
};

template <class T>
concept HasFields = requires(const T* type) {
  reprise_fields(type);
};

template <>
struct Form<bool> {
  static void put(std::string& out, bool value) { out += value ? "true" : "false"; }
  static bool get(JsonReader& reader, bool& value) { return reader.read(value); }
};

// Whole numbers and fractions, each exact. What JSON cannot say about fractions is a string: "NaN", "Infinity", "-Infinity".
template <class T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) struct Form<T> {
  static void put(std::string& out, T value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) {
        out += std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        return;
      }
    }
    std::array<char, 64> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), end);
  }

  static bool get(JsonReader& reader, T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (reader.at_string()) return get_named(reader, value);
    }
    std::string_view spelling;
    if (!reader.read_number(spelling)) return false;
    const auto [end, error] = std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
    if (error == std::errc{} && end == spelling.data() + spelling.size()) return true;
    return reader.wrong("the number " + std::string{spelling} + " does not fit");
  }

 private:
  static bool get_named(JsonReader& reader, T& value) {
    std::string name;
    if (!reader.read(name)) return false;
    if (name == "NaN")
      value = std::numeric_limits<T>::quiet_NaN();
    else if (name == "Infinity")
      value = std::numeric_limits<T>::infinity();
    else if (name == "-Infinity")
      value = -std::numeric_limits<T>::infinity();
    else
      return reader.wrong("expected a number");
    return true;
  }
};

template <class T>
requires std::is_enum_v<T>
struct Form<T> {
  using Number = std::underlying_type_t<T>;
  static void put(std::string& out, T value) { Form<Number>::put(out, static_cast<Number>(value)); }
  static bool get(JsonReader& reader, T& value) {
    Number number{};
    if (!Form<Number>::get(reader, number)) return false;
    value = static_cast<T>(number);
    return true;
  }
};

template <>
struct Form<std::string> {
  static void put(std::string& out, const std::string& value) { put_string(out, value); }
  static bool get(JsonReader& reader, std::string& value) { return reader.read(value); }
};

template <>
struct Form<Json> {
  static void put(std::string& out, const Json& value) {
    JsonReader reader{value.text};
    if (reader.skip() && reader.at_end())
      out += value.text;
    else
      put_string(out, value.text);  // not JSON: kept as the text it is
  }
  static bool get(JsonReader& reader, Json& value) {
    std::string_view spelling;
    if (!reader.skip(&spelling)) return false;
    value.text = spelling;
    return true;
  }
};

template <>
struct Form<Bytes> {
  static void put(std::string& out, const Bytes& value) { put_string(out, to_base64(value.data)); }
  static bool get(JsonReader& reader, Bytes& value) {
    std::string text;
    if (!reader.read(text)) return false;
    auto bytes = from_base64(text);
    if (!bytes) return reader.wrong("expected base64");
    value.data = std::move(*bytes);
    return true;
  }
};

template <class T>
concept IsOptional = requires {
  []<class U>(const std::optional<U>*) {}(static_cast<const T*>(nullptr));
};

template <HasForm T>
struct Form<std::optional<T>> {
  static_assert(!IsOptional<T>, "an optional of an optional cannot be told apart in JSON");
  static void put(std::string& out, const std::optional<T>& value) {
    if (value)
      Form<T>::put(out, *value);
    else
      out += "null";
  }
  static bool get(JsonReader& reader, std::optional<T>& value) {
    value.reset();
    if (reader.read_null()) return true;
    return !reader.failed() && Form<T>::get(reader, value.emplace());
  }
};

template <class Range>
void put_list(std::string& out, const Range& values) {
  out += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!std::exchange(first, false)) out += ',';
    Form<typename Range::value_type>::put(out, value);
  }
  out += ']';
}

template <HasForm T>
struct Form<std::vector<T>> {
  static void put(std::string& out, const std::vector<T>& values) { put_list(out, values); }
  static bool get(JsonReader& reader, std::vector<T>& values) {
    values.clear();
    if (!reader.begin('[')) return false;
    while (reader.next_element()) {
      T value{};
      if (!Form<T>::get(reader, value)) return false;
      values.push_back(std::move(value));
    }
    return !reader.failed();
  }
};

template <HasForm T, std::size_t count>
struct Form<std::array<T, count>> {
  static void put(std::string& out, const std::array<T, count>& values) { put_list(out, values); }
  static bool get(JsonReader& reader, std::array<T, count>& values) {
    if (!reader.begin('[')) return false;
    std::size_t found = 0;
    while (reader.next_element()) {
      if (found == count) return reader.wrong("more than " + std::to_string(count) + " elements");
      if (!Form<T>::get(reader, values[found++])) return false;
    }
    return !reader.failed() && (found == count || reader.wrong("expected " + std::to_string(count) + " elements"));
  }
};

// Pairs and tuples are lists, too.
template <class Tuple>
struct TupleForm {
  static void put(std::string& out, const Tuple& values) {
    out += '[';
    std::apply(
        [&out](const auto&... each) {
          bool first = true;
          ((std::exchange(first, false) ? void() : void(out += ','),
            Form<std::remove_cvref_t<decltype(each)>>::put(out, each)),
           ...);
        },
        values);
    out += ']';
  }
  static bool get(JsonReader& reader, Tuple& values) {
    if (!reader.begin('[')) return false;
    const bool all = std::apply([&reader](auto&... each) { return (get_element(reader, each) && ...); }, values);
    if (!all) return false;
    return !reader.next_element() ? !reader.failed() : reader.wrong("too many elements");
  }

 private:
  template <class T>
  static bool get_element(JsonReader& reader, T& value) {
    if (!reader.next_element()) return reader.failed() ? false : reader.wrong("too few elements");
    return Form<T>::get(reader, value);
  }
};
template <HasForm A, HasForm B>
struct Form<std::pair<A, B>> : TupleForm<std::pair<A, B>> {};
template <HasForm... T>
struct Form<std::tuple<T...>> : TupleForm<std::tuple<T...>> {};

// Maps are objects, in the order of their keys: equal maps have equal bytes.
template <class Map>
struct MapForm {
  using Value = typename Map::mapped_type;
  static bool get(JsonReader& reader, Map& values) {
    values.clear();
    if (!reader.begin('{')) return false;
    for (std::string name; reader.next_field(name);) {
      Value value{};
      if (!Form<Value>::get(reader, value)) return false;
      values.insert_or_assign(name, std::move(value));
    }
    return !reader.failed();
  }
  static void put(std::string& out, const Map& values) {
    std::vector<const typename Map::value_type*> sorted;
    sorted.reserve(values.size());
    for (const auto& each : values) sorted.push_back(&each);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto* left, const auto* right) { return left->first < right->first; });
    char joint = '{';
    for (const auto* each : sorted) {
      out += std::exchange(joint, ',');
      put_string(out, each->first);
      out += ':';
      Form<Value>::put(out, each->second);
    }
    out += sorted.empty() ? "{}" : "}";
  }
};
template <HasForm T, class Less, class Allocator>
struct Form<std::map<std::string, T, Less, Allocator>> : MapForm<std::map<std::string, T, Less, Allocator>> {};
template <HasForm T, class Hash, class Equal, class Allocator>
struct Form<std::unordered_map<std::string, T, Hash, Equal, Allocator>>
    : MapForm<std::unordered_map<std::string, T, Hash, Equal, Allocator>> {};

// A duration is a list of its ticks and how many seconds one tick is, [1500,1,1000] for 1500ms: exact, and read by any unit that can hold it.
template <class Rep, class Period>
struct Form<std::chrono::duration<Rep, Period>> {
  static void put(std::string& out, std::chrono::duration<Rep, Period> value) {
    out += '[';
    Form<Rep>::put(out, value.count());
    out += ',' + std::to_string(Period::num) + ',' + std::to_string(Period::den) + ']';
  }
  static bool get(JsonReader& reader, std::chrono::duration<Rep, Period>& value) {
    std::tuple<Rep, std::intmax_t, std::intmax_t> parts{};
    if (!TupleForm<decltype(parts)>::get(reader, parts)) return false;
    const auto [ticks, seconds, parts_of_a_second] = parts;
    if (seconds == Period::num && parts_of_a_second == Period::den) {
      value = std::chrono::duration<Rep, Period>{ticks};
      return true;
    }
    return convert(reader, ticks, seconds, parts_of_a_second, value);
  }

 private:
  static bool convert(JsonReader& reader, Rep ticks, std::intmax_t num, std::intmax_t den,
                      std::chrono::duration<Rep, Period>& value) {
    if (num <= 0 || den <= 0) return reader.wrong("a tick has to be longer than nothing");
    if constexpr (std::is_floating_point_v<Rep>) {
      value = std::chrono::duration<Rep, Period>{ticks * static_cast<Rep>(num) / static_cast<Rep>(den) * Period::den /
                                                 Period::num};
      return true;
    } else {
      std::intmax_t scaled = static_cast<std::intmax_t>(ticks);
      std::intmax_t divisor = 0;
      if (__builtin_mul_overflow(scaled, num, &scaled) || __builtin_mul_overflow(scaled, Period::den, &scaled) ||
          __builtin_mul_overflow(den, Period::num, &divisor))
        return reader.wrong("the duration does not fit");
      if (scaled % divisor != 0) return reader.wrong("the duration is no whole number of the unit it is read as");
      if (!std::in_range<Rep>(scaled / divisor)) return reader.wrong("the duration does not fit");
      value = std::chrono::duration<Rep, Period>{static_cast<Rep>(scaled / divisor)};
      return true;
    }
  }
};

// RFC 3339, UTC.
template <class Duration>
struct Form<std::chrono::sys_time<Duration>> {
  static void put(std::string& out, std::chrono::sys_time<Duration> value) {
    put_string(out, to_text(std::chrono::time_point_cast<std::chrono::nanoseconds>(value)));
  }
  static bool get(JsonReader& reader, std::chrono::sys_time<Duration>& value) {
    std::string text;
    if (!reader.read(text)) return false;
    const auto time = time_in(text);
    if (!time) return reader.wrong("expected a time such as 2026-11-18T08:00:00Z");
    value = std::chrono::floor<Duration>(*time);
    return true;
  }
};

template <HasFields T>
struct Form<T> {
  static void put(std::string& out, const T& value) {
    char joint = '{';
    std::apply(
        [&](const auto&... field) {
          ((out += std::exchange(joint, ','), put_string(out, field.first), out += ':',
            put_member(out, value.*(field.second))),
           ...);
        },
        reprise_fields(static_cast<const T*>(nullptr)));
    out += joint == '{' ? "{}" : "}";
  }
  static bool get(JsonReader& reader, T& value) {
    if (!reader.begin('{')) return false;
    for (std::string name; reader.next_field(name);) {
      if (!get_field(reader, name, value)) return false;
    }
    return !reader.failed();
  }

 private:
  template <class Member>
  static void put_member(std::string& out, const Member& member) {
    static_assert(HasForm<Member>,
                  "this field's type needs a Codec, REPRISE_FIELDS or a built-in type of <reprise/codec.hpp>");
    if constexpr (HasForm<Member>) Form<Member>::put(out, member);
  }
  static bool get_field(JsonReader& reader, const std::string& name, T& value) {
    bool known = false;
    const bool fine = std::apply(
        [&](const auto&... field) {
          return ((name != field.first || (known = true, get_member(reader, value.*(field.second)))) && ...);
        },
        reprise_fields(static_cast<const T*>(nullptr)));
    return fine && (known || reader.skip());
  }
  template <class Member>
  static bool get_member(JsonReader& reader, Member& member) {
    if constexpr (HasForm<Member>)
      return Form<Member>::get(reader, member);
    else
      return false;
  }
};

template <class T>
std::string to_json(const T& value) {
  std::string out;
  Form<T>::put(out, value);
  return out;
}

template <class T>
std::expected<T, std::string> from_json(std::string_view bytes) {
  T value{};
  JsonReader reader{bytes};
  if (Form<T>::get(reader, value) && reader.at_end()) return value;
  return std::unexpected{reader.mistake()};
}

}  // namespace codec

template <class T>
requires codec::HasForm<T>
struct Codec<T> {
  static std::string encode(const T& value) { return codec::to_json(value); }
  static std::expected<T, std::string> decode(std::string_view bytes) { return codec::from_json<T>(bytes); }
};

// Alone, these are the bytes themselves: as handlers that take and return std::string always had it.
template <>
struct Codec<std::string> {
  static std::string encode(const std::string& value) { return value; }
  static std::expected<std::string, std::string> decode(std::string_view bytes) { return std::string{bytes}; }
};
template <>
struct Codec<Json> {
  static std::string encode(const Json& value) { return value.text; }
  static std::expected<Json, std::string> decode(std::string_view bytes) { return Json{std::string{bytes}}; }
};
template <>
struct Codec<Bytes> {
  static std::string encode(const Bytes& value) { return value.data; }
  static std::expected<Bytes, std::string> decode(std::string_view bytes) { return Bytes{std::string{bytes}}; }
};

// ---- Names with types: the compiler checks caller against handler ----------------------------------------

//   constexpr reprise::Call<Receipt(const Order&)> charge{"charge"};
template <class>
struct Call;

template <class A>
using In = std::remove_cvref_t<A>;

template <class R, class A>
struct Call<R(A)> {
  static_assert(Storable<R>,
                "the result of this Call needs a Codec, REPRISE_FIELDS or a built-in type of <reprise/codec.hpp>");
  static_assert(Storable<In<A>>,
                "the input of this Call needs a Codec, REPRISE_FIELDS or a built-in type of <reprise/codec.hpp>");
  std::string_view name;
};

template <class R>
struct Call<R()> {
  static_assert(Storable<R>,
                "the result of this Call needs a Codec, REPRISE_FIELDS or a built-in type of <reprise/codec.hpp>");
  std::string_view name;
};

}  // namespace reprise

// The fields of a struct by name, for its JSON: at most 32. Stands in the type's own namespace, after the type.
#define REPRISE_FIELDS(Type, ...)                                                         \
  constexpr auto reprise_fields(const Type*) {                                            \
    return std::make_tuple(REPRISE_DETAIL_EACH(REPRISE_DETAIL_FIELD, Type, __VA_ARGS__)); \
  }
#define REPRISE_DETAIL_FIELD(Type, field) \
  std::pair<std::string_view, decltype(&Type::field)> { #field, &Type::field }

#define REPRISE_DETAIL_AGAIN ()
#define REPRISE_DETAIL_EXPAND(...) REPRISE_DETAIL_EXPAND3(REPRISE_DETAIL_EXPAND3(__VA_ARGS__))
#define REPRISE_DETAIL_EXPAND3(...) REPRISE_DETAIL_EXPAND2(REPRISE_DETAIL_EXPAND2(__VA_ARGS__))
#define REPRISE_DETAIL_EXPAND2(...) REPRISE_DETAIL_EXPAND1(REPRISE_DETAIL_EXPAND1(__VA_ARGS__))
#define REPRISE_DETAIL_EXPAND1(...) REPRISE_DETAIL_EXPAND0(REPRISE_DETAIL_EXPAND0(__VA_ARGS__))
#define REPRISE_DETAIL_EXPAND0(...) __VA_ARGS__
#define REPRISE_DETAIL_EACH(macro, Type, ...) \
  __VA_OPT__(REPRISE_DETAIL_EXPAND(REPRISE_DETAIL_STEP(macro, Type, __VA_ARGS__)))
#define REPRISE_DETAIL_STEP(macro, Type, first, ...) \
  macro(Type, first) __VA_OPT__(, REPRISE_DETAIL_STEP_AGAIN REPRISE_DETAIL_AGAIN(macro, Type, __VA_ARGS__))
#define REPRISE_DETAIL_STEP_AGAIN() REPRISE_DETAIL_STEP
