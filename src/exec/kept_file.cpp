#include "exec/kept_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/hex.hpp"

namespace reprise::exec {
namespace {

constexpr std::string_view between = " bytes, sha256:";
constexpr std::size_t piece_bytes = std::size_t{256} << 10U;

struct Found {
  KeptFile file;
  int error = 0;
};

Found content_of(const std::string& path, std::uint64_t bytes_max) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.is_open()) return {.file = {}, .error = errno};
  Found found;
  base::Sha256 hash;
  const auto buffer = std::make_unique<char[]>(piece_bytes);
  while (found.file.bytes <= bytes_max) {
    const ssize_t count = ::read(file.get(), buffer.get(), piece_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {.file = {}, .error = errno};
    if (count == 0) break;
    found.file.bytes += static_cast<std::uint64_t>(count);
    hash.add({buffer.get(), static_cast<std::size_t>(count)});
  }
  found.file.sha256 = base::hexadecimal(hash.take());
  return found;
}

}  // namespace

std::string to_text(const KeptFile& file) { return std::to_string(file.bytes) + std::string{between} + file.sha256; }

std::optional<KeptFile> kept_file_from(std::string_view text) {
  const std::size_t end = text.find(between);
  if (end == std::string_view::npos) return std::nullopt;
  KeptFile file{.sha256 = std::string{text.substr(end + between.size())}};
  const auto [stopped, mistake] = std::from_chars(text.data(), text.data() + end, file.bytes);
  if (mistake != std::errc{} || stopped != text.data() + end || file.sha256.empty()) return std::nullopt;
  return file;
}

std::expected<void, std::string> check(const std::string& path, const KeptFile& kept) {
  const Found found = content_of(path, kept.bytes);
  if (found.error != 0) return std::unexpected{"cannot read " + path + ": " + std::strerror(found.error)};
  if (found.file == kept) return {};
  std::string problem = path + " is not the file that was written: ";
  if (found.file.bytes > kept.bytes) {
    problem += "it has more than " + std::to_string(kept.bytes) + " bytes";
  } else if (found.file.bytes < kept.bytes) {
    problem += "it has " + std::to_string(found.file.bytes) + " bytes of " + std::to_string(kept.bytes);
  } else {
    problem += "its " + std::to_string(kept.bytes) + " bytes have another SHA-256";
  }
  return std::unexpected{std::move(problem)};
}

void KeptFileWriter::write(std::string_view piece) {
  if (piece.empty()) return;
  if (!hash_) hash_.emplace();
  hash_->add(piece);
  bytes_ += piece.size();
  file_.write(piece);
}

std::expected<KeptFile, std::string> KeptFileWriter::finish() {
  if (!file_.sync()) return std::unexpected{file_.problem()};
  return KeptFile{.bytes = bytes_, .sha256 = hash_ ? base::hexadecimal(hash_->take()) : std::string{}};
}

}  // namespace reprise::exec
