#include "exec/secrets/sealing.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "exec/secrets/mask.hpp"
#include "exec/secrets/references.hpp"
#include "json/json.hpp"

namespace reprise::exec {
namespace {

constexpr char mark = reference_mark;
constexpr std::uint32_t levels_max = 2;  // 0: as it is; 1: in a JSON text; 2: in a JSON text within one
constexpr std::array<std::uint32_t, 3> levels_by_likelihood = {1, 2, 0};  // most secrets look alike in all of them

struct Reference {
  std::uint32_t secret = 0;
  std::uint32_t pattern = 0;  // its number, see SecretTable
  std::uint32_t level = 0;
  std::uint32_t skipped = 0;  // so many bytes at its beginning belong to the reference before it

  std::array<std::uint32_t*, 4> numbers() noexcept { return {&secret, &pattern, &level, &skipped}; }
};

std::string escaped(std::string text, std::uint32_t level) {
  for (; level > 0; --level) {
    text = json::to_text(json::Json(text));
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

// How the pattern is written there. std::nullopt: in a form that only resembles it.
std::optional<std::uint32_t> level_of(const std::string& pattern, std::string_view written) {
  for (const std::uint32_t level : levels_by_likelihood) {
    if (escaped(pattern, level) == written) return level;
  }
  return std::nullopt;
}

void put(std::string& out, Reference reference) {
  out += mark;
  for (const std::uint32_t* const number : reference.numbers())
    out += (out.back() == mark ? "" : ".") + std::to_string(*number);
  out += mark;
}

std::optional<Reference> reference_in(std::string_view text) {
  Reference reference;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint32_t* const number : reference.numbers()) {
    if (number != &reference.secret && (at == end || *at++ != '.')) return std::nullopt;
    const auto read = std::from_chars(at, end, *number);
    if (read.ec != std::errc{}) return std::nullopt;
    at = read.ptr;
  }
  return at == end ? std::optional{reference} : std::nullopt;
}

}  // namespace

std::string sealed(const SecretTable& secrets, std::string_view json) {
  std::string out;
  std::size_t covered_end = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const std::string_view rest = json.substr(at);
    const SecretTable::Match match = secrets.may_match_at(rest) ? secrets.match_at(rest) : SecretTable::Match{};
    if (at + match.length > std::max(at, covered_end)) {
      const std::size_t skipped = covered_end > at ? covered_end - at : 0;
      if (const auto level = level_of(match.pattern->text, json.substr(at, match.length))) {
        put(out, {match.pattern->secret, match.pattern->number, *level, static_cast<std::uint32_t>(skipped)});
      } else {
        out += stars;
      }
      covered_end = at + match.length;
    }
    if (at >= covered_end) out += json[at];
  }
  return out;
}

std::expected<std::string, std::string> unsealed(const SecretTable* secrets, std::string_view sealed) {
  std::string out;
  const bool is_whole = replace_references(sealed, out, [&](std::string_view text) {
    const auto reference = reference_in(text);
    const SecretTable::Pattern* const pattern =
        reference && secrets != nullptr ? secrets->find(reference->secret, reference->pattern) : nullptr;
    if (pattern == nullptr || reference->level > levels_max) return false;
    const std::string written = escaped(pattern->text, reference->level);
    out += std::string_view{written}.substr(std::min<std::size_t>(reference->skipped, written.size()));
    return true;
  });
  if (!is_whole)
    return std::unexpected{
        "it needs a secret that is not what it was when this was stored: give it the same value again"};
  return out;
}

}  // namespace reprise::exec
