#include "store/sqlite/run_list.hpp"

namespace reprise::store::sqlite {
namespace {

void append_varint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80U; value >>= 7U) out += static_cast<char>(static_cast<unsigned char>(value | 0x80U));
  out += static_cast<char>(value);
}

bool read_varint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) return true;
  }
  return false;
}

}  // namespace

// Each entry: by how much `due` grows, then the run, or by how much it grows when `due` does not.
void append_run_list(std::span<const DueCursor> sorted, std::string& out) {
  DueCursor before;
  for (const DueCursor entry : sorted) {
    append_varint(static_cast<std::uint64_t>(entry.due - before.due), out);
    append_varint(entry.due == before.due ? entry.run - before.run : entry.run, out);
    before = entry;
  }
}

bool read_run_list(std::string_view bytes, std::vector<DueCursor>& out) {
  DueCursor entry;
  while (!bytes.empty()) {
    std::uint64_t due = 0;
    std::uint64_t run = 0;
    if (!read_varint(bytes, due) || !read_varint(bytes, run)) return false;
    entry.run = due == 0 ? entry.run + run : run;
    entry.due = static_cast<Time>(static_cast<std::uint64_t>(entry.due) + due);
    out.push_back(entry);
  }
  return true;
}

}  // namespace reprise::store::sqlite
