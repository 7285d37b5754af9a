#include "cli/store_option.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/private_file.hpp"
#include "base/store_address.hpp"
#include "cli/io.hpp"
#include "store/real_path.hpp"

namespace reprise::cli {

std::string store_url(const std::string& option) {
  if (!option.empty()) return option;
  const char* const setting = std::getenv("REPRISE_STORE");
  return setting != nullptr && *setting != '\0' ? std::string{setting} : std::string{default_store};
}

std::string store_path(std::string_view url) {
  const auto address = base::parse_store_address(url);
  return address ? address->path : "";
}

std::string store_folder(std::string_view url) {
  std::filesystem::path path{store_path(url)};
  std::error_code problem;
  if (std::filesystem::is_symlink(path, problem)) path = store::real_path(path.string());
  const std::string folder = path.parent_path().string();
  return folder.empty() ? "." : folder;
}

void make_store_folder(const std::string& folder) {
  const auto made = base::make_private_folder(folder);
  if (!made || !*made || std::filesystem::path{folder}.filename() != ".reprise") return;
  constexpr std::string_view everything = "*\n";
  const auto file = base::open_below(folder, ".gitignore", O_WRONLY | O_CREAT | O_EXCL);
  [[maybe_unused]] const bool written = file && write(file->get(), everything.data(), everything.size()) > 0;
}

std::expected<std::unique_ptr<store::Ledger>, Error> ledger_of(const std::string& url) {
  store::LedgerSettings settings;
  const char* const fewer = std::getenv("REPRISE_TEST_SHARDS");  // so that tests need not start 64 processes
  if (fewer != nullptr) settings.shards_max = static_cast<std::uint32_t>(std::strtoul(fewer, nullptr, 10));
  return store::open_ledger(url, settings);
}

int exit_code_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::not_found:
      return 4;
    case ErrorCode::store_locked:
    case ErrorCode::store_newer:
    case ErrorCode::store_damaged:
    case ErrorCode::store_read_only:
    case ErrorCode::store_full:
    case ErrorCode::store_unavailable:
    case ErrorCode::store_gone:
    case ErrorCode::fenced:
    case ErrorCode::store_behind:
      return 5;
    case ErrorCode::timed_out:
      return 124;
    case ErrorCode::invalid:
    case ErrorCode::full:
    case ErrorCode::stopped:
      return exit_usage;
  }
  return exit_usage;
}

int show_error(const Error& error) {
  print_error(fmt::format("reprise: {}\n", error.message));
  return exit_code_of(error.code);
}

}  // namespace reprise::cli
