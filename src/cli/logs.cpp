// reprise logs: what the attempts of a run wrote, from the files beside the store.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look_commands.hpp"
#include "cli/looking.hpp"
#include "cli/store_option.hpp"
#include "exec/log_path.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

struct LogFile {
  std::size_t step;
  exec::LogName name;
  std::string path;
};

// Of one step: in its folder, and in the folders of a thousand items within.
void collect(const std::string& folder, std::size_t step, std::vector<LogFile>& files) {
  std::error_code error;
  const std::size_t first = files.size();
  for (auto at = std::filesystem::recursive_directory_iterator{folder, error}; !error && at != std::filesystem::end(at);
       at.increment(error)) {
    const auto name = exec::log_name_in(at->path().filename().string());
    if (name) files.push_back({step, *name, at->path().string()});
  }
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(),
            [](const LogFile& left, const LogFile& right) { return left.name < right.name; });
}

bool print_file(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char block[64 * 1024];
  while (const std::size_t size = std::fread(block, 1, sizeof block, file)) print({block, size});
  const bool read = std::ferror(file) == 0;
  std::fclose(file);
  return read;
}

}  // namespace

int logs(const LogsOptions& options) {
  const auto looked = look_at(options.of.run);
  if (!looked) return looked.error();
  const auto place = find_place(*looked, options.of.place);
  if (!place) return show_error(place.error());
  const std::string folder = store_folder(store_url(options.of.run.store));
  std::vector<LogFile> files;
  for (std::size_t step = 0; step < looked->view.steps.size(); ++step) {
    if (*place && (*place)->step != step) continue;
    collect(exec::log_folder(folder, looked->id, looked->view.steps[step].name), step, files);
  }
  std::erase_if(files, [&](const LogFile& file) {
    const bool is_other_item = *place && (*place)->item && file.name.item != *(*place)->item;
    return is_other_item || (options.attempt && file.name.attempt != *options.attempt);
  });
  if (files.empty()) {
    return show_error(
        {ErrorCode::not_found, fmt::format("there is no such log in {}; only attempts that wrote something have one",
                                           exec::log_folder(folder, looked->id))});
  }
  for (const LogFile& file : files) {
    if (files.size() > 1) {
      const std::string name = observe::work_name(looked->view.steps[file.step].name, file.name.item,
                                                  looked->view.steps[file.step].has_items);
      print(fmt::format("==> {} attempt {} <==\n", name, file.name.attempt));
    }
    if (!print_file(file.path)) return usage_error(fmt::format("cannot read {}", file.path));
  }
  return exit_done;
}

}  // namespace reprise::cli
