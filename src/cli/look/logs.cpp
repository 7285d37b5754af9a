// reprise logs: what the attempts of a run wrote, from the files beside the store.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
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

// `ends_line`: something follows that must begin a line of its own.
bool print_file(const std::string& path, bool ends_line) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char block[64 * 1024];
  char last = '\n';
  while (const std::size_t size = std::fread(block, 1, sizeof block, file)) {
    print_bytes({block, size});
    last = block[size - 1];
  }
  if (ends_line && last != '\n') print_bytes("\n");
  const bool read = std::ferror(file) == 0;
  std::fclose(file);
  return read;
}

// There is no file: because nothing was written, or because nothing of that kind ever ran?
int explain_nothing(Looked& looked, const std::optional<FoundPlace>& place, const LogsOptions& options) {
  std::uint64_t attempts = 0;  // the highest number among those that were asked for
  const auto read = looked.reader->each_event(looked.id, [&](const Event& event) {
    const bool is_wanted =
        !place || (event.step == looked.view.steps[place->step].name && place->item.value_or(event.item) == event.item);
    if (is_wanted && event.type == EventType::started) attempts = std::max(attempts, event.attempt);
    return true;
  });
  if (!read) return show_error(read.error());
  const std::string what = options.of.place.empty() ? "this run" : options.of.place;
  if (attempts == 0) return show_error({ErrorCode::not_found, fmt::format("{} has had no attempt yet", what)});
  if (options.attempt && *options.attempt > attempts) {
    return show_error({ErrorCode::not_found, fmt::format("{} has had no attempt {}: it has had {}", what,
                                                         *options.attempt, observe::counted(attempts, "attempt"))});
  }
  print_error(options.attempt ? fmt::format("attempt {} of {} wrote nothing\n", *options.attempt, what)
                              : fmt::format("the attempts of {} wrote nothing\n", what));
  return exit_done;
}

}  // namespace

int logs(const LogsOptions& options) {
  auto looked = look_at(options.of.run);
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
  if (files.empty()) return explain_nothing(*looked, *place, options);
  for (const LogFile& file : files) {
    if (files.size() > 1) {
      const std::string name = observe::work_name(looked->view.steps[file.step].name, file.name.item,
                                                  looked->view.steps[file.step].has_items);
      print(fmt::format("==> {} attempt {} <==\n", name, file.name.attempt));
    }
    if (!print_file(file.path, files.size() > 1)) return usage_error(fmt::format("cannot read {}", file.path));
  }
  return exit_done;
}

}  // namespace reprise::cli
