// What the HTTP library of this machine can do, for those who look for trouble. Thread safety: any thread.
#pragma once

#include <string>

namespace reprise::exec {

struct HttpFeatures {
  std::string problem = {};  // why there is no library; then nothing else is known
  std::string remedy = {};
  std::string version = {};  // 7.88.1
  std::string tls = {};      // OpenSSL/3.0.11; empty = https cannot be used
  bool http2 = false;
  bool waits_for_names = false;  // looking up a name blocks: other requests wait for it
};

HttpFeatures http_features();  // loads the library

}  // namespace reprise::exec
