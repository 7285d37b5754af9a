#include "exec/http/callback_token.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <system_error>

#include "base/encoding.hpp"
#include "base/hex.hpp"
#include "base/private_file.hpp"
#include "base/sha256.hpp"
#include "env/secure_random.hpp"
#include "event/codec.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 16;
constexpr std::string_view key_file = "callbacks.key";

std::string new_key() {
  std::string key(key_bytes, '\0');
  fill_with_secure_random(std::as_writable_bytes(std::span{key}));
  return key;
}

std::string signature_of(std::string_view fields, std::string_view key) {
  return base::hmac_sha256(key, fields).substr(0, signature_bytes);
}

std::optional<std::string> bytes_of_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    std::uint32_t byte = 0;
    if (!base::read_hex(digits.substr(at, 2), byte)) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace

std::string token_of(const CallbackPlace& place, std::string_view key) {
  std::string fields{reinterpret_cast<const char*>(place.run.bytes.data()), place.run.bytes.size()};
  for (const std::uint32_t number : {place.step, place.item, place.visit, place.attempt, place.only_own ? 1U : 0U})
    event::put_varint(fields, number);
  return base::hexadecimal(fields + signature_of(fields, key));
}

std::optional<CallbackPlace> place_in(std::string_view token, std::string_view key) {
  const auto bytes = bytes_of_hex(token);
  if (!bytes || bytes->size() <= signature_bytes) return std::nullopt;
  const std::string_view fields = std::string_view{*bytes}.substr(0, bytes->size() - signature_bytes);
  if (!base::same_secret(std::string_view{*bytes}.substr(fields.size()), signature_of(fields, key)))
    return std::nullopt;
  event::ByteReader in{fields};
  CallbackPlace place;
  for (std::uint8_t& byte : place.run.bytes) byte = in.byte();
  for (std::uint32_t* const number : {&place.step, &place.item, &place.visit, &place.attempt}) *number = in.varint32();
  place.only_own = in.byte() != 0;
  return in.ok() ? std::optional{place} : std::nullopt;
}

std::expected<std::string, std::string> callback_key(const std::string& store_folder) {
  if (store_folder.empty()) return new_key();
  const auto trouble = [](const std::error_code& problem) {
    return std::unexpected{"the key of webhooks, " + std::string{key_file} +
                           " beside the store, cannot be kept: " + base::words_of(problem)};
  };
  const auto system_trouble = [&] { return trouble(std::error_code{errno, std::system_category()}); };
  const auto file = base::open_below(store_folder, key_file, O_RDWR | O_CREAT | O_CLOEXEC);
  if (!file) return trouble(file.error());
  if (flock(file->get(), LOCK_EX) != 0) return system_trouble();  // until the file is closed
  std::string key(key_bytes, '\0');
  const ssize_t found = pread(file->get(), key.data(), key.size(), 0);
  if (found < 0) return system_trouble();
  if (found == static_cast<ssize_t>(key_bytes)) return key;
  key = new_key();
  if (pwrite(file->get(), key.data(), key.size(), 0) != static_cast<ssize_t>(key_bytes)) return system_trouble();
  if (auto kept = base::sync_below(store_folder, key_file, *file); !kept) return trouble(kept.error());
  return key;
}

}  // namespace reprise::exec
