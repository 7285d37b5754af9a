// The SQLite store in trouble: every error has its code and its sentence, nothing is spoiled, and it goes on when the cause is gone.
#include "store/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "store/memory_store.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/file_system.hpp"
#include "store/sqlite/open_files.hpp"
#include "store/sqlite/schema.hpp"
#include "support/power_loss_vfs.hpp"
#include "support/run_program.hpp"
#include "support/store_model.hpp"

namespace reprise::store {
namespace {

using testing_support::CommitSource;
using testing_support::expect_same;
using testing_support::PowerLossDisk;
using testing_support::TemporaryDirectory;

constexpr std::uint64_t secret = 42;

class SqliteStore : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open() const { return open_sqlite_store(path_, {.secret = secret}); }

  // `runs` parked ones, one commit for each hundred.
  void fill(std::uint64_t runs) const {
    auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    Commit commit;
    for (std::uint64_t run = 1; run <= runs; ++run) {
      Image image;
      image.run = run;
      image.due = static_cast<Time>(run);
      image.state = commit.put(std::string(500, 's'));
      commit.images.push_back(image);
      if (run % 100 != 0 && run != runs) continue;
      commit.id = value((*store)->last_commit()) + 1;
      ASSERT_TRUE((*store)->append(commit));
      commit.clear();
    }
  }

  static std::uint64_t value(const Result<std::uint64_t>& result) { return result.value_or(UINT64_MAX); }

  std::string content() const {
    std::ifstream file{path_, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  void write(const std::string& bytes) const { std::ofstream{path_, std::ios::binary} << bytes; }

  void expect_refused(ErrorCode code, std::string_view part_of_message, const SqliteSettings& settings = {}) const {
    const auto store = open_sqlite_store(path_, settings);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, code) << store.error().message;
    EXPECT_NE(store.error().message.find(part_of_message), std::string::npos) << store.error().message;
    EXPECT_NE(store.error().message.find(path_), std::string::npos) << store.error().message;
  }

  std::int64_t ask(std::string_view sql) const {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::read, "");
    return connection ? connection->integer(sql, "read").value_or(-1) : -1;
  }

  std::int64_t ask_writing(std::string_view sql) const {
    auto connection = sqlite::Connection::open(path_, sqlite::Access::write, "");
    if (!connection) return -1;
    sqlite3_busy_timeout(connection->get(), 0);
    return connection->integer(sql, "ask").value_or(-1);
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/runs.db";
};

// Runs in a process of its own, as a user whom permissions bind; true when `body` says so.
template <class Body>
bool in_another_process(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    const bool bound = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
    _exit(bound && body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(SqliteStore, makes_folders_and_keeps_its_secret) {
  path_ = folder_.path() + "/.reprise/deep/runs.db";
  {
    auto store = open_sqlite_store(path_);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_NE((*store)->secret(), 0U);
    auto again = (*store)->secret();
    store->reset();
    EXPECT_EQ((*open())->secret(), again) << "the setting is for new stores only";
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal")) << "closing leaves one file";
}

TEST_F(SqliteStore, goes_on_when_a_full_disk_has_space_again) {
  PowerLossDisk disk{"full_disk"};
  CommitSource source{3};
  const auto model = make_memory_store(secret);
  auto opened = open_sqlite_store(path_, {.vfs = disk.vfs(), .checkpoint_pages = 30, .secret = secret});
  ASSERT_TRUE(opened);
  Store& store = **opened;
  int times_full = 0;
  int times_still_full = 0;
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    disk.set_space(disk.used() + 5'000 * static_cast<std::uint64_t>(round));
    const Commit* commit = &source.next();
    auto appended = store.append(*commit);
    for (int tries = 0; appended && tries < 50; ++tries) {
      ASSERT_TRUE(model->append(*commit));
      commit = &source.next();
      appended = store.append(*commit);
    }
    if (!appended) {
      ++times_full;
      EXPECT_EQ(appended.error().code, ErrorCode::store_full) << appended.error().message;
      EXPECT_NE(appended.error().message.find("no space left"), std::string::npos) << appended.error().message;
      EXPECT_EQ(store.append(*commit).error().code, ErrorCode::store_unavailable) << "not before reopen()";
      if (const auto still_full = store.reopen(); !still_full) {
        EXPECT_EQ(still_full.error().code, ErrorCode::store_full) << still_full.error().message;
        ++times_still_full;
      }
      disk.set_space(UINT64_MAX);
      const auto reopened = store.reopen();
      ASSERT_TRUE(reopened) << reopened.error().message;
      if (value(store.last_commit()) != commit->id) {
        appended = store.append(*commit);
        ASSERT_TRUE(appended) << appended.error().message;
      }
    }
    ASSERT_TRUE(model->append(*commit));
    expect_same(*model, store, source.below(UINT64_MAX));
  }
  EXPECT_GT(times_full, 10);
  EXPECT_GT(times_still_full, 0);
}

TEST_F(SqliteStore, read_only_file_or_folder) {
  fill(10);
  chmod(path_.c_str(), 0444);
  chmod((path_ + "-owner").c_str(), 0666);
  chmod(folder_.path().c_str(), 0777);
  const auto is_read_only = [&] {
    const auto store = open();
    return !store && store.error().code == ErrorCode::store_read_only &&
           store.error().message.find("right to write") != std::string::npos;
  };
  EXPECT_TRUE(in_another_process(is_read_only)) << "the file";
  chmod(path_.c_str(), 0666);
  EXPECT_TRUE(in_another_process([&] { return open().has_value(); })) << "the control";
  chmod(folder_.path().c_str(), 0555);
  EXPECT_TRUE(in_another_process(is_read_only)) << "the folder";
  path_ = folder_.path() + "/new/runs.db";
  EXPECT_TRUE(in_another_process(is_read_only)) << "a folder that cannot be made";
  chmod(folder_.path().c_str(), 0777);
}

TEST_F(SqliteStore, garbage_is_refused_and_left_alone) {
  const std::string garbage(20'000, 'g');
  write(garbage);
  expect_refused(ErrorCode::store_damaged, "not a store");
  EXPECT_EQ(content(), garbage);
}

TEST_F(SqliteStore, databases_of_other_programs_are_refused_and_left_alone) {
  {
    auto other = sqlite::Connection::open(path_, sqlite::Access::write_or_create, "");
    ASSERT_TRUE(other->execute("CREATE TABLE meta (key, value); INSERT INTO meta VALUES ('version', 1)", "write"));
  }
  const std::string before = content();
  expect_refused(ErrorCode::store_damaged, "another program");
  EXPECT_EQ(content(), before);
}

TEST_F(SqliteStore, truncated_files_are_refused) {
  fill(1000);
  const std::string whole = content();
  for (const std::size_t size : {whole.size() / 2, whole.size() - 8192, std::size_t{8192}, std::size_t{50}}) {
    write(whole.substr(0, size));
    expect_refused(ErrorCode::store_damaged, "damaged");
    EXPECT_EQ(content().size(), size);
  }
}

TEST_F(SqliteStore, a_damaged_page_is_found_by_whoever_reads_it) {
  fill(2000);
  std::string bytes = content();
  bytes.replace(bytes.size() / 2 / 8192 * 8192, 8192, std::string(8192, '\xa5'));
  write(bytes);
  auto store = open();
  ASSERT_TRUE(store) << "opening does not read the whole file: " << store.error().message;
  std::uint64_t damaged = 0;
  for (std::uint64_t run = 1; run <= 2000; ++run) {
    const auto read = (*store)->read_run(run);
    if (read) continue;
    EXPECT_EQ(read.error().code, ErrorCode::store_damaged) << read.error().message;
    ++damaged;
  }
  EXPECT_GT(damaged, 0U);
  EXPECT_LT(damaged, 100U) << "the rest is still there";
  EXPECT_EQ((*store)->read_due(INT64_MAX, {}, 5000).error().code, ErrorCode::store_damaged);
}

Result<void> add_table(sqlite::Connection& connection) {
  return connection.execute("CREATE TABLE extra (x)", "set up");
}
Result<void> none(sqlite::Connection&) { return {}; }  // in the place of the steps that every store has gone
Result<void> fail_halfway(sqlite::Connection& connection) {
  if (auto added = connection.execute("CREATE TABLE half (x)", "set up"); !added) return added;
  return connection.execute("CREATE TABLE half (x)", "set up");
}

TEST_F(SqliteStore, older_files_are_migrated_step_by_step) {
  fill(100);
  const sqlite::SchemaStep steps[] = {none, none, add_table, [](sqlite::Connection& connection) {
                                        return connection.execute("INSERT INTO extra SELECT run FROM runs", "set up");
                                      }};
  {
    const auto store = open_sqlite_store(path_, {.schema_steps = steps});
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ((*store)->secret(), secret);
    EXPECT_EQ((*store)->count_open(), 100U);
  }
  EXPECT_EQ(ask("SELECT value FROM meta WHERE key = 'version'"), 4);
  EXPECT_EQ(ask("SELECT count(*) FROM extra"), 100);
  ASSERT_TRUE(open_sqlite_store(path_, {.schema_steps = steps})) << "and once only";
  EXPECT_EQ(ask("SELECT count(*) FROM extra"), 100);
}

TEST_F(SqliteStore, a_migration_that_fails_leaves_the_version_before) {
  fill(100);
  const sqlite::SchemaStep steps[] = {none, none, add_table, fail_halfway};
  expect_refused(ErrorCode::store_unavailable, "half", {.schema_steps = steps});
  EXPECT_EQ(ask("SELECT value FROM meta WHERE key = 'version'"), 3);
  EXPECT_EQ(ask("SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0);
  const auto store = open_sqlite_store(path_, {.schema_steps = std::span{steps}.first(3)});
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->count_open(), 100U);
}

TEST_F(SqliteStore, newer_files_are_refused_and_left_alone) {
  fill(1);
  const sqlite::SchemaStep steps[] = {none, none, add_table};
  ASSERT_TRUE(open_sqlite_store(path_, {.schema_steps = steps}));
  const std::string before = content();
  expect_refused(ErrorCode::store_newer, "version 3, and this program knows up to 2");
  EXPECT_EQ(content(), before);
}

// Each commit finds room that is there already: the file grows in steps, and not with every commit.
TEST_F(SqliteStore, the_log_has_ground_to_be_written_on) {
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  std::set<std::uintmax_t> sizes;
  Commit commit;
  for (std::uint64_t id = 1; id <= 200; ++id) {
    commit.id = id;
    commit.frame = commit.put(std::string(100, 'f'));
    ASSERT_TRUE((*store)->append(commit));
    commit.clear();
    sizes.insert(std::filesystem::file_size(path_ + "-wal"));
  }
  EXPECT_LE(sizes.size(), 12U);
  store->reset();
  EXPECT_EQ((*open())->last_commit(), 200U);
}

TEST_F(SqliteStore, one_owner_at_a_time) {
  auto first = open();
  ASSERT_TRUE(first);
  expect_refused(ErrorCode::store_locked, "process " + std::to_string(getpid()));
  chmod(folder_.path().c_str(), 0777);
  chmod(path_.c_str(), 0666);
  chmod((path_ + "-owner").c_str(), 0666);
  EXPECT_TRUE(in_another_process([&] {
    const auto second = open();
    return !second && second.error().code == ErrorCode::store_locked &&
           second.error().message.find("process " + std::to_string(getppid())) != std::string::npos;
  }));
  first->reset();
  EXPECT_TRUE(open());
}

TEST_F(SqliteStore, a_killed_owner_leaves_no_lock) {
  int ready[2] = {};
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto store = open();
    Commit commit;
    commit.id = 1;
    const bool done = store && (*store)->append(commit) && ::write(ready[1], "!", 1) == 1;
    while (done) pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(open().error().code, ErrorCode::store_locked);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->last_commit(), 1U);
}

// POSIX drops all locks of a process on a file when it closes any descriptor of it: a refused owner must not rob the first.
TEST_F(SqliteStore, a_refused_owner_leaves_the_locks_of_this_process_alone) {
  auto first = open();
  ASSERT_TRUE(first);
  ASSERT_TRUE((*first)->read_run(1));
  const auto locks = [&] {
    std::size_t count = 0;
    std::ifstream list{"/proc/locks"};
    const std::string inode = ":" + std::to_string(sqlite::file_id_at(path_)->inode) + " ";
    for (std::string line; std::getline(list, line);)
      count += line.find("POSIX") != std::string::npos && line.find(inode) != std::string::npos ? 1 : 0;
    return count;
  };
  const std::size_t before = locks();
  if (before == 0) GTEST_SKIP() << "the kernel does not list locks here";
  EXPECT_EQ(open().error().code, ErrorCode::store_locked);
  EXPECT_EQ(locks(), before);
  const auto view = open_store_read_only(path_);
  first->reset();
  EXPECT_GT(locks(), 0U) << "those of whoever still looks";
  EXPECT_TRUE(open()) << "the owner's lock is free, although its descriptor has to stay open";
}

TEST_F(SqliteStore, whatever_name_leads_to_it_there_is_one_owner) {
  fill(10);
  std::filesystem::create_symlink(path_, folder_.path() + "/link.db");
  std::filesystem::create_directory_symlink(folder_.path(), folder_.path() + "/folder");
  auto first = open_sqlite_store(folder_.path() + "/link.db", {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal"));
  expect_refused(ErrorCode::store_locked, "owns it");
  std::filesystem::remove(path_ + "-owner");
  expect_refused(ErrorCode::store_locked, "process " + std::to_string(getpid()));
  const auto is_locked = [&](const std::string& name) {
    const auto store = open_sqlite_store(folder_.path() + name, {});
    return !store && store.error().code == ErrorCode::store_locked;
  };
  EXPECT_TRUE(is_locked("/folder/runs.db"));
  std::filesystem::create_hard_link(path_, folder_.path() + "/hard.db");
  EXPECT_TRUE(is_locked("/hard.db"));
  first->reset();
  // Its log stands beside one name only: whoever comes by the other would not see what was committed last.
  expect_refused(ErrorCode::store_unavailable, "hard links");
  std::filesystem::remove(folder_.path() + "/hard.db");
  EXPECT_TRUE(open());
}

// A program that only knows PATH-owner is kept out, and keeps us out.
TEST_F(SqliteStore, the_lock_of_older_programs_counts_too) {
  const auto lock_beside = [&](int& file) {
    file = ::open((path_ + "-owner").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return flock(file, LOCK_EX | LOCK_NB) == 0;
  };
  int file = -1;
  ASSERT_TRUE(lock_beside(file));
  expect_refused(ErrorCode::store_locked, "process " + std::to_string(getpid()));
  close(file);
  const auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(lock_beside(file));
  close(file);
}

TEST_F(SqliteStore, network_file_systems_are_known_by_their_numbers) {
  EXPECT_EQ(sqlite::network_file_system(0x6969), "NFS");
  for (const std::uint32_t smb : {0x517BU, 0xFF534D42U, 0xFE534D42U})
    EXPECT_EQ(sqlite::network_file_system(smb), "SMB");
  for (const std::uint32_t local :
       {0xEF53U, 0x01021994U, 0x58465342U, 0x9123683EU, 0x794C7630U, 0x2FC12FC1U, 0x65735546U})
    EXPECT_EQ(sqlite::network_file_system(local), "") << local;
  EXPECT_TRUE(sqlite::check_file_system(path_));
}

// A commit that no path leads to is none: it is told, for good, and what stands in the store's place is left alone.
TEST_F(SqliteStore, a_store_that_is_taken_away_is_noticed_by_the_next_commit) {
  const std::string aside = folder_.path() + "/aside.db";
  const auto swap_log = [&] {
    std::filesystem::rename(path_ + "-wal", aside);
    std::ofstream{path_ + "-wal"} << "another";
  };
  const auto replace = [&] {
    std::filesystem::rename(path_, aside);
    std::ofstream{path_} << "another";
    std::filesystem::remove(path_ + "-wal");
    std::ofstream{path_ + "-wal"} << "another";
  };
  for (const auto& take_away : std::initializer_list<std::function<void()>>{
           [&] { std::filesystem::remove(path_); }, [&] { std::filesystem::rename(path_, aside); }, replace,
           swap_log}) {
    for (const char* ending : {"", "-wal", "-shm", "-owner"}) std::filesystem::remove(path_ + ending);
    auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    Commit commit;
    commit.id = 1;
    ASSERT_TRUE((*store)->append(commit));
    take_away();
    commit.id = 2;
    EXPECT_EQ((*store)->append(commit).error().code, ErrorCode::store_gone);
    EXPECT_EQ((*store)->reopen().error().code, ErrorCode::store_gone);
    EXPECT_EQ((*store)->append(commit).error().code, ErrorCode::store_gone);
    EXPECT_EQ((*store)->read_run(1).error().code, ErrorCode::store_gone) << "not from another file";
    const bool had_log = std::filesystem::exists(path_ + "-wal");
    store->reset();
    EXPECT_EQ(std::filesystem::exists(path_ + "-wal"), had_log);
    const bool is_replaced = std::filesystem::exists(path_) && std::filesystem::file_size(path_) < 4096;
    EXPECT_EQ(content(), is_replaced ? "another" : content());
  }
}

TEST_F(SqliteStore, reopen_waits_for_the_reads_in_progress_and_refuses_others) {
  fill(10);
  auto store = open();
  Commit commit;
  commit.id = value((*store)->last_commit()) + 1;
  commit.frame = commit.put("frame");
  ASSERT_TRUE((*store)->append(commit));
  std::atomic<bool> has_read = false;
  std::atomic<bool> has_reopened = false;
  std::jthread reopening;
  ASSERT_TRUE((*store)->read_journal([&](std::uint64_t, std::string_view) {
    reopening = std::jthread{[&] {
      EXPECT_TRUE((*store)->reopen());
      EXPECT_TRUE(has_read) << "it did not wait";
      has_reopened = true;
    }};
    ErrorCode refused{};
    while (refused != ErrorCode::store_unavailable && !has_reopened) {
      const auto read = (*store)->read_run(1);
      if (!read) refused = read.error().code;
    }
    EXPECT_EQ(refused, ErrorCode::store_unavailable);
    // Long enough for a reopening that does not wait to be through.
    for (int looks = 0; looks < 200 && !has_reopened; ++looks) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    EXPECT_FALSE(has_reopened);
    has_read = true;
    return false;
  }));
  reopening.join();
  EXPECT_TRUE((*store)->read_run(1));
}

TEST_F(SqliteStore, reopen_notices_that_the_file_is_another_one) {
  fill(10);
  const std::string older = content();
  auto store = open();
  Commit commit;
  commit.id = value((*store)->last_commit()) + 1;
  ASSERT_TRUE((*store)->append(commit));
  ASSERT_TRUE((*store)->reopen()) << "which also brings everything into the one file";
  std::filesystem::resize_file(path_, 0);
  write(older);  // the same file with another content
  std::filesystem::resize_file(path_ + "-wal", 0);
  const auto reopened = (*store)->reopen();
  ASSERT_FALSE(reopened);
  EXPECT_EQ(reopened.error().code, ErrorCode::store_damaged) << reopened.error().message;
  std::filesystem::remove(path_);
  EXPECT_EQ((*store)->reopen().error().code, ErrorCode::store_gone);
  EXPECT_FALSE((*store)->read_run(1)) << "nor answer from nothing";
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it must not begin an empty one";
}

// Whoever looks may take as long as a person likes over each piece of a history.
TEST_F(SqliteStore, a_slow_reader_does_not_keep_the_log_from_being_emptied) {
  auto store = open();
  Commit commit;
  const auto append_chunk = [&] {
    commit.clear();
    commit.id = value((*store)->last_commit()) + 1;
    Image image;
    image.run = 1;
    image.first_sequence = commit.id;
    image.events = commit.put(std::string(400'000, 'e'));
    commit.images.push_back(image);
    ASSERT_TRUE((*store)->append(commit));
  };
  for (int chunk = 0; chunk < 6; ++chunk) append_chunk();
  const auto view = open_store_read_only(path_);
  ASSERT_TRUE(view) << view.error().message;
  const auto is_busy = [&] {
    append_chunk();
    return ask_writing("PRAGMA wal_checkpoint(TRUNCATE)");
  };
  EXPECT_EQ(is_busy(), 1) << "it shows one moment until it lets go";
  (*view)->let_go();
  std::vector<std::uint64_t> seen;
  ASSERT_TRUE((*view)->read_history(1, [&](std::uint64_t first, std::string_view) {
    EXPECT_EQ(is_busy(), 0) << first;
    seen.push_back(first);
    return first < 9;
  }));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9})) << "and goes on with what came meanwhile";
}

TEST_F(SqliteStore, a_long_journal_is_cut_in_parts_but_not_for_readers) {
  auto store = open();
  Commit commit;
  for (std::uint64_t id = 1; id <= 200; ++id) {
    commit.clear();
    commit.id = id;
    commit.frame = commit.put("frame");
    ASSERT_TRUE((*store)->append(commit));
  }
  std::size_t frames = 0;
  const auto count = [&] {
    return (*store)->read_journal([&](std::uint64_t, std::string_view) { return ++frames > 0; });
  };
  commit.clear();
  commit.id = 201;
  commit.cut = 200;
  ASSERT_TRUE((*store)->append(commit));
  ASSERT_TRUE(count());
  EXPECT_EQ(frames, 0U);
  EXPECT_GT(ask("SELECT count(*) FROM frames"), 100);
  for (commit.clear(), commit.id = 202; commit.id < 206; ++commit.id) ASSERT_TRUE((*store)->append(commit));
  EXPECT_EQ(ask("SELECT count(*) FROM frames"), 0);
  EXPECT_EQ((*store)->last_commit(), 205U);
}

TEST_F(SqliteStore, nothing_is_left_of_runs_that_are_removed) {
  auto store = open();
  Commit commit;
  const auto append_images = [&](RunStatus status, Time ended, Time due, std::uint64_t sequence) {
    commit.clear();
    commit.id = value((*store)->last_commit()) + 1;
    for (std::uint64_t run = 1; run <= 700; ++run) {
      Image image;
      image.run = run;
      image.status = status;
      image.ended = ended;
      image.due = due == 0 ? 0 : due + static_cast<Time>(run) * 1'000'000'000;
      image.first_sequence = sequence;
      image.key = commit.put("key " + std::to_string(run));
      image.events = commit.put("events");
      commit.images.push_back(image);
      commit.keys.push_back({image.key, run});
      commit.payloads.push_back(
          {commit.put(std::string(32, static_cast<char>('a' + run % 20))), commit.put("body"), run});
    }
    ASSERT_TRUE((*store)->append(commit));
  };
  append_images(RunStatus::running, 0, 5'000'000'000, 1);
  append_images(RunStatus::running, 0, 9'000'000'000, 2);
  append_images(RunStatus::failed, 7, 0, 3);
  for (int round = 0; round < 20; ++round) {
    commit.clear();
    commit.id = value((*store)->last_commit()) + 1;
    commit.removals = *(*store)->expired(INT64_MAX, 0, 100);
    ASSERT_TRUE((*store)->append(commit));
    if (commit.removals.empty()) break;
  }
  for (const char* table : {"runs", "history", "keys", "payloads", "payload_refs", "due_lists", "ended_lists"}) {
    EXPECT_EQ(ask(std::string{"SELECT count(*) FROM "} + table), 0) << table;
  }
  EXPECT_EQ((*store)->last_run(), 700U);
}

}  // namespace
}  // namespace reprise::store
