#include "flow/expression/url_text.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "text/ascii.hpp"

namespace reprise::flow {
namespace {

constexpr std::string_view ends_of_authority = "/?#";

bool is_letter(char c) noexcept { return text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z'; }
bool is_letter_or_digit(char c) noexcept { return is_letter(c) || text::is_digit(c); }

// Where the authority begins: behind "scheme://", or at the beginning of what has no scheme.
std::size_t authority_begin(std::string_view url) noexcept {
  const std::size_t scheme_end = url.find("://");
  const bool has_scheme =
      scheme_end != std::string_view::npos && scheme_end + 1 == url.find_first_of(ends_of_authority);
  return has_scheme ? scheme_end + 3 : 0;
}

// Where it ends; npos: it goes on at the end of the text.
std::size_t authority_end(std::string_view url) noexcept {
  return url.find_first_of(ends_of_authority, authority_begin(url));
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_letter_or_digit(c) || std::string_view{"-._~"}.contains(c)) {
      out += c;
    } else {
      out += '%';
      base::append_hex(out, static_cast<unsigned char>(c), 2, base::upper_hex_digits);
    }
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::uint32_t byte = 0;
    const bool is_escape = text[at] == '%' && at + 2 < text.size() && base::read_hex(text.substr(at + 1, 2), byte);
    out += is_escape ? static_cast<char>(byte) : text[at];
    if (is_escape) at += 2;
  }
  return out;
}

// Servers decode before they resolve: an encoded slash (or a backslash, on some) separates there as well.
bool has_dot_segment(std::string_view encoded) {
  const std::string decoded = percent_decoded(encoded);
  std::string_view rest = decoded;
  while (true) {
    const std::size_t end = std::min(rest.find_first_of("/\\"), rest.size());
    const std::string_view segment = rest.substr(0, end);
    if (segment == "." || segment == "..") return true;
    if (end == rest.size()) return false;
    rest.remove_prefix(end + 1);
  }
}

std::unexpected<std::string> refused(const std::string& source, std::string_view why) {
  return std::unexpected{"${" + source + "} " + std::string{why}};
}

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && is_letter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || std::string_view{"+-."}.contains(c); });
}

}  // namespace

std::expected<void, std::string> UrlText::add_value(std::string_view value, const std::string& source,
                                                    std::string_view following) {
  const std::size_t begin = text_.size();
  if (authority_end(text_) != std::string::npos) {
    text_ += percent_encoded(value);
  } else {
    auto checked =
        text_.empty() ? check_beginning(value, source, following) : check_in_authority(value, source, following);
    if (!checked) return checked;
    text_ += value;
  }
  values_.push_back({begin, text_.size(), source});
  return {};
}

// Behind host${path} the URL may end or its path go on; host${x}:80, host${x}@other and host:80${x}/path mean that x is a part of the authority.
bool UrlText::may_begin_path(std::string_view following) const noexcept {
  if (following.empty() || following.starts_with('?') || following.starts_with('#')) return true;
  const std::string_view authority = std::string_view{text_}.substr(authority_begin(text_));
  const bool has_port = authority.substr(authority.rfind(']') + 1).contains(':');  // npos + 1 is the beginning
  return following.starts_with('/') && !has_port;
}

std::expected<void, std::string> UrlText::check_beginning(std::string_view value, const std::string& source,
                                                          std::string_view following) const {
  if (following.empty()) return {};
  if (following.starts_with("://"))
    return is_scheme(value)
               ? std::expected<void, std::string>{}
               : refused(source, "stands where the scheme of the URL is: only http or https can stand there");
  if (value.contains('#') || (value.contains('?') && following.starts_with('/')))
    return refused(source, "brings a query or a fragment, and the path that follows would become a part of it");
  const bool goes_on_in_authority = following.starts_with(':') || following.starts_with('@');
  if (goes_on_in_authority && authority_end(value) != std::string_view::npos)
    return refused(source, "brings a path, and the URL goes on as if it were the host");
  return {};
}

// What is allowed in a host, a port and a user alike; check() looks at the three of them.
std::expected<void, std::string> UrlText::check_in_authority(std::string_view value, const std::string& source,
                                                             std::string_view following) const {
  const bool host_is_complete = is_letter_or_digit(text_.back()) || text_.back() == ']';
  const bool is_path = !value.empty() && ends_of_authority.contains(value.front());
  if (is_path && host_is_complete && may_begin_path(following)) return {};
  const bool stays = std::ranges::none_of(value, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || std::string_view{"/?#@\\"}.contains(c);
  });
  if (stays) return {};
  return refused(
      source, "stands in the host of the URL and brings a character that would end it (one of / ? # @ \\ or a blank)");
}

// An empty value counts as well: it leaves only what stands around it.
const UrlText::Span* UrlText::value_within(std::size_t begin, std::size_t end) const noexcept {
  const auto found = std::ranges::find_if(values_, [&](const Span& span) {
    const bool is_empty = span.begin == span.end;
    return is_empty ? span.begin > begin && span.begin <= end : span.begin < end && span.end > begin;
  });
  return found == values_.end() ? nullptr : &*found;
}

std::expected<void, std::string> UrlText::check() const {
  const std::size_t host_end = std::min(authority_end(text_), text_.size());
  for (const Span& value : values_) {
    if (value.begin < authority_begin(text_) || value.end > host_end) continue;
    if (auto checked = check_place_in_authority(value); !checked) return checked;
  }
  const std::size_t path_end = std::min(text_.find_first_of("?#", host_end), text_.size());
  for (std::size_t begin = host_end; begin < path_end;) {
    const std::size_t end = std::min(text_.find('/', begin + 1), path_end);
    const Span* const value = value_within(begin, end);
    if (value != nullptr && has_dot_segment(std::string_view{text_}.substr(begin + 1, end - begin - 1)))
      return refused(value->source, "would make . or .. a segment of the URL's path, which leads to another path");
    begin = end;
  }
  return {};
}

std::expected<void, std::string> UrlText::check_place_in_authority(const Span& value) const {
  const std::size_t begin = authority_begin(text_);
  const std::string_view authority = std::string_view{text_}.substr(begin, authority_end(text_) - begin);
  const std::string_view before = authority.substr(0, value.begin - begin);
  const std::string_view brought = authority.substr(value.begin - begin, value.end - value.begin);
  const std::size_t user_end = authority.rfind('@');
  const bool is_in_user = user_end != std::string_view::npos && before.size() < user_end;
  if (is_in_user) {
    const bool is_all_of_it = before.empty() && brought.size() == user_end;
    return brought.contains(':') && !is_all_of_it
               ? refused(value.source, "stands before the @ of the URL and brings a colon of its own: write it as %3A")
               : std::expected<void, std::string>{};
  }
  if (brought.contains('%'))
    return refused(value.source, "stands in the host of the URL and brings a %: write the name itself");
  const bool is_in_brackets = before.contains('[') && !before.contains(']');
  if (before.ends_with(':') && !is_in_brackets && !std::ranges::all_of(brought, text::is_digit))
    return refused(value.source, "stands where the port of the URL is and is not a number");
  return {};
}

}  // namespace reprise::flow
