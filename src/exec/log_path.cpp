#include "exec/log_path.hpp"

#include <charconv>

#include "base/hex.hpp"

namespace reprise::exec {
namespace {

constexpr std::uint32_t items_in_a_folder = 1000;
constexpr std::size_t name_bytes_max = 200;  // file systems allow 255

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::uint64_t hash_of(std::string_view text) {  // FNV-1a: it must be the same in every program that looks
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// As in addresses: everything unusual becomes %xx. A dot stands as it is unless it begins the name.
std::string file_name_of(std::string_view step) {
  std::string name;
  for (const char c : step) {
    if (is_plain(c) || (c == '.' && !name.empty())) {
      name += c;
    } else {
      name += '%';
      base::append_hex(name, static_cast<unsigned char>(c), 2);
    }
  }
  if (name.size() <= name_bytes_max) return name;
  name.resize(name_bytes_max - 17);
  name += '%';
  base::append_hex(name, hash_of(step), 16);
  return name;
}

template <class Number>
bool read_number(std::string_view digits, Number& number) noexcept {
  const auto [end, mistake] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return mistake == std::errc{} && end == digits.data() + digits.size();
}

}  // namespace

std::string log_folder(std::string_view store_folder, const RunId& run) {
  const std::string begin = store_folder.empty() ? "." : std::string{store_folder};
  return begin + (begin.ends_with('/') ? "" : "/") + "logs/" + to_string(run);
}

std::string log_folder(std::string_view store_folder, const RunId& run, std::string_view step) {
  return log_folder(store_folder, run) + "/" + file_name_of(step);
}

std::string log_path(std::string_view store_folder, const RunId& run, std::string_view step, std::uint32_t item,
                     std::uint64_t attempt) {
  std::string path = log_folder(store_folder, run, step) + "/";
  if (item >= items_in_a_folder) path += std::to_string(item / items_in_a_folder) + "000/";
  return path + std::to_string(item) + "." + std::to_string(attempt) + ".log";
}

std::optional<LogName> log_name_in(std::string_view file_name) noexcept {
  constexpr std::string_view ending = ".log";
  if (!file_name.ends_with(ending)) return std::nullopt;
  file_name.remove_suffix(ending.size());
  const std::size_t dot = file_name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  LogName name;
  if (!read_number(file_name.substr(0, dot), name.item) || !read_number(file_name.substr(dot + 1), name.attempt))
    return std::nullopt;
  return name;
}

}  // namespace reprise::exec
