// A check that holds costs nothing; one that fails names its place and stops the process.
#include "base/check.hpp"

#include <gtest/gtest.h>

namespace reprise::base {
namespace {

TEST(BaseCheckDeathTest, StopsWithThePlaceAndTheRun) {
  int running = 1;
  REPRISE_CHECK(running > 0);
  REPRISE_CHECK(running > 0, 7U);
  running = 0;
  EXPECT_DEATH(REPRISE_CHECK(running > 0), "check_test.cpp:[0-9]+: running > 0[.] This is a mistake in reprise");
  EXPECT_DEATH(REPRISE_CHECK(running > 0, 7U), "running > 0 [(]run number 7[)]");
}

}  // namespace
}  // namespace reprise::base
