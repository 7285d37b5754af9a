#include "json/json_schema_references.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "base/hex.hpp"

namespace reprise::json::schema {
namespace {

std::string_view view(const boost::json::string& text) noexcept { return {text.data(), text.size()}; }

struct Uri {
  std::string_view scheme;     // with its colon
  std::string_view authority;  // with its //
  std::string_view path;
  std::string_view query;     // with its ?
  std::string_view fragment;  // with its #
};

std::string_view cut(std::string_view& text, std::size_t bytes) noexcept {
  const std::string_view part = text.substr(0, bytes);
  text.remove_prefix(part.size());
  return part;
}

Uri split_uri(std::string_view text) noexcept {
  Uri uri;
  const std::size_t colon = text.find_first_of(":/?#");
  if (colon != std::string_view::npos && colon > 0 && text[colon] == ':') uri.scheme = cut(text, colon + 1);
  if (text.starts_with("//")) uri.authority = cut(text, text.find_first_of("/?#", 2));
  uri.path = cut(text, text.find_first_of("?#"));
  uri.query = cut(text, text.find('#'));
  uri.fragment = text;
  return uri;
}

// "a/./b/../c" is "a/c".
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::string_view part = cut(path, path.find('/', 1));
    const std::string_view name = part.starts_with('/') ? part.substr(1) : part;
    if (name != "." && name != "..") {
      out += part;
      continue;
    }
    if (name == "..") out.resize(std::min(out.rfind('/'), out.size()));
    if (path.empty()) out += '/';
  }
  return out;
}

std::string merged(const Uri& base, std::string_view path) {
  if (path.starts_with('/')) return without_dots(path);
  if (base.path.empty() && !base.authority.empty()) return without_dots("/" + std::string{path});
  const std::size_t slash = base.path.rfind('/');
  const std::string_view folder = slash == std::string_view::npos ? std::string_view{} : base.path.substr(0, slash + 1);
  return without_dots(std::string{folder} + std::string{path});
}

std::string joined(std::string_view scheme, std::string_view authority, std::string_view path, std::string_view query,
                   std::string_view fragment) {
  std::string out{scheme};
  out += authority;
  out += path;
  out += query;
  if (fragment != "#") out += fragment;  // an empty fragment says nothing
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::uint32_t code = 0;
    const bool escaped = text[at] == '%' && at + 2 < text.size() && base::read_hex(text.substr(at + 1, 2), code);
    out += escaped ? static_cast<char>(code) : text[at];
    if (escaped) at += 2;
  }
  return out;
}

std::string unescaped(std::string_view step) {
  std::string out;
  for (std::size_t at = 0; at < step.size(); ++at) {
    const bool escaped = step[at] == '~' && at + 1 < step.size() && (step[at + 1] == '0' || step[at + 1] == '1');
    out += escaped ? (step[at + 1] == '0' ? '~' : '/') : step[at];
    if (escaped) ++at;
  }
  return out;
}

const Json* child(const Json& value, const std::string& name) noexcept {
  if (const auto* map = if_map(value)) return map->if_contains(name);
  const auto* list = value.if_array();
  std::size_t index = 0;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data(), end, index);
  const bool valid = read.ec == std::errc{} && read.ptr == end;
  return list != nullptr && valid && index < list->size() ? &(*list)[index] : nullptr;
}

std::optional<Target> follow(Target target, std::string_view pointer) {
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string name = unescaped(cut(pointer, pointer.find('/')));
    target.schema = child(*target.schema, name);
    if (target.schema == nullptr) return std::nullopt;
    target.pointer = pointer_to(target.pointer, name);
    target.base = References::base_within(*target.schema, target.base);
  }
  return target;
}

bool holds_named_schemas(std::string_view keyword) noexcept {
  return keyword == "properties" || keyword == "patternProperties" || keyword == "definitions" || keyword == "$defs" ||
         keyword == "dependencies";
}

bool holds_plain_values(std::string_view keyword) noexcept {
  return keyword == "enum" || keyword == "const" || keyword == "default" || keyword == "examples";
}

// The $id of a schema; beside a $ref it does not count.
const boost::json::string* id_of(const Json& schema) noexcept {
  const auto* keywords = if_map(schema);
  if (keywords == nullptr || keywords->contains("$ref")) return nullptr;
  const Json* id = keywords->if_contains("$id");
  return id == nullptr ? nullptr : id->if_string();
}

}  // namespace

std::string resolve_uri(std::string_view base, std::string_view reference) {
  const Uri from = split_uri(base);
  const Uri to = split_uri(reference);
  if (!to.scheme.empty()) return joined(to.scheme, to.authority, to.path, to.query, to.fragment);
  if (!to.authority.empty()) return joined(from.scheme, to.authority, without_dots(to.path), to.query, to.fragment);
  if (!to.path.empty()) return joined(from.scheme, from.authority, merged(from, to.path), to.query, to.fragment);
  return joined(from.scheme, from.authority, from.path, to.query.empty() ? from.query : to.query, to.fragment);
}

std::string pointer_to(const std::string& pointer, std::string_view name) {
  std::string out = pointer + '/';
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::expected<References, std::string> References::find_in(const Json& document) {
  References references;
  references.by_uri_[""] = Target{&document, base_within(document, ""), ""};
  if (auto done = references.walk(document, {&document, "", ""}, 0); !done)
    return std::unexpected(std::move(done.error()));
  return references;
}

std::string References::base_within(const Json& schema, const std::string& base) {
  const auto* id = id_of(schema);
  if (id == nullptr) return base;
  const std::string uri = resolve_uri(base, view(*id));
  return uri.substr(0, uri.find('#'));
}

std::expected<void, std::string> References::add(std::string uri, Target target) {
  const auto [known, is_new] = by_uri_.try_emplace(std::move(uri), target);
  if (is_new || known->second.schema == target.schema) return {};
  return std::unexpected(target.pointer + "/$id: \"" + known->first + "\" is the name of another part already, " +
                         (known->second.pointer.empty() ? "the whole schema" : known->second.pointer));
}

std::expected<void, std::string> References::walk(const Json& schema, const Target& around, std::size_t depth) {
  if (depth > json_depth_max) return std::unexpected("the schema is nested deeper than 64 levels");
  const auto* keywords = if_map(schema);
  if (keywords == nullptr) return {};
  const Target here{&schema, base_within(schema, around.base), around.pointer};
  if (const auto* id = id_of(schema)) {
    if (auto added = add(resolve_uri(around.base, view(*id)), here); !added) return added;
  }
  for (const auto& keyword : *keywords) {
    const std::string_view name{keyword.key().data(), keyword.key().size()};
    const Json& argument = keyword.value();
    if (holds_plain_values(name)) continue;
    const Target inside{&argument, here.base, pointer_to(here.pointer, name)};
    const bool several = argument.is_array() || (holds_named_schemas(name) && is_map(argument));
    if (auto done = several ? walk_all(argument, inside, depth + 1) : walk(argument, inside, depth + 1); !done)
      return done;
  }
  return {};
}

std::expected<void, std::string> References::walk_all(const Json& parts, const Target& around, std::size_t depth) {
  if (const auto* list = parts.if_array()) {
    for (std::size_t at = 0; at < list->size(); ++at) {
      const Target inside{&(*list)[at], around.base, pointer_to(around.pointer, std::to_string(at))};
      if (auto done = walk((*list)[at], inside, depth + 1); !done) return done;
    }
    return {};
  }
  for (const auto& part : parts.get_object()) {
    const std::string_view name{part.key().data(), part.key().size()};
    const Target inside{&part.value(), around.base, pointer_to(around.pointer, name)};
    if (auto done = walk(part.value(), inside, depth + 1); !done) return done;
  }
  return {};
}

std::expected<Target, std::string> References::resolve(std::string_view base, std::string_view reference) const {
  const std::string uri = resolve_uri(base, reference);
  if (const auto exact = by_uri_.find(uri); exact != by_uri_.end()) return exact->second;
  const std::size_t mark = std::min(uri.find('#'), uri.size());
  const auto resource = by_uri_.find(std::string_view{uri}.substr(0, mark));
  const std::string shown = "\"" + std::string{reference} + "\"";
  if (resource == by_uri_.end())
    return std::unexpected("references to other documents are not supported: " + shown +
                           "; copy that schema under \"definitions\"");
  const std::string fragment = percent_decoded(std::string_view{uri}.substr(std::min(mark + 1, uri.size())));
  if (fragment.starts_with('/')) {
    if (auto target = follow(resource->second, fragment)) return *std::move(target);
  }
  return std::unexpected("there is nothing at " + shown + " in this schema");
}

}  // namespace reprise::json::schema
