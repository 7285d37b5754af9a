#include "exec/process/whole_output.hpp"

#include <utility>

namespace reprise::exec {

void WholeOutput::write(std::string_view piece) {
  if (file_.path().empty()) return;
  if (!is_in_file_ && piece.size() <= memory_max_ - memory_.size()) {
    memory_ += piece;
    return;
  }
  move_to_file();
  file_.write(piece);
}

void WholeOutput::move_to_file() {
  if (std::exchange(is_in_file_, true)) return;
  file_.write(std::exchange(memory_, {}));
}

std::expected<std::optional<KeptFile>, std::string> WholeOutput::finish(std::string_view recorded) {
  if (file_.path().empty()) return std::nullopt;
  if (!is_in_file_ && memory_ == recorded) {
    file_.remove();  // of an earlier attempt of that number, when its run was retried on request
    return std::nullopt;
  }
  move_to_file();  // what is recorded has secrets masked: it is not what the caller must get
  auto finished = file_.finish();
  if (!finished) file_.remove();  // on a full disk its part would be what the next attempt lacks
  return finished;
}

}  // namespace reprise::exec
