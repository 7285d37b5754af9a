// What the executor of documents owes to those who give it work, whatever the moment.
#include "exec/document/document_executor.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise::exec {
namespace {

class Heard final : public Sink {
 public:
  void ended(Outcome&& outcome) override { outcomes.push_back(std::move(outcome)); }
  void progressed(Progress&&) override {}

  std::vector<Outcome> outcomes;
};

// A commit that was waiting for space may become durable after everything was told to end: its attempts have not begun.
TEST(ExecDocumentExecutor, WhatComesAfterItsEndIsInterruptedAndHoldsNothingUp) {
  Heard heard;
  {
    DocumentExecutor executor{{}, heard, [](std::string_view) { return std::string{}; }};
    executor.shut_down();
    std::vector<Job> jobs(2);
    jobs[1].id.item = 1;
    executor.start(jobs);
    executor.prepare({});
    ASSERT_EQ(heard.outcomes.size(), 2U);
    EXPECT_TRUE(heard.outcomes[1].interrupted);
    EXPECT_EQ(heard.outcomes[1].id.item, 1U);
  }
  EXPECT_EQ(heard.outcomes.size(), 2U);
}

}  // namespace
}  // namespace reprise::exec
