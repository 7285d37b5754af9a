// Whom a request is for and whether it can be sent: whatever the URL and the headers are, and without showing what is secret in them.
#include "exec/http/http_target.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise::exec {
namespace {

TEST(ExecHttpTarget, PlacesShowNoSecrets) {
  EXPECT_EQ(target_of("http://user:pw@example.org/x?k=v#f"), (HttpTarget{"example.org:80", false}));
  EXPECT_EQ(target_of("https://example.org"), (HttpTarget{"example.org:443", false}));
  EXPECT_EQ(target_of("HTTP://LocalHost:81/"), (HttpTarget{"LocalHost:81", true}));
  EXPECT_EQ(target_of("http://[::1]:81/"), (HttpTarget{"[::1]:81", true}));
  EXPECT_EQ(target_of("http://127.8.9.1/"), (HttpTarget{"127.8.9.1:80", true}));
  EXPECT_EQ(target_of("http://127.example.org/"), (HttpTarget{"127.example.org:80", false}));
}

RC_GTEST_PROP(ExecHttpTarget, NothingUnprintableGetsThrough, (const std::string& name, const std::string& value)) {
  const HttpRequest request{.url = "http://127.0.0.1/", .headers = {{name, value}}};
  const std::string line = name + value;
  const bool has_break = line.find_first_of(std::string_view{"\r\n\0", 3}) != std::string::npos;
  if (has_break || name.empty() || name.find_first_of(": ") != std::string::npos) {
    RC_ASSERT(!check_request(request).has_value());
  }
}

RC_GTEST_PROP(ExecHttpTarget, AnyTextAsUrlIsTakenOrRefused, (const std::string& rest)) {
  const auto target = target_of("http://user:pw@" + rest);
  if (target.has_value())
    RC_ASSERT(target->place.find("pw") == std::string::npos || rest.find("pw") != std::string::npos);
}

}  // namespace
}  // namespace reprise::exec
