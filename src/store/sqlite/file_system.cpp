#include "store/sqlite/file_system.hpp"

#include <sys/vfs.h>

#include <filesystem>

namespace reprise::store::sqlite {
namespace {

struct Named {
  std::uint32_t type;
  std::string_view name;
};

// linux/magic.h and statfs(2) have the numbers.
constexpr Named network_file_systems[] = {
    {0x6969, "NFS"},     {0x517B, "SMB"},     {0xFF534D42, "SMB"},  {0xFE534D42, "SMB"},
    {0x5346414F, "AFS"}, {0x6B414653, "AFS"}, {0x73757245, "Coda"}, {0x564C, "NCP"},
};

}  // namespace

std::string_view network_file_system(std::uint32_t type) noexcept {
  for (const Named& known : network_file_systems) {
    if (known.type == type) return known.name;
  }
  return {};
}

std::string_view network_file_system_at(const std::string& folder) {
  struct statfs info {};
  if (statfs(folder.c_str(), &info) != 0) return {};
  return network_file_system(static_cast<std::uint32_t>(info.f_type));
}

Result<void> check_file_system(const std::string& store_path) {
  const std::string_view name = network_file_system_at(std::filesystem::path{store_path}.parent_path().string());
  if (name.empty()) return {};
  return std::unexpected{
      Error{ErrorCode::store_unavailable,
            "Cannot open " + store_path + ": its folder is on a network file system (" + std::string{name} +
                "), where locks and shared memory do not reach other machines and commits can be lost. Choose a path "
                "on a local disk, with --store sqlite:PATH or REPRISE_STORE."}};
}

}  // namespace reprise::store::sqlite
