#include "exec/http/curl_library.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

namespace reprise::exec {
namespace {

class LoadedLibrary {
 public:
  LoadedLibrary() {
    void* const library = open();
    if (library == nullptr) return;
    find(library, "curl_global_init", functions_.global_init);
    find(library, "curl_version_info", functions_.version_info);
    find(library, "curl_free", functions_.free);
    find(library, "curl_slist_append", functions_.slist_append);
    find(library, "curl_slist_free_all", functions_.slist_free_all);
    find(library, "curl_url", functions_.url);
    find(library, "curl_url_set", functions_.url_set);
    find(library, "curl_url_get", functions_.url_get);
    find(library, "curl_url_cleanup", functions_.url_cleanup);
    find(library, "curl_url_strerror", functions_.url_strerror);
    find(library, "curl_easy_init", functions_.easy_init);
    find(library, "curl_easy_setopt", functions_.easy_setopt);
    find(library, "curl_easy_getinfo", functions_.easy_getinfo);
    find(library, "curl_easy_cleanup", functions_.easy_cleanup);
    find(library, "curl_easy_strerror", functions_.easy_strerror);
    find(library, "curl_multi_init", functions_.multi_init);
    find(library, "curl_multi_setopt", functions_.multi_setopt);
    find(library, "curl_multi_cleanup", functions_.multi_cleanup);
    find(library, "curl_multi_add_handle", functions_.multi_add_handle);
    find(library, "curl_multi_remove_handle", functions_.multi_remove_handle);
    find(library, "curl_multi_perform", functions_.multi_perform);
    find(library, "curl_multi_poll", functions_.multi_poll);
    find(library, "curl_multi_wakeup", functions_.multi_wakeup);
    find(library, "curl_multi_info_read", functions_.multi_info_read);
    if (problem_.empty()) start();
  }

  const CurlLibrary& functions() const noexcept { return functions_; }
  const std::string& problem() const noexcept { return problem_; }

 private:
  void* open() {
    // What an administrator may name instead, such as a build of their own.
    const char* const named = std::getenv("REPRISE_LIBCURL");
    const std::array<const char*, 2> usual{"libcurl.so.4", "libcurl-gnutls.so.4"};
    void* library = nullptr;
    if (named != nullptr && *named != '\0') {
      library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    } else {
      for (std::size_t at = 0; at < usual.size() && library == nullptr; ++at)
        library = dlopen(usual.at(at), RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) {
      const char* const reason = dlerror();
      problem_ = std::string{"HTTP requests need libcurl, which cannot be loaded ("} +
                 (reason != nullptr ? reason : "?") + ")";
    }
    return library;
  }

  template <class Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr && problem_.empty())
      problem_ = std::string{"HTTP requests need a newer libcurl: this one has no "} + name;
  }

  void start() {
    constexpr unsigned needed = 0x075700;  // 7.87.0: the newest option that HttpTransfer sets (CURLOPT_QUICK_EXIT)
    const curl_version_info_data* const info = functions_.version_info(CURLVERSION_NOW);
    if (info->version_num < needed) {
      problem_ = std::string{"HTTP requests need libcurl 7.87 or later, and this is "} + info->version;
      return;
    }
    const CURLcode started = functions_.global_init(CURL_GLOBAL_DEFAULT);
    if (started != CURLE_OK) problem_ = std::string{"libcurl cannot start: "} + functions_.easy_strerror(started);
  }

  CurlLibrary functions_;
  std::string problem_;
};

const LoadedLibrary& loaded() {
  static const LoadedLibrary once;
  return once;
}

}  // namespace

const std::string& curl_problem() { return loaded().problem(); }

const CurlLibrary& curl() { return loaded().functions(); }

}  // namespace reprise::exec
