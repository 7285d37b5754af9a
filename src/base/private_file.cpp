#include "base/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace reprise::base {
namespace {

constexpr mode_t folder_rights = 0700;
constexpr mode_t file_rights = 0600;

std::unexpected<std::error_code> problem(int number) {
  return std::unexpected{std::error_code{number, std::generic_category()}};
}

// A umask that takes rights away from the user itself is the only way for a new folder to have fewer than asked for.
SystemResult<bool> make_folder_in(int parent, const char* name) {
  if (::mkdirat(parent, name, folder_rights) != 0) return errno == EEXIST ? SystemResult<bool>{false} : problem(errno);
  struct stat made {};
  if (::fstatat(parent, name, &made, AT_SYMLINK_NOFOLLOW) != 0) return problem(errno);
  if ((made.st_mode & folder_rights) != folder_rights && ::fchmodat(parent, name, folder_rights, 0) != 0)
    return problem(errno);
  return true;
}

SystemResult<Descriptor> open_folder_in(int parent, const std::string& name) {
  Descriptor folder{::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (folder.is_open()) return folder;
  const int why = errno;
  struct stat there {};
  const bool is_link =
      why == ENOTDIR && ::fstatat(parent, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(there.st_mode);
  return problem(is_link ? ELOOP : why);
}

struct Place {
  Descriptor folder;
  std::string file;
};

enum class Missing : bool { refuse, make };

// Goes down to the folder of the file, one folder at a time.
SystemResult<Place> place_of(const std::string& folder, std::string_view name, Missing missing) {
  SystemResult<Descriptor> at = Descriptor{::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!at->is_open()) return problem(errno);
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string part{name.substr(0, slash)};
    if (part == ".." || part == "." || part.empty()) return problem(EINVAL);
    if (slash == std::string_view::npos) return Place{*std::move(at), part};
    name.remove_prefix(slash + 1);
    SystemResult<Descriptor> next = open_folder_in(at->get(), part);
    if (!next && next.error().value() == ENOENT && missing == Missing::make) {
      if (auto made = make_folder_in(at->get(), part.c_str()); !made) return std::unexpected{made.error()};
      next = open_folder_in(at->get(), part);
    }
    if (!next) return std::unexpected{next.error()};
    at = std::move(next);
  }
}

// File systems that cannot sync folders say EINVAL: there it is not needed, or nothing can be done.
bool sync(int descriptor) noexcept { return ::fsync(descriptor) == 0 || errno == EINVAL; }

}  // namespace

SystemResult<bool> make_private_folder(const std::string& path) {
  auto made = make_folder_in(AT_FDCWD, path.c_str());
  if (made || made.error().value() != ENOENT) return made;
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = end == std::string::npos ? end : path.find_last_of('/', end);
  if (slash == std::string::npos || slash == 0) return made;
  if (auto above = make_private_folder(path.substr(0, slash)); !above) return above;
  return make_folder_in(AT_FDCWD, path.c_str());
}

SystemResult<bool> make_private_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_rights)};
  if (!file.is_open()) return errno == EEXIST ? SystemResult<bool>{false} : problem(errno);
  if (::fchmod(file.get(), file_rights) != 0) return problem(errno);
  return true;
}

SystemResult<Descriptor> open_below(const std::string& folder, std::string_view name, int flags) {
  const bool makes = (flags & O_CREAT) != 0;
  auto place = place_of(folder, name, makes ? Missing::make : Missing::refuse);
  if (!place) return std::unexpected{place.error()};
  Descriptor file{
      ::openat(place->folder.get(), place->file.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, file_rights)};
  if (!file.is_open()) return problem(errno);
  struct stat there {};
  if (makes && ::fstat(file.get(), &there) == 0 && (there.st_mode & file_rights) != file_rights)
    ::fchmod(file.get(), file_rights);  // of a strict umask; of somebody else's file it fails, and need not succeed
  return file;
}

SystemResult<void> make_folder_of(const std::string& folder, std::string_view name) {
  const auto place = place_of(folder, name, Missing::make);
  if (!place) return std::unexpected{place.error()};
  return {};
}

SystemResult<void> remove_below(const std::string& folder, std::string_view name) {
  const auto place = place_of(folder, name, Missing::refuse);
  if (!place) return place.error().value() == ENOENT ? SystemResult<void>{} : std::unexpected{place.error()};
  std::error_code problem;
  std::filesystem::remove_all("/proc/self/fd/" + std::to_string(place->folder.get()) + "/" + place->file, problem);
  if (problem) return std::unexpected{problem};
  return {};
}

std::string_view name_below(const std::string& folder, std::string_view path) {
  if (folder.empty() || !path.starts_with(folder)) return {};
  std::string_view name = path.substr(folder.size());
  if (!folder.ends_with('/') && !name.starts_with('/')) return {};
  name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
  return name;
}

SystemResult<void> sync_below(const std::string& folder, std::string_view name, const Descriptor& file) {
  if (::fsync(file.get()) != 0) return problem(errno);
  for (std::size_t end = name.rfind('/');; end = name.substr(0, end).rfind('/')) {
    const bool is_inside = end != std::string_view::npos;
    const std::string path = is_inside ? folder + "/" + std::string{name.substr(0, end)} : folder;
    const Descriptor opened{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!opened.is_open() || !sync(opened.get())) return problem(errno);
    if (!is_inside) return {};
  }
}

std::string words_of(const std::error_code& problem) {
  if (problem.value() != ELOOP) return problem.message();
  return "it is a symbolic link, or a folder on the way is one, and links are not followed there";
}

}  // namespace reprise::base
