// What stands beside a store is for its user alone, whatever the umask; and links in there lead nobody elsewhere.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

namespace fs = std::filesystem;

// "0755 .reprise/logs" for each folder that is not 0700 and each file that is not 0600.
std::string too_open(const FlowFolder& folder, const std::string& below) {
  std::string found;
  const auto look = [&](const fs::path& path) {
    struct stat info {};
    ASSERT_EQ(::lstat(path.c_str(), &info), 0) << path;
    const mode_t expected = S_ISDIR(info.st_mode) ? 0700 : 0600;
    if ((info.st_mode & 07777) != expected) found += path.string() + "\n";
  };
  look(folder.path_of(below));
  for (const auto& entry : fs::recursive_directory_iterator{folder.path_of(below)}) look(entry.path());
  return found;
}

TEST(TroublePrivate, EveryFileIsForItsUserAloneFromTheStart) {
  for (const char* const umask : {"000", "022", "077", "777"}) {
    FlowFolder folder;
    Child running{{"/usr/bin/env", "-C", folder.path(), "sh", "-c",
                   std::string{"umask "} + umask +
                       "; seq 9 | \"$0\" exec --progress quiet --retry none --store made/on/the/way/runs.db -- sh -c "
                       "'umask 022; echo begun >&2; "
                       "head -c 200000 /dev/zero; echo x > begun; "
                       "until [ -e open ]; do sleep 0.02; done; exit 1' 2>errors & wait",
                   REPRISE_COMMAND}};
    ASSERT_TRUE(folder.wait_for_file("begun"));
    for (const char* const name : {"runs.db", "runs.db-wal", "runs.db-shm", "runs.db.sock", "stdin", "logs"})
      EXPECT_TRUE(fs::exists(folder.path_of(std::string{"made/on/the/way/"} + name))) << name;
    EXPECT_EQ(too_open(folder, "made"), "") << "umask " << umask;
    folder.write("open", "");
    running.join();
    EXPECT_EQ(too_open(folder, "made"), "") << "umask " << umask;
  }
}

TEST(TroublePrivate, TheUsualFolderTellsGitToPassItOver) {
  FlowFolder folder;
  EXPECT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  EXPECT_EQ(folder.read(".reprise/.gitignore"), "*\n");
  EXPECT_EQ(too_open(folder, ".reprise"), "");
  fs::remove(folder.path_of(".reprise/.gitignore"));
  EXPECT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  EXPECT_FALSE(folder.exists(".reprise/.gitignore")) << "a folder that was there already is the user's";
  EXPECT_EQ(folder.reprise({"exec", "--store", "other/runs.db", "--", "true"}).exit_code, 0);
  EXPECT_FALSE(folder.exists("other/.gitignore"));
}

TEST(TroublePrivate, LinksInsideOfTheFolderAreNotFollowed) {
  FlowFolder folder;
  fs::create_directories(folder.path_of("outside"));
  fs::create_directories(folder.path_of(".reprise"));
  for (const char* const name : {"logs", "stdin"})
    fs::create_directory_symlink(folder.path_of("outside"), folder.path_of(std::string{".reprise/"} + name));
  const Outcome flow = folder.run("steps: [{id: a, run: echo text}, {id: b, run: echo text, stall_timeout: 1m}]");
  EXPECT_EQ(flow.exit_code, 0) << "a log is no condition of the work: " << flow.err;
  EXPECT_EQ(folder.reprise({"exec", "--", "echo", "short"}).out, "short\n");
  const Outcome much = folder.reprise({"exec", "--max-attempts", "1", "--", "head", "-c", "200000", "/dev/zero"});
  EXPECT_EQ(much.exit_code, 125);
  EXPECT_NE(much.err.find("symbolic link"), std::string::npos) << much.err;
  const Outcome given = folder.reprise({"exec", "--", "touch", "ran"}, "input");
  EXPECT_EQ(given.exit_code, 125);
  EXPECT_NE(given.err.find("symbolic link"), std::string::npos) << given.err;
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_TRUE(fs::is_empty(folder.path_of("outside")));
}

// The folder itself, and the file that --store names, are what the user says.
TEST(TroublePrivate, AFolderThatIsALinkIsWhatTheUserSays) {
  FlowFolder folder;
  fs::create_directories(folder.path_of("disk"));
  fs::create_directory_symlink(folder.path_of("disk"), folder.path_of(".reprise"));
  EXPECT_EQ(folder.run("steps: [{id: a, run: echo text}]").exit_code, 0);
  EXPECT_TRUE(folder.exists("disk/reprise.db"));
  EXPECT_EQ(folder.log("a", 0, 1), "text\n");
}

}  // namespace
}  // namespace reprise::testing_support
