// reprise doctor: is everything there that runs need, and if not, what to do about it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/run/this_machine.hpp"
#include "cli/store_option.hpp"
#include "exec/http/http_features.hpp"
#include "flow/reader/reader.hpp"
#include "store/sqlite/file_system.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/schema.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t space_needed = 64U << 20U;  // what a journal, its index and a checkpoint may take
constexpr std::size_t runs_counted = 10'000;

struct Check {
  std::string name;
  bool ok = true;
  std::string message;
  std::string remedy = {};
};

std::string megabytes(std::uint64_t bytes) {
  return bytes < (10U << 20U) ? fmt::format("{} KiB", (bytes + 1023) / 1024) : fmt::format("{} MiB", bytes >> 20U);
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::string count_runs(runtime::Snapshot& snapshot, RunStatus status) {
  const auto page = snapshot.find({.status = status, .limit = runs_counted});
  if (!page) return "?";
  return std::to_string(page->runs.size()) + (page->cursor.empty() ? "" : " or more");
}

// From the kernel's list: asking for the lock itself could get in an owner's way.
Check check_owner(const std::vector<store::ShardView>& shards) {
  std::string owners;
  std::size_t free = 0;
  for (const store::ShardView& each : shards) {
    const std::string owner = store::sqlite::owner_of(each.shard.path);
    if (owner.empty()) {
      free += each.view.has_value();
      continue;
    }
    owners += fmt::format("{}process {} owns {}", owners.empty() ? "" : ", ", owner,
                          each.shard.slot == 0 ? "the store" : fs::path{each.shard.path}.filename().string());
  }
  const std::string rest = shards.size() > 1 ? fmt::format("{} shards, {} without an owner", shards.size(), free) : "";
  if (owners.empty()) return {"owner", true, "no process owns the store" + (rest.empty() ? "" : "; " + rest)};
  return {"owner", true,
          fmt::format("{}{}; further processes take shards of their own", owners, rest.empty() ? "" : "; " + rest)};
}

// One for the store, and one for each shard that cannot be read.
std::vector<Check> check_store(const std::string& path, std::vector<store::ShardView> shards) {
  std::uint64_t bytes = 0;
  std::uint64_t journal_bytes = 0;
  for (const store::ShardView& each : shards) {
    bytes += size_of(each.shard.path);
    journal_bytes += size_of(each.shard.path + "-wal");
  }
  const auto trouble = [](const Error& error) {
    return Check{"store", false, error.message, "see docs/formats/store.md for what each trouble means"};
  };
  const std::string count = shards.size() > 1 ? fmt::format(" in {} shards", shards.size()) : "";
  auto snapshot = runtime::Snapshot::open(std::move(shards));
  if (!snapshot) {
    const bool is_empty = snapshot.error().code == ErrorCode::not_found;
    return {is_empty ? Check{"store", true, snapshot.error().message} : trouble(snapshot.error())};
  }
  std::vector<Check> checks{
      {"store", true,
       fmt::format("{}, format version {}, {} and {} of journal{}; runs: {} running, {} paused, {} failed", path,
                   store::sqlite::schema_steps().size(), megabytes(bytes), megabytes(journal_bytes), count,
                   count_runs(*snapshot, RunStatus::running), count_runs(*snapshot, RunStatus::paused),
                   count_runs(*snapshot, RunStatus::failed))}};
  for (const Error& error : snapshot->troubles()) checks.push_back(trouble(error));
  return checks;
}

// The store, and who works with it.
std::vector<Check> check_shards(const std::string& url) {
  const auto ledger = ledger_of(url);
  if (!ledger) return {{"store", false, ledger.error().message}};
  std::vector<store::ShardView> shards = (*ledger)->look();
  const std::string path = store_path(url);
  std::error_code error;
  if (path.empty()) return check_store(path, std::move(shards));
  const Check owner = check_owner(shards);
  std::vector<Check> checks;
  if (shards.size() == 1 && !fs::exists(path, error)) {
    checks = {{"store", true, fmt::format("{} is not there yet; the first run makes it", path)}};
  } else {
    checks = check_store(path, std::move(shards));
  }
  checks.push_back(owner);
  return checks;
}

// The folder of the store, or the nearest one above that exists.
fs::path existing_folder(const std::string& url) {
  std::error_code error;
  fs::path folder = fs::absolute(store_folder(url), error).lexically_normal();
  while (!folder.empty() && !fs::exists(folder, error) && folder != folder.parent_path()) folder = folder.parent_path();
  return folder;
}

Check check_folder(const fs::path& folder) {
  if (const std::string_view network = store::sqlite::network_file_system_at(folder.string()); !network.empty()) {
    return {"folder", false, fmt::format("{} is on a network file system ({})", folder.string(), network),
            "choose a store on a local disk with --store sqlite:PATH"};
  }
  if (access(folder.c_str(), W_OK | X_OK) == 0)
    return {"folder", true, fmt::format("{} can be written", folder.string())};
  return {"folder", false, fmt::format("{} cannot be written by this user", folder.string()),
          "give this user the right to write it, or choose another store with --store sqlite:PATH"};
}

Check check_space(const fs::path& folder) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error)
    return {"space", false, fmt::format("cannot tell the free space in {}: {}", folder.string(), error.message())};
  const bool enough = space.available >= space_needed;
  return {"space", enough, fmt::format("{} free", megabytes(space.available)),
          enough ? "" : fmt::format("make room: a store needs at least {} free", megabytes(space_needed))};
}

Check check_shell() {
  if (access("/bin/sh", X_OK) == 0) return {"sh", true, "/bin/sh runs commands"};
  return {"sh", false, "/bin/sh cannot be executed", "install a POSIX shell, or write commands as argv lists"};
}

Check check_http() {
  const exec::HttpFeatures features = exec::http_features();
  if (!features.problem.empty()) return {"http", false, features.problem, features.remedy};
  if (features.tls.empty()) {
    return {"http", false, fmt::format("libcurl {} has no TLS: https requests will fail", features.version),
            "install a libcurl with TLS (libcurl4)"};
  }
  return {"http", true,
          fmt::format("libcurl {} with {}{}", features.version, features.tls, features.http2 ? ", HTTP/2" : "")};
}

// What a document needs of this machine: valid, and its programs and libraries here.
std::vector<Check> check_document(const std::string& path) {
  const std::string name = "flow";
  const auto file = read_input(path);
  if (!file) return {{name, false, fmt::format("{} cannot be read", path)}};
  const auto read = flow::read_flow(file->text, file->name);
  if (!read) return {{name, false, fmt::format("{} is not valid", path), "reprise validate says why"}};
  std::vector<Check> checks;
  for (const Diagnostic& missing : missing_here(read->flow, file->name, Severity::error))
    checks.push_back(
        {name, false, fmt::format("{}:{}: {}", file->name, missing.line, missing.message), missing.help});
  if (checks.empty()) checks.push_back({name, true, fmt::format("{}: what it needs is here", file->name)});
  return checks;
}

void print_text(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    print(fmt::format("{:<8}{:<8}{}\n", check.name, check.ok ? "ok" : "TROUBLE", check.message));
    if (!check.remedy.empty()) print(fmt::format("{:<16}{}\n", "", check.remedy));
  }
}

void print_document(const std::string& url, const std::vector<Check>& checks, bool ok) {
  text::Value value = text::Value::map();
  value.set("ok", ok);
  value.set("store", url);
  text::Value list = text::Value::list();
  for (const Check& check : checks) {
    text::Value one = text::Value::map();
    one.set("check", check.name);
    one.set("ok", check.ok);
    one.set("message", check.message);
    if (!check.remedy.empty()) one.set("remedy", check.remedy);
    list.add(std::move(one));
  }
  value.set("checks", std::move(list));
  print_json(value);
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const std::string url = store_url(options.store);
  std::vector<Check> checks = check_shards(url);
  if (!store_path(url).empty()) {
    const fs::path folder = existing_folder(url);
    checks.push_back(check_folder(folder));
    checks.push_back(check_space(folder));
  }
  checks.push_back(check_shell());
  checks.push_back(check_http());
  for (const std::string& file : options.files) {
    for (Check& check : check_document(file)) checks.push_back(std::move(check));
  }
  const bool ok = std::ranges::all_of(checks, &Check::ok);
  if (options.json) {
    print_document(url, checks, ok);
  } else {
    print_text(checks);
  }
  return ok ? exit_done : exit_failed;
}

}  // namespace reprise::cli
