#include "store/sqlite/run_list.hpp"

#include "event/codec.hpp"

namespace reprise::store::sqlite {
// Each entry: by how much `due` grows, then the run, or by how much it grows when `due` does not.
void append_run_list(std::span<const DueCursor> sorted, std::string& out) {
  DueCursor before;
  for (const DueCursor entry : sorted) {
    event::put_varint(out, static_cast<std::uint64_t>(entry.due - before.due));
    event::put_varint(out, entry.due == before.due ? entry.run - before.run : entry.run);
    before = entry;
  }
}

bool read_run_list(std::string_view bytes, std::vector<DueCursor>& out) {
  DueCursor entry;
  event::ByteReader in{bytes};
  while (!in.at_end()) {
    const std::uint64_t due = in.varint();
    const std::uint64_t run = in.varint();
    if (!in.ok()) return false;
    entry.run = due == 0 ? entry.run + run : run;
    entry.due = static_cast<Time>(static_cast<std::uint64_t>(entry.due) + due);
    out.push_back(entry);
  }
  return true;
}

}  // namespace reprise::store::sqlite
