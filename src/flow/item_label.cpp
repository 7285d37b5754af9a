#include "flow/item_label.hpp"

#include <algorithm>

#include <boost/json/object.hpp>

#include "text/place.hpp"

namespace reprise::flow {
namespace {

class LabelScope final : public Scope {
 public:
  LabelScope(const Json& item, std::uint32_t index, const Json& params)
      : item_{item}, index_{std::int64_t{index}}, params_{params} {}

  std::expected<const Json*, std::string> find(std::span<const std::string> path, std::size_t& used) const override {
    used = 1;
    if (path.front() == "item") return &item_;
    if (path.front() == "index") return &index_;
    if (path.front() == "params") return &params_;
    return std::unexpected{"a label knows item, index and params only"};
  }

 private:
  const Json& item_;
  Json index_;
  const Json& params_;
};

std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text::shorten(text, label_characters_max);
}

bool is_plain(const Json& value) { return value.is_string() || json::is_number(value); }

std::string own_label(const Json& item) {
  if (is_plain(item)) {
    std::string text = json::to_plain(item);
    return text.size() <= label_characters_max ? text : std::string{};
  }
  const auto* const map = json::if_map(item);
  if (map == nullptr) return {};
  for (const char* key : {"id", "name"}) {
    const Json* const value = map->if_contains(key);
    if (value != nullptr && is_plain(*value)) return json::to_plain(*value);
  }
  return {};
}

}  // namespace

std::string item_label(const Step& step, const Json& item, std::uint32_t index, const Json& params) {
  if (!step.for_each) return {};
  if (step.label) {
    if (auto text = step.label->render(LabelScope{item, index, params}, Quoting::none)) return on_one_line(*text);
  }
  return on_one_line(own_label(item));
}

}  // namespace reprise::flow
