// Rights that a umask cannot widen, links that are not followed, and SHA-256.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/hex.hpp"
#include "base/private_file.hpp"
#include "base/sha256.hpp"
#include "support/run_program.hpp"

namespace reprise::base {
namespace {

namespace fs = std::filesystem;

class BasePrivateFile : public ::testing::TestWithParam<mode_t> {
 protected:
  BasePrivateFile() : before_{::umask(GetParam())} {}
  ~BasePrivateFile() override { ::umask(before_); }
  std::string path(const std::string& name) const { return directory_.path() + "/" + name; }
  unsigned rights(const std::string& name) const {
    struct stat info {};
    return ::lstat(path(name).c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
  }

  testing_support::TemporaryDirectory directory_;
  mode_t before_;
};

TEST_P(BasePrivateFile, IsForItsUserAlone) {
  EXPECT_EQ(make_private_folder(path("a/b/c")), true);
  EXPECT_EQ(make_private_folder(path("a/b/c")), false);
  for (const char* const folder : {"a", "a/b", "a/b/c"}) EXPECT_EQ(rights(folder), 0700U) << folder;
  EXPECT_EQ(make_private_file(path("a/file")), true);
  EXPECT_EQ(make_private_file(path("a/file")), false);
  EXPECT_EQ(rights("a/file"), 0600U);
  const auto file = open_below(path("a"), "logs/7/x.log", O_WRONLY | O_CREAT);
  ASSERT_TRUE(file);
  EXPECT_EQ(rights("a/logs"), 0700U);
  EXPECT_EQ(rights("a/logs/7"), 0700U);
  EXPECT_EQ(rights("a/logs/7/x.log"), 0600U);
  EXPECT_TRUE(sync_below(path("a"), "logs/7/x.log", *file));
}

TEST_P(BasePrivateFile, WhatIsThereKeepsItsRights) {
  fs::create_directory(path("open"));
  ASSERT_EQ(::chmod(path("open").c_str(), 0755), 0);
  EXPECT_EQ(make_private_folder(path("open")), false);
  EXPECT_EQ(rights("open"), 0755U);
}

INSTANTIATE_TEST_SUITE_P(Umask, BasePrivateFile, ::testing::Values(0, 022, 077, 0777));

TEST(BaseLinks, AreNotFollowedBelowTheFolder) {
  const testing_support::TemporaryDirectory directory;
  const std::string folder = directory.path() + "/folder";
  fs::create_directories(folder + "/real");
  fs::create_directories(directory.path() + "/outside");
  fs::create_directory_symlink(directory.path() + "/outside", folder + "/linked");
  fs::create_symlink(directory.path() + "/outside/target", folder + "/real/file");
  for (const char* const name : {"linked/file", "linked/deeper/file", "real/file"}) {
    const auto opened = open_below(folder, name, O_WRONLY | O_CREAT);
    ASSERT_FALSE(opened) << name;
    EXPECT_NE(words_of(opened.error()).find("symbolic link"), std::string::npos) << words_of(opened.error());
  }
  EXPECT_FALSE(make_folder_of(folder, "linked/deeper/file"));
  std::ofstream{directory.path() + "/outside/target"} << "theirs";
  EXPECT_FALSE(remove_below(folder, "linked/target"));
  EXPECT_TRUE(fs::remove(directory.path() + "/outside/target")) << "it was still there";
  EXPECT_TRUE(remove_below(folder, "nothing/there"));
  EXPECT_EQ(open_below(folder, "../outside/file", O_WRONLY | O_CREAT).error().value(), EINVAL);
  EXPECT_TRUE(fs::is_empty(directory.path() + "/outside"));
  fs::create_directory_symlink(folder, directory.path() + "/entrance");
  EXPECT_TRUE(open_below(directory.path() + "/entrance", "real/other", O_WRONLY | O_CREAT)) << "the user's own word";
  EXPECT_EQ(make_private_file(folder + "/real/file"), false) << "a link counts as a file, and leads to none";
}

TEST(BaseLinks, NamesBelowAFolder) {
  EXPECT_EQ(name_below("/a/b", "/a/b/c/d"), "c/d");
  EXPECT_EQ(name_below("/a/b/", "/a/b/c"), "c");
  EXPECT_EQ(name_below("/a/b", "/a/bc"), "");
  EXPECT_EQ(name_below("/a/b", "/x"), "");
  EXPECT_EQ(name_below("", "/x"), "");
}

TEST(BaseSha256, InPiecesAndAtOnce) {
  EXPECT_EQ(hexadecimal(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 pieces;
  pieces.add("a");
  pieces.add("bc");
  EXPECT_EQ(pieces.take(), sha256("abc"));
}

}  // namespace
}  // namespace reprise::base
