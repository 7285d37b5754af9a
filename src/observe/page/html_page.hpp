// One page about one run, for a browser: a single file that needs no network, no font and no other file.
//
//   HtmlPage page{view, {.now = now}};
//   for (const Event& event : events) page.add(event);
//   write(std::move(page).html());
//
// What programs wrote (names, messages, results) is data of the page's own script, which shows it as text and nothing else; a policy in the
// page's head lets no other script run and nothing be loaded. `view` must live as long as the page.
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "observe/page/page_data.hpp"

namespace reprise::observe {

class HtmlPage {
 public:
  HtmlPage(const runtime::RunView& view, const PageAbout& about, PageLimits limits = {}) : data_{view, about, limits} {}

  void add(const Event& event) { data_.add(event); }  // in order, from the first
  std::string html() &&;

 private:
  PageData data_;
};

// JSON that may stand between <script> and </script>: the same value, without any character that means something to HTML.
std::string safe_in_script(std::string_view json);

}  // namespace reprise::observe
