// The house rules as functions from text to findings, so that each can be tried on a bad sample before it judges the tree.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::house {

struct Finding {
  std::size_t line = 1;  // 1-based
  std::string what = {};
};
using Findings = std::vector<Finding>;

// A folder of src/ and the other rooms it may include. Itself and include/reprise are always allowed.
struct Room {
  std::string name;
  std::vector<std::string> may_include;
};

// A library that somebody else wrote, by how its includes begin, and the rooms that may know it.
struct Library {
  std::string begins;
  std::vector<std::string> rooms;
};

// The source with comments blanked out, or with everything but the comments; texts are blanked out in both. Lines stay where they are.
std::string code_of(std::string_view source);
std::string comments_of(std::string_view source);

struct Include {
  std::size_t line = 1;
  std::string path = {};
  bool angled = false;
};
std::vector<Include> includes_of(std::string_view source);

// The picture in docs/architecture.md as a table: an edge of its first mermaid block allows an include, and so does a way of several
// edges. A node's label opens with its folder: `core["core/ — …"]`. A room that can reach itself is among its own `may_include`.
std::vector<Room> rooms_in_picture(std::string_view markdown);

// The deepest room whose folder holds this path (relative to src/); nullptr if there is none.
const Room* room_of(std::string_view path, std::span<const Room> rooms);

// (a) Includes point down. `path` is relative to src/; tests beside the code may include tests/support.
Findings check_rooms(std::string_view path, std::string_view source, std::span<const Room> rooms);

// (b) A public header needs the standard library and other public headers, nothing else.
Findings check_public_includes(std::string_view source);

// (c) Time and chance are read through one door.
Findings check_time_and_chance(std::string_view source);

// (d) How a file reads: it opens by saying what it is, and has no leftovers. `path` is relative to the root of the project.
Findings check_layout(std::string_view path, std::string_view source);

// (e) Each library stays behind its folder. `path` is relative to src/; tests beside the code may include test libraries.
Findings check_libraries(std::string_view path, std::string_view source, std::span<const Room> rooms,
                         std::span<const Library> libraries);

// (f) Links to local files lead somewhere. `exists` is asked about paths as they stand in the text, without the #part.
Findings check_links(std::string_view markdown, const std::function<bool(const std::string&)>& exists);

}  // namespace reprise::house
