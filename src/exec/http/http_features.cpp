#include "exec/http/http_features.hpp"

#include "exec/http/curl_library.hpp"

namespace reprise::exec {

HttpFeatures http_features() {
  if (!curl_problem().empty()) return {.problem = curl_problem(), .remedy = curl_remedy};
  const curl_version_info_data* const info = curl().version_info(CURLVERSION_NOW);
  const auto has = [&](int feature) { return (info->features & feature) != 0; };
  return {.version = info->version != nullptr ? info->version : "",
          .tls = has(CURL_VERSION_SSL) && info->ssl_version != nullptr ? info->ssl_version : "",
          .http2 = has(CURL_VERSION_HTTP2),
          .waits_for_names = !has(CURL_VERSION_ASYNCHDNS)};
}

}  // namespace reprise::exec
