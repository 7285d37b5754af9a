// A file beside the store that a run depends on: standard input that `exec` has accepted, output too long for the record.
//
// It is as durable as the run: on the disk before the record that names it is written, which holds its length and SHA-256; and it is
// used only while it still has them.
// Thread safety: check() is a function of its arguments; a writer has one owner at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/sha256.hpp"
#include "exec/process/output_file.hpp"

namespace reprise::exec {

struct KeptFile {
  std::uint64_t bytes = 0;
  std::string sha256 = {};  // hexadecimal

  bool operator==(const KeptFile&) const = default;
};

// As it stands in a record: "200019 bytes, sha256:5f1c…"
std::string to_text(const KeptFile& file);
std::optional<KeptFile> kept_file_from(std::string_view text);

// The error says what is wrong with the file. Reads all of it.
std::expected<void, std::string> check(const std::string& path, const KeptFile& kept);

class KeptFileWriter {
 public:
  KeptFileWriter() = default;
  KeptFileWriter(std::string path, std::string private_folder)
      : file_{std::move(path), OutputFile::Existing::replace, std::move(private_folder)} {}

  const std::string& path() const noexcept { return file_.path(); }
  void write(std::string_view piece);  // the first one makes the file
  // After the last piece: the file is on the disk.
  std::expected<KeptFile, std::string> finish();
  void remove() { file_.remove(); }  // what stands there from before
  const std::string& problem() const noexcept { return file_.problem(); }

 private:
  OutputFile file_;
  std::optional<base::Sha256> hash_;  // made with the first byte
  std::uint64_t bytes_ = 0;
};

}  // namespace reprise::exec
