#include "exec/process/mask.hpp"

#include <algorithm>
#include <utility>

namespace reprise::exec {
namespace {

constexpr std::string_view stars = "***";

struct Match {
  std::size_t length = 0;   // of the longest secret that stands here; 0 = none
  bool needs_more = false;  // a secret may stand here, but the text ends too early
};

Match match_at(std::string_view rest, const std::vector<std::string>& candidates) {
  Match match;
  for (const std::string& secret : candidates) {
    if (rest.starts_with(secret)) {
      match.length = std::max(match.length, secret.size());
    } else if (rest.size() < secret.size() && std::string_view{secret}.starts_with(rest)) {
      match.needs_more = true;
    }
  }
  return match;
}

}  // namespace

SecretTable::SecretTable(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    std::size_t& bucket = buckets_[static_cast<unsigned char>(secret.front())];
    if (bucket == 0) {
      secrets_.emplace_back();
      bucket = secrets_.size();
    }
    secrets_[bucket - 1].push_back(secret);
  }
}

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
    const std::vector<std::string>* const candidates = secrets_->beginning_with(text[at]);
    if (candidates == nullptr) continue;
    const Match match = match_at(text.substr(at), *candidates);
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

}  // namespace reprise::exec
