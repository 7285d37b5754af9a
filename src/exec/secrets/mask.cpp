#include "exec/secrets/mask.hpp"

#include <algorithm>
#include <utility>

namespace reprise::exec {

Masker::Masker(std::shared_ptr<const SecretTable> secrets) : secrets_{std::move(secrets)} {
  if (secrets_ != nullptr && secrets_->is_empty()) secrets_ = nullptr;
}

void Masker::feed(std::string_view text, std::string& out) {
  if (is_idle()) {
    out += text;
  } else if (held_.empty()) {
    held_ = text.substr(scan(text, false, out));
  } else {
    held_ += text;
    held_.erase(0, scan(held_, false, out));
  }
}

void Masker::finish(std::string& out) {
  if (!is_idle()) scan(held_, true, out);
  held_.clear();
}

// Returns how much of the text is done with. Leaves in covered_ how much of the rest has already become stars.
std::size_t Masker::scan(std::string_view text, bool is_last, std::string& out) {
  std::size_t covered_end = std::exchange(covered_, 0);
  std::size_t plain_begin = covered_end;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!secrets_->may_match_at(text.substr(at))) continue;
    const SecretTable::Match match = secrets_->match_at(text.substr(at));
    if (match.needs_more && !is_last) {
      if (at > plain_begin) out += text.substr(plain_begin, at - plain_begin);
      covered_ = covered_end > at ? covered_end - at : 0;
      return at;
    }
    if (match.length == 0) continue;
    if (at >= covered_end) {
      out += text.substr(plain_begin, at - plain_begin);
      out += stars;
    }
    covered_end = std::max(covered_end, at + match.length);
    plain_begin = covered_end;
  }
  if (plain_begin < text.size()) out += text.substr(plain_begin);
  return text.size();
}

std::string masked(const std::shared_ptr<const SecretTable>& secrets, std::string text) {
  Masker masker{secrets};
  if (masker.is_idle()) return text;
  std::string out;
  out.reserve(text.size());
  masker.feed(text, out);
  masker.finish(out);
  return out;
}

}  // namespace reprise::exec
