// Rules applied to a value, and the sentences about what does not fit.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json_number.hpp"
#include "json/json_schema_references.hpp"
#include "json/json_schema_rules.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::json::schema {
namespace {

using boost::json::array;
using boost::json::object;

constexpr std::size_t shown_characters_max = 40;
constexpr std::size_t alternatives_shown_max = 4;
constexpr std::size_t depth_max = 512;  // rules within rules: 64 levels of the value, several schemas at each
constexpr std::size_t text_bytes_per_step = 64;

std::string_view view(const boost::json::string& text) noexcept { return {text.data(), text.size()}; }
std::string_view key_of(const boost::json::key_value_pair& member) noexcept {
  return {member.key().data(), member.key().size()};
}

// Where a value is. Lives on the stack, one for each level, and becomes text only when there is something to say.
struct Place {
  const Place* parent = nullptr;
  std::string_view name = {};
  std::size_t index = 0;
  bool is_index = false;

  std::string pointer() const {
    if (parent == nullptr) return {};
    return pointer_to(parent->pointer(), is_index ? std::to_string(index) : std::string{name});
  }
};

struct Mistake {
  std::string pointer;
  std::string sentence;
};

// Where mistakes go. Without one only the answer counts, and checking ends at the first mistake.
struct Report {
  std::size_t max = mistakes_max;
  bool with_alternatives = true;  // say for each alternative why it does not fit; not again within those
  std::vector<Mistake> mistakes = {};
};

std::string shown(const Json& value) {
  if (value.is_array()) return value.get_array().empty() ? "an empty array" : "an array";
  if (const auto* map = if_map(value)) return map->empty() ? "an empty object" : "an object";
  return text::shorten(to_text(value), shown_characters_max);
}

std::string quoted(std::string_view name) { return "\"" + text::shorten(name, shown_characters_max) + "\""; }

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string{noun} + (count == 1 ? "" : "s");
}

std::string in_words(unsigned types) {
  constexpr std::pair<Type, std::string_view> all[] = {
      {type_object, "an object"}, {type_array, "an array"},     {type_string, "a string"},
      {type_number, "a number"},  {type_integer, "an integer"}, {type_boolean, "true or false"},
      {type_null, "null"},
  };
  std::string words;
  for (const auto& [bit, name] : all) {
    if ((types & bit) == 0) continue;
    if (!words.empty()) words += " or ";
    words += name;
  }
  return words.empty() ? "nothing" : words;
}

unsigned types_of(const Json& value) {
  if (is_number(value)) return is_whole(value) ? type_integer | type_number : type_number;
  switch (value.kind()) {
    case boost::json::kind::null:
      return type_null;
    case boost::json::kind::bool_:
      return type_boolean;
    case boost::json::kind::string:
      return type_string;
    case boost::json::kind::array:
      return type_array;
    default:
      return type_object;
  }
}

std::uint64_t characters_in(std::string_view text) noexcept {
  std::uint64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(text::first_character(text).bytes, 1));
  return count;
}

std::string listed(const array& values) {
  std::string words;
  for (std::size_t at = 0; at < values.size() && at < alternatives_shown_max; ++at)
    words += (at == 0 ? "" : ", ") + shown(values[at]);
  return values.size() > alternatives_shown_max ? words + " …" : words;
}

class Checker {
 public:
  explicit Checker(std::size_t steps) : steps_left_{steps} {}

  // Is everything right? When not, the report has at least one mistake, if there is a report.
  bool check(const Rule& rule, const Json& value, const Place& place, Report* report) {
    if (depth_ >= depth_max) too_much_ = true;
    if (!charge(1)) return false;
    if (rule.refuses_all) return fail(report, place, [&] { return "expected nothing here, found " + shown(value); });
    ++depth_;
    const bool fits = rule.reference != nullptr ? check(*rule.reference, value, place, report)
                                                : check_all(rule, value, place, report);
    --depth_;
    return fits;
  }

  bool too_much() const noexcept { return too_much_; }

 private:
  bool charge(std::size_t steps) noexcept {
    if (steps > steps_left_) too_much_ = true;
    steps_left_ -= std::min(steps, steps_left_);
    return !too_much_;
  }
  void charge_size(const Json& value) {
    if (!charge(1)) return;
    if (const auto* text = value.if_string()) charge(text->size() / text_bytes_per_step);
    if (const auto* list = value.if_array()) std::ranges::for_each(*list, [&](const Json& each) { charge_size(each); });
    if (const auto* map = if_map(value))
      std::ranges::for_each(*map, [&](const auto& each) { charge_size(each.value()); });
  }

  template <typename Sentence>
  static bool fail(Report* report, const Place& place, Sentence sentence) {
    if (report != nullptr && report->mistakes.size() < report->max)
      report->mistakes.push_back({place.pointer(), sentence()});
    return false;
  }
  // After a mistake it goes on only as long as further ones are wanted.
  bool goes_on(bool fits, const Report* report) const noexcept {
    return !too_much_ && (fits || (report != nullptr && report->mistakes.size() < report->max));
  }

  bool check_all(const Rule& rule, const Json& value, const Place& place, Report* report) {
    if (rule.types && (*rule.types & types_of(value)) == 0)  // anything more would only repeat it
      return fail(report, place, [&] { return "expected " + in_words(*rule.types) + ", found " + shown(value); });
    bool fits = check_values(rule, value, place, report);
    if (!goes_on(fits, report)) return fits;
    if (is_number(value)) fits = check_number(rule, value, place, report) && fits;
    if (const auto* text = value.if_string()) fits = check_string(rule, view(*text), place, report) && fits;
    if (const auto* list = value.if_array()) fits = check_array(rule, *list, place, report) && fits;
    if (const auto* map = if_map(value)) fits = check_object(rule, *map, value, place, report) && fits;
    if (!goes_on(fits, report)) return fits;
    return check_logic(rule, value, place, report) && fits;
  }

  bool check_values(const Rule& rule, const Json& value, const Place& place, Report* report) {
    if (rule.constant != nullptr) {
      charge_size(*rule.constant);
      if (!equal(*rule.constant, value))
        return fail(report, place, [&] { return "expected " + shown(*rule.constant) + ", found " + shown(value); });
    }
    if (rule.enumeration == nullptr) return true;
    charge_size(value);
    const auto [begin, end] = rule.enumeration_by_hash.equal_range(hash_of(value));
    const bool known = std::any_of(begin, end, [&](const auto& each) { return equal(*each.second, value); });
    return known || fail(report, place, [&] {
             return "expected one of " + listed(rule.enumeration->get_array()) + ", found " + shown(value);
           });
  }

  bool check_number(const Rule& rule, const Json& value, const Place& place, Report* report) {
    const auto expected = [&](std::string_view relation, const Json& bound) {
      return fail(report, place,
                  [&] { return "expected " + std::string{relation} + " " + shown(bound) + ", found " + shown(value); });
    };
    const auto is_less = [](const Json& left, const Json& right) {
      return compare_numbers(left, right) == std::partial_ordering::less;
    };
    bool fits = true;
    if (rule.minimum != nullptr && is_less(value, *rule.minimum)) fits = expected("at least", *rule.minimum);
    if (rule.maximum != nullptr && is_less(*rule.maximum, value)) fits = expected("at most", *rule.maximum);
    if (rule.exclusive_minimum != nullptr && !is_less(*rule.exclusive_minimum, value))
      fits = expected("more than", *rule.exclusive_minimum);
    if (rule.exclusive_maximum != nullptr && !is_less(value, *rule.exclusive_maximum))
      fits = expected("less than", *rule.exclusive_maximum);
    if (rule.multiple_of != nullptr && !is_multiple(value, *rule.multiple_of))
      fits = expected("a multiple of", *rule.multiple_of);
    return fits;
  }

  static bool check_range(const Range& range, std::uint64_t count, std::string_view noun, const Place& place,
                          Report* report) {
    if (range.min && count < *range.min)
      return fail(report, place, [&] {
        return "expected at least " + counted(*range.min, noun) + ", found " + std::to_string(count);
      });
    if (range.max && count > *range.max)
      return fail(report, place,
                  [&] { return "expected at most " + counted(*range.max, noun) + ", found " + std::to_string(count); });
    return true;
  }

  bool check_string(const Rule& rule, std::string_view text, const Place& place, Report* report) {
    bool fits = true;
    if (rule.length.min || rule.length.max) {
      charge(text.size() / text_bytes_per_step);
      fits = check_range(rule.length, characters_in(text), "character", place, report);
    }
    if (rule.pattern && !matches(*rule.pattern, text)) {
      fits = fail(report, place,
                  [&] { return "expected text that matches " + rule.pattern->text + ", found " + quoted(text); });
    }
    return fits;
  }

  bool matches(const NamedPattern& pattern, std::string_view text) {
    return charge(1 + text.size() / text_bytes_per_step) && pattern.pattern->matches(text);
  }

  bool check_array(const Rule& rule, const array& list, const Place& place, Report* report) {
    bool fits = check_range(rule.items_count, list.size(), "element", place, report);
    if (rule.unique_items) fits = check_unique(list, place, report) && fits;
    if (rule.items != nullptr || !rule.items_by_place.empty() || rule.additional_items != nullptr) {
      for (std::size_t at = 0; at < list.size() && goes_on(fits, report); ++at) {
        const Rule* each = at < rule.items_by_place.size() ? rule.items_by_place[at] : rule.additional_items;
        if (rule.items != nullptr) each = rule.items;
        if (each == nullptr) break;
        const Place inside{.parent = &place, .index = at, .is_index = true};
        fits = check(*each, list[at], inside, report) && fits;
      }
    }
    if (rule.contains == nullptr) return fits;
    const bool found =
        std::ranges::any_of(list, [&](const Json& each) { return check(*rule.contains, each, place, nullptr); });
    return (found || fail(report, place,
                          [] { return std::string{"expected an element that fits \"contains\", found none"}; })) &&
           fits;
  }

  bool check_unique(const array& list, const Place& place, Report* report) {
    std::unordered_multimap<std::size_t, std::size_t> places_by_hash;
    for (std::size_t at = 0; at < list.size(); ++at) {
      charge_size(list[at]);
      if (too_much_) return false;
      const std::size_t hash = hash_of(list[at]);
      const auto [begin, end] = places_by_hash.equal_range(hash);
      for (auto earlier = begin; earlier != end; ++earlier) {
        if (!charge(1)) return false;
        if (!equal(list[earlier->second], list[at])) continue;
        return fail(report, place, [&] {
          return "expected no element twice, found " + shown(list[at]) + " at " + std::to_string(earlier->second) +
                 " and at " + std::to_string(at);
        });
      }
      places_by_hash.emplace(hash, at);
    }
    return true;
  }

  bool check_object(const Rule& rule, const object& map, const Json& value, const Place& place, Report* report) {
    bool fits = check_range(rule.members_count, map.size(), "member", place, report);
    for (const std::string& name : rule.required) {
      if (!charge(1) || map.contains(name)) continue;
      fits = fail(report, place, [&] { return "expected a member " + quoted(name) + ", found none"; });
    }
    for (const Dependency& dependency : rule.dependencies) {
      if (charge(1) && map.contains(dependency.name))
        fits = check_dependency(dependency, map, value, place, report) && fits;
    }
    for (auto member = map.begin(); member != map.end() && goes_on(fits, report); ++member)
      fits = check_member(rule, *member, place, report) && fits;
    return fits;
  }

  bool check_dependency(const Dependency& dependency, const object& map, const Json& value, const Place& place,
                        Report* report) {
    if (dependency.rule != nullptr) return check(*dependency.rule, value, place, report);
    bool fits = true;
    for (const std::string& name : dependency.members) {
      if (!charge(1) || map.contains(name)) continue;
      fits = fail(report, place, [&] {
        return "expected a member " + quoted(name) + " beside " + quoted(dependency.name) + ", found none";
      });
    }
    return fits;
  }

  bool check_member(const Rule& rule, const boost::json::key_value_pair& member, const Place& place, Report* report) {
    const std::string name{key_of(member)};
    const Place inside{.parent = &place, .name = name};
    bool fits = rule.property_names == nullptr || check_name(*rule.property_names, name, inside, report);
    bool is_known = false;
    if (const auto property = rule.properties.find(name); property != rule.properties.end()) {
      is_known = true;
      fits = check(*property->second, member.value(), inside, report) && fits;
    }
    for (const auto& [pattern, property] : rule.pattern_properties) {
      if (!matches(pattern, name)) continue;
      is_known = true;
      fits = check(*property, member.value(), inside, report) && fits;
    }
    if (is_known || rule.additional_properties == nullptr) return fits;
    if (!rule.additional_properties->refuses_all)
      return check(*rule.additional_properties, member.value(), inside, report) && fits;
    return fail(report, inside,
                [&] { return "expected no member " + quoted(name) + ", found " + shown(member.value()); });
  }

  bool check_name(const Rule& rule, const std::string& name, const Place& place, Report* report) {
    Report about_name{.max = 1, .with_alternatives = false};
    if (check(rule, Json(name), place, report == nullptr ? nullptr : &about_name)) return true;
    if (about_name.mistakes.empty()) return false;
    return fail(report, place, [&] { return "its name: " + about_name.mistakes.front().sentence; });
  }

  bool check_logic(const Rule& rule, const Json& value, const Place& place, Report* report) {
    bool fits = true;
    for (const Rule* each : rule.all_of) {
      if (!goes_on(fits, report)) return fits;
      fits = check(*each, value, place, report) && fits;
    }
    const auto accepts = [&](const Rule* each) { return check(*each, value, place, nullptr); };
    if (!rule.any_of.empty() && std::ranges::none_of(rule.any_of, accepts))
      fits = fail_alternatives(rule.any_of, value, place, report);
    if (!rule.one_of.empty()) {
      const auto count = std::ranges::count_if(rule.one_of, accepts);
      if (count == 0) fits = fail_alternatives(rule.one_of, value, place, report);
      if (count > 1)
        fits = fail(report, place, [&] {
          return "expected that exactly one schema of \"oneOf\" fits, found that " + std::to_string(count) + " do";
        });
    }
    if (rule.negation != nullptr && accepts(rule.negation))
      fits = fail(report, place, [&] { return "expected anything but what fits \"not\", found " + shown(value); });
    if (rule.condition == nullptr) return fits;
    const Rule* branch = accepts(rule.condition) ? rule.consequence : rule.alternative;
    return (branch == nullptr || check(*branch, value, place, report)) && fits;
  }

  bool fail_alternatives(const std::vector<const Rule*>& rules, const Json& value, const Place& place, Report* report) {
    if (report == nullptr) return false;
    std::string reasons;
    for (std::size_t at = 0; at < rules.size() && report->with_alternatives && at < alternatives_shown_max; ++at) {
      Report about_one{.max = 1, .with_alternatives = false};
      check(*rules[at], value, place, &about_one);
      if (about_one.mistakes.empty()) continue;
      const Mistake& reason = about_one.mistakes.front();
      reasons += (reasons.empty() ? ": " : "; or ") + (reason.pointer == place.pointer() ? "" : reason.pointer + ": ") +
                 reason.sentence;
    }
    return fail(report, place,
                [&] { return "none of the " + counted(rules.size(), "alternative") + " fits" + reasons; });
  }

  std::size_t depth_ = 0;
  std::size_t steps_left_;
  bool too_much_ = false;
};

}  // namespace

std::vector<std::string> check_value(const Compiled& schema, const Json& value, std::size_t steps) {
  Checker checker{steps};
  Report report;
  checker.check(*schema.root, value, Place{}, &report);
  std::vector<std::string> sentences;
  if (checker.too_much()) {
    sentences.emplace_back(
        "the whole value: checking it was given up, it takes more than 100 million steps or 512 nested schemas; "
        "simplify the schema");
    report.mistakes.resize(std::min(report.mistakes.size(), mistakes_max - 1));
  }
  for (const Mistake& mistake : report.mistakes)
    sentences.push_back((mistake.pointer.empty() ? "the whole value" : text::shorten(mistake.pointer, 200)) + ": " +
                        mistake.sentence);
  return sentences;
}

}  // namespace reprise::json::schema
