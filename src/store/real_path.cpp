#include "store/real_path.hpp"

#include <filesystem>
#include <system_error>

namespace reprise::store {

namespace {

// Also where the file that a link leads to is not there yet. A circle is left as it is: opening it says so.
std::filesystem::path without_last_links(std::filesystem::path path) {
  constexpr int links_max = 40;  // as many as Linux follows
  std::error_code error;
  for (int link = 0; link < links_max && std::filesystem::is_symlink(path, error); ++link) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return path;
    path = path.parent_path() / target;  // an absolute target takes its place
  }
  return path;
}

}  // namespace

std::string real_path(std::string_view path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(without_last_links(path), error);
  if (error || !real.is_absolute()) real = std::filesystem::absolute(path, error).lexically_normal();
  return error ? std::string{path} : real.string();
}

}  // namespace reprise::store
