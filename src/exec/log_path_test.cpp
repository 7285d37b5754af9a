// Log files: everybody who looks finds what the executor wrote, and no name leads out of the folder.
#include "exec/log_path.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace reprise::exec {
namespace {

const RunId run = run_id_from("019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b").value();

TEST(ExecLogPath, HasTheDocumentedLayout) {
  EXPECT_EQ(log_path(".reprise", run, "fetch", 57, 2),
            ".reprise/logs/019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b/fetch/57.2.log");
  EXPECT_EQ(log_path("/a/", run, "f.x", 999, 1), "/a/logs/019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b/f.x/999.1.log");
  EXPECT_EQ(log_path("", run, "f", 1000, 1), "./logs/019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b/f/1000/1000.1.log");
  EXPECT_EQ(log_path("", run, "f", 12345, 1), "./logs/019a86b2-7c3d-7e4f-8a5b-0c1d2e3f4a5b/f/12000/12345.1.log");
}

TEST(ExecLogPath, KeepsEveryStepInItsOwnFolder) {
  std::set<std::string> folders;
  const std::string long_name(5000, 'x');
  for (const std::string& step : {std::string{".."}, std::string{"."}, std::string{"../../etc"}, std::string{"a/b"},
                                  std::string{"a%2fb"}, std::string{"ä"}, long_name, long_name + "y"}) {
    const std::string folder = log_folder("/store", run, step);
    EXPECT_TRUE(folders.insert(folder).second) << step;
    const std::filesystem::path path{folder};
    EXPECT_EQ(path.lexically_normal(), path);
    EXPECT_EQ(path.parent_path(), log_folder("/store", run));
    EXPECT_LE(path.filename().string().size(), 255U);
  }
}

TEST(ExecLogPath, ReadsItsOwnNames) {
  EXPECT_TRUE(rc::check("a path's file name says which attempt it is", [](std::uint32_t item, std::uint64_t attempt) {
    const std::string path = log_path("/s", run, "step", item, attempt);
    const auto name = log_name_in(std::filesystem::path{path}.filename().string());
    RC_ASSERT(name.has_value());
    RC_ASSERT(name->item == item);
    RC_ASSERT(name->attempt == attempt);
  }));
  for (const std::string_view other :
       {"", ".log", "1.log", "1.2", "1.2.log.gz", "a.1.log", "-1.1.log", "1.2.3.log", "99999999999.1.log"})
    EXPECT_FALSE(log_name_in(other)) << other;
}

}  // namespace
}  // namespace reprise::exec
