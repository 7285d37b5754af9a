// Stores that earlier versions wrote: what they know is shown as before, and what was open in them goes on.
#include <gtest/gtest.h>

#include <filesystem>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

constexpr const char* hopeless = "01a1ed13-5dd6-7446-be4f-f70000000001";
constexpr const char* waits = "01a1ed13-5f2a-752b-8eed-bd0000000003";
constexpr const char* outer = "01a1ed13-6759-790e-80fb-2c0000000004";
constexpr const char* slow = "01a1ed13-676a-7a79-8e6a-100000000005";
constexpr const char* story = "01a1ed13-733d-7859-8a74-d70000000006";

std::string field(const FlowFolder& folder, const char* run, const char* name) {
  return text_of(folder.show(run), name);
}

class OldStores : public ::testing::Test {
 protected:
  OldStores() {
    namespace fs = std::filesystem;
    fs::create_directory(folder_.path_of(".reprise"));
    fs::copy_file(std::string{REPRISE_OLD_STORES} + "/version_1.db", folder_.path_of(".reprise/reprise.db"));
    folder_.set("GO_ON", "1");
  }

  // The folder in which they were begun exists nowhere any more.
  int resume(const char* run) const {
    return folder_.reprise({"resume", run, "--directory", folder_.path()}).exit_code;
  }

  FlowFolder folder_;
};

TEST_F(OldStores, TellTheSameStory) {
  EXPECT_EQ(field(folder_, hopeless, "status"), "failed");
  EXPECT_EQ(story_of(folder_.events(hopeless)),
            (std::vector<std::string>{"submitted", "started fetch#1", "failed fetch#1", "retrying fetch#1",
                                      "started fetch#2", "failed fetch#2", "retrying fetch#2", "started fetch#3",
                                      "failed fetch#3", "unreachable after", "ended"}));
  EXPECT_FALSE(has(folder_.show(waits), "ended"));
  const Outcome shown = folder_.reprise({"show", waits});
  EXPECT_NE(shown.out.find("status    interrupted"), std::string::npos) << shown.out;
  EXPECT_NE(shown.err.find("To resume it:"), std::string::npos) << shown.err;
  EXPECT_FALSE(has(folder_.show(story), "ended"));
  EXPECT_EQ(number_of(folder_.step("first", story), "attempts"), 2);
  const std::string again =
      "cd / && \"$0\" exec --store sqlite:\"$HOME\"/.reprise/reprise.db --id kept -- sh -c 'echo output; exit 0'";
  EXPECT_EQ(folder_.shell(again).out, "output\n");
  EXPECT_NE(folder_.reprise({"why", hopeless}).out.find("connection reset"), std::string::npos);
}

TEST_F(OldStores, WhatWasOpenGoesOn) {
  ASSERT_EQ(resume(story), 0);
  EXPECT_EQ(field(folder_, story, "status"), "succeeded");
  EXPECT_EQ(of_type(folder_.events(story), "started", "first").size(), 2U) << "what was done is not done again";
  EXPECT_EQ(of_type(folder_.events(story), "started", "each[0]").size(), 1U);
  EXPECT_EQ(of_type(folder_.events(story), "completed", "each").size(), 5U);
  EXPECT_EQ(of_type(folder_.events(story), "dead_lettered", "each[2]").size(), 1U);
}

TEST_F(OldStores, ASubFlowThatWasRunningIsFoundAgain) {
  folder_.write("slow.yaml", R"yaml(name: slow
steps:
  - {id: slow, run: "test -n \"$GO_ON\" || sleep 60", retry: {policy: standard, initial: 20ms, jitter: none}}
)yaml");
  ASSERT_EQ(resume(outer), 0);
  EXPECT_EQ(field(folder_, outer, "status"), "succeeded");
  EXPECT_EQ(field(folder_, slow, "status"), "succeeded") << "the same child, not a second one";
  EXPECT_EQ(folder_.reprise({"runs", "--format", "json"}).out.find("\"flow\":\"slow\""),
            folder_.reprise({"runs", "--format", "json"}).out.rfind("\"flow\":\"slow\""));
}

}  // namespace
}  // namespace reprise::testing_support
