// JSON writes characters beyond U+FFFF as two \u escapes, which libyaml refuses: each pair becomes one \U escape.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/document.hpp"

namespace reprise::text {

struct JoinedEscapes {
  std::string text;           // empty when there was nothing to join
  std::vector<Place> places;  // of the joined escapes in `text`, in its order
};

// Only inside double quotes, and only where the document is one of JSON's: it begins with {, [ or ".
JoinedEscapes join_surrogate_escapes(std::string_view source);

// Where a place in the joined text is in the text as it was written: each escape before it was two characters longer.
Place place_before_joining(Place place, const std::vector<Place>& joined) noexcept;

}  // namespace reprise::text
