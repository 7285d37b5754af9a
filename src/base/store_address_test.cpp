// What --store may say: kinds, paths with colons, and refusals that say what to write instead.
#include "base/store_address.hpp"

#include <gtest/gtest.h>

namespace reprise::base {
namespace {

std::string path_in(std::string_view address) {
  const auto parsed = parse_store_address(address);
  if (!parsed) return "refused: " + parsed.error();
  return parsed->kind == StoreKind::sqlite ? parsed->path : "no path";
}

std::string refusal_of(std::string_view address) {
  const auto parsed = parse_store_address(address);
  return parsed ? "" : parsed.error();
}

TEST(BaseStoreAddress, ReadsBothKinds) {
  EXPECT_EQ(parse_store_address("memory:"), (StoreAddress{StoreKind::memory}));
  EXPECT_EQ(path_in("sqlite:.reprise/reprise.db"), ".reprise/reprise.db");
  EXPECT_EQ(path_in("sqlite:/srv/runs.db"), "/srv/runs.db");
  EXPECT_EQ(path_in("sqlite:///srv/runs.db"), "///srv/runs.db");
  EXPECT_EQ(path_in("/srv/runs.db"), "/srv/runs.db");
}

TEST(BaseStoreAddress, APathMayHoldAColon) {
  for (const std::string path : {"my.db:1", "./a:b", "a/b:c", "C:\\runs.db", "1:2", ":x", "a_b:c"})
    EXPECT_EQ(path_in(path), path);
  EXPECT_EQ(path_in("sqlite:mysql:x"), "mysql:x");
}

TEST(BaseStoreAddress, RefusesWithARemedy) {
  EXPECT_NE(refusal_of("").find("write sqlite:PATH"), std::string::npos);
  EXPECT_NE(refusal_of("sqlite:").find("write sqlite:PATH"), std::string::npos);
  EXPECT_NE(refusal_of("sqlite://host/x").find("names no host"), std::string::npos);
  EXPECT_NE(refusal_of(std::string_view{"a\0b", 3}).find("zero byte"), std::string::npos);
  EXPECT_NE(refusal_of("memory:x").find("takes nothing after the colon"), std::string::npos);
  EXPECT_NE(refusal_of("postgresql://db/runs").find("no kind of store named postgresql"), std::string::npos);
  EXPECT_NE(refusal_of("Memory:").find("no kind of store named Memory"), std::string::npos);
}

}  // namespace
}  // namespace reprise::base
