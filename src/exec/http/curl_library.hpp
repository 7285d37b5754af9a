// libcurl, loaded when the first request needs it: the thirty libraries it stands on would cost each start of the command milliseconds, and most
// commands make no request.
//
//   if (!curl_problem().empty()) …   // and curl_remedy says what to do
//   CURL* handle = curl().easy_init();
//
// Thread safety: any thread. It is loaded once and stays.
#pragma once

#include <curl/curl.h>

#include <string>

namespace reprise::exec {

struct CurlLibrary {  // its functions, without their prefix
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
  decltype(&::curl_free) free = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_url) url = nullptr;
  decltype(&::curl_url_set) url_set = nullptr;
  decltype(&::curl_url_get) url_get = nullptr;
  decltype(&::curl_url_cleanup) url_cleanup = nullptr;
  decltype(&::curl_url_strerror) url_strerror = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_setopt) multi_setopt = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
};

// Why requests cannot be made here; empty when they can. What to do about it is always the same.
const std::string& curl_problem();
inline constexpr const char* curl_remedy = "install libcurl 7.87 or later (on Debian and Ubuntu: apt install libcurl4)";

// Only where curl_problem() is empty.
const CurlLibrary& curl();

}  // namespace reprise::exec
