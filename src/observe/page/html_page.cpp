#include "observe/page/html_page.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/encoding.hpp"
#include "base/sha256.hpp"
#include "observe/page/page_files.hpp"

namespace reprise::observe {
namespace {

std::string hash_source(std::string_view text) { return "'sha256-" + base::base64(base::sha256(text)) + "'"; }

// Whatever gets into the page: only these two texts are obeyed, and nothing is fetched or sent.
std::string content_policy() {
  return "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " + hash_source(page::script) +
         "; style-src " + hash_source(page::style);
}

}  // namespace

std::string safe_in_script(std::string_view json) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> escapes{
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
  std::string safe;
  safe.reserve(json.size());
  while (!json.empty()) {
    const auto found =
        std::ranges::find_if(escapes, [&](const auto& escape) { return json.starts_with(escape.first); });
    safe += found == escapes.end() ? json.substr(0, 1) : found->second;
    json.remove_prefix(found == escapes.end() ? 1 : found->first.size());
  }
  return safe;
}

// The skeleton alone is searched for markers: what stands in for one is never looked at again.
std::string HtmlPage::html() && {
  std::string html;
  std::string_view rest = page::skeleton;
  while (true) {
    const std::size_t begin = std::min(rest.find("{{"), rest.size());
    html += rest.substr(0, begin);
    const std::size_t end = rest.find("}}", begin);
    if (end == std::string_view::npos) return html;
    const std::string_view marker = rest.substr(begin + 2, end - begin - 2);
    if (marker == "policy") html += content_policy();
    if (marker == "style") html += page::style;
    if (marker == "script") html += page::script;
    if (marker == "data") html += safe_in_script(std::move(data_).json());
    rest.remove_prefix(end + 2);
  }
}

}  // namespace reprise::observe
