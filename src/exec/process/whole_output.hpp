// Standard output byte by byte, for a command whose caller must get all of it: in memory while it is short, in a file beyond that.
//
// A record holds short output itself, and then there is no file: nothing to sync, nothing to lose. Nobody is disturbed by a file that
// cannot be written; finish() tells.
// Thread safety: none; the thread of the runner. Bounds: memory_max bytes in memory.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "exec/kept_file.hpp"

namespace reprise::exec {

class WholeOutput {
 public:
  WholeOutput() = default;  // takes nothing
  WholeOutput(std::string path, std::string private_folder, std::size_t memory_max)
      : file_{std::move(path), std::move(private_folder)}, memory_max_{memory_max} {}

  void write(std::string_view piece);
  // Once, at the end. `recorded` is what the record will hold. std::nullopt: that is all there is. The error says what could not be kept.
  std::expected<std::optional<KeptFile>, std::string> finish(std::string_view recorded);

 private:
  void move_to_file();

  KeptFileWriter file_;
  std::size_t memory_max_ = 0;
  std::string memory_;
  bool is_in_file_ = false;
};

}  // namespace reprise::exec
