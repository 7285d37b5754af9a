#include "store/real_path.hpp"

#include <filesystem>
#include <system_error>

namespace reprise::store {

std::string real_path(std::string_view path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  if (error || !real.is_absolute()) real = std::filesystem::absolute(path, error).lexically_normal();
  return error ? std::string{path} : real.string();
}

}  // namespace reprise::store
