// reprise logs: what the attempts of a run wrote, from the files beside the store.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <system_error>

#include <fmt/format.h>
#include <reprise/env.hpp>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/look/output_lines.hpp"
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

constexpr std::chrono::milliseconds look_again_after{100};

// Labels of a run that is looked at again and again.
class FollowedLabels {
 public:
  void use(Looked& looked) {
    looked_ = &looked;
    if (!labels_) {
      labels_.emplace(document_of_run(looked.view.input), [this](std::string_view step) {
        auto items = looked_->reader->item_inputs(looked_->id, step, ItemLabels::items_max);
        return items ? *std::move(items) : std::vector<std::string>{};
      });
    }
  }
  std::string of(std::string_view step, std::uint32_t item) { return labels_ ? labels_->of(step, item) : ""; }

 private:
  Looked* looked_ = nullptr;
  std::optional<ItemLabels> labels_;
};

// What has been written so far, and then each line as it comes.
int follow_logs(const LogsOptions& options) {
  RunOptions run = options.of.run;
  const std::string folder = store_folder(store_url(run.store));
  FollowedLabels labels;
  std::optional<OutputLines> output;
  std::uint64_t last = 0;
  while (true) {
    {
      auto looked = look_at(run);  // let go before the wait, or the owner could not shorten its files
      if (!looked) return looked.error();
      run.run = to_string(looked->id);  // @last must not become another one
      const auto place = find_place(*looked, options.of.place);
      if (!place) return show_error(place.error());
      if (!output)
        output.emplace(folder, observe::steps_of(*looked->view.plan, looked->view.given_items() > 0),
                       [&labels](std::string_view step, std::uint32_t item) { return labels.of(step, item); });
      labels.use(*looked);
      const auto is_wanted = [&](const Event& event) {
        const bool is_here = !*place || (event.step == looked->view.steps[(*place)->step].name &&
                                         (*place)->item.value_or(event.item) == event.item);
        return is_here && (!options.attempt || *options.attempt == event.attempt);
      };
      const auto read = looked->reader->each_event(looked->id, [&](const Event& event) {
        if (event.sequence <= last) return true;
        last = event.sequence;
        if (event.step.empty() || !is_wanted(event)) return true;
        for (const std::string& line : output->add(event)) print(line + "\n");
        return true;
      });
      if (!read) return show_error(read.error());
      for (const std::string& line : output->news()) print(line + "\n");
      if (!is_open(looked->view.info.status)) return exit_done;
    }
    if (std::fflush(stdout) != 0) return exit_usage;
    (void)system_env().wait_until(system_env().now() + look_again_after, std::stop_token{});
  }
}

}  // namespace

int logs(const LogsOptions& options) {
  if (options.follow) return follow_logs(options);
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
