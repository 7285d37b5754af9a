#include "exec/function/list.hpp"

#include <stdexcept>

#include <reprise/engine.hpp>

namespace reprise {
namespace exec {
namespace {

constexpr std::string_view magic = "RLS1";
constexpr std::size_t header_bytes = 8;
constexpr std::size_t number_bytes = 4;

void put_number(std::string& out, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift & 0xFFU);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) noexcept {
  std::uint32_t number = 0;
  for (unsigned byte = 0; byte < number_bytes; ++byte) {
    number |= std::uint32_t{static_cast<unsigned char>(bytes[at + byte])} << (8 * byte);
  }
  return number;
}

std::uint32_t end_of(std::string_view list, std::uint32_t index) noexcept {
  return number_at(list, header_bytes + number_bytes * std::size_t{index});
}

}  // namespace

std::optional<std::uint32_t> list_size(std::string_view list) noexcept {
  if (list.size() < header_bytes || !list.starts_with(magic)) return std::nullopt;
  const std::uint32_t count = number_at(list, magic.size());
  const std::uint64_t table_end = header_bytes + number_bytes * std::uint64_t{count};
  if (list.size() < table_end) return std::nullopt;
  const std::uint32_t last_end = count == 0 ? 0 : end_of(list, count - 1);
  if (list.size() - table_end != last_end) return std::nullopt;
  return count;
}

std::optional<std::string_view> list_element(std::string_view list, std::uint32_t index) noexcept {
  const std::optional<std::uint32_t> count = list_size(list);
  if (!count || index >= *count) return std::nullopt;
  const std::string_view elements = list.substr(header_bytes + number_bytes * std::size_t{*count});
  const std::uint32_t begin = index == 0 ? 0 : end_of(list, index - 1);
  const std::uint32_t end = end_of(list, index);
  if (begin > end || end > elements.size()) return std::nullopt;
  return elements.substr(begin, end - begin);
}

}  // namespace exec

std::string encode_list(std::span<const std::string> elements) {
  std::uint64_t bytes = 0;
  for (const std::string& element : elements) bytes += element.size();
  if (elements.size() > UINT32_MAX || bytes > UINT32_MAX) throw std::length_error{"a list of more than 4 GiB"};
  std::string list;
  list.reserve(exec::header_bytes + exec::number_bytes * elements.size() + bytes);
  list += exec::magic;
  exec::put_number(list, static_cast<std::uint32_t>(elements.size()));
  std::uint32_t end = 0;
  for (const std::string& element : elements) {
    end += static_cast<std::uint32_t>(element.size());
    exec::put_number(list, end);
  }
  for (const std::string& element : elements) list += element;
  return list;
}

std::optional<std::vector<std::string>> decode_list(std::string_view list) {
  const std::optional<std::uint32_t> count = exec::list_size(list);
  if (!count) return std::nullopt;
  std::vector<std::string> elements;
  elements.reserve(*count);
  for (std::uint32_t index = 0; index < *count; ++index) {
    const std::optional<std::string_view> element = exec::list_element(list, index);
    if (!element) return std::nullopt;
    elements.emplace_back(*element);
  }
  return elements;
}

}  // namespace reprise
