#include "exec/process/capture.hpp"

#include <algorithm>
#include <utility>

namespace reprise::exec {
namespace {

constexpr bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Without the character that the cut at the end has halved: half a character would make the whole text no UTF-8. Text that was none
// before the cut is left alone.
std::string_view without_halved_end(std::string_view text) noexcept {
  std::size_t begin = text.size();
  while (begin > 0 && text.size() - begin < 3 && is_continuation(text[begin - 1])) --begin;
  if (begin == 0) return text;
  const auto lead = static_cast<unsigned char>(text[begin - 1]);
  const std::size_t wanted = lead >= 0xF0U ? 4U : lead >= 0xE0U ? 3U : lead >= 0xC0U ? 2U : 1U;
  return text.size() - begin + 1 < wanted ? text.substr(0, begin - 1) : text;
}

std::string_view without_halved_begin(std::string_view text) noexcept {
  std::size_t begin = 0;
  while (begin < 3 && begin < text.size() && is_continuation(text[begin])) ++begin;
  return text.substr(begin);
}

}  // namespace

std::string CapturedText::text() const {
  if (is_whole()) return head;
  const std::string_view first = without_halved_end(head);
  const std::string_view last = without_halved_begin(tail);
  std::string text{first};
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += "[… " + std::to_string(size - first.size() - last.size()) + " bytes are missing here …]\n";
  text += last;
  return text;
}

void Capture::add(std::string_view piece) {
  size_ += piece.size();
  const std::size_t head_max = std::max(limits_.head, limits_.whole);
  const std::size_t to_head = std::min(piece.size(), head_max - head_.size());
  head_ += piece.substr(0, to_head);
  piece.remove_prefix(to_head);
  if (piece.size() >= limits_.tail) {
    tail_ = piece.substr(piece.size() - limits_.tail);
    return;
  }
  // Moved to the front once for each time the tail has been filled, not with every piece.
  if (tail_.size() + piece.size() > 2 * limits_.tail) tail_.erase(0, tail_.size() + piece.size() - limits_.tail);
  tail_ += piece;
}

CapturedText Capture::take() {
  if (tail_.size() > limits_.tail) tail_.erase(0, tail_.size() - limits_.tail);
  if (size_ <= std::max(limits_.head + limits_.tail, limits_.whole)) {
    head_ += std::exchange(tail_, {});
  } else {
    cut_to_limits();
  }
  return {.head = std::move(head_), .tail = std::move(tail_), .size = size_};
}

// The whole was wanted and became too long: its end belongs to the tail, as far as there is room.
void Capture::cut_to_limits() {
  if (head_.size() <= limits_.head) return;
  const std::size_t to_tail = std::min(limits_.tail - tail_.size(), head_.size() - limits_.head);
  tail_.insert(0, head_, head_.size() - to_tail, to_tail);
  head_.resize(limits_.head);
  head_.shrink_to_fit();
}

}  // namespace reprise::exec
