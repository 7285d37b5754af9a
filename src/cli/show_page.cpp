#include "cli/show_page.hpp"

#include "cli/io.hpp"
#include "cli/store_option.hpp"
#include "env/wall_clock.hpp"
#include "observe/html_page.hpp"

namespace reprise::cli {

int show_page(const ShowOptions& options, Looked& looked) {
  const observe::PageAbout about{.now = wall_clock_now_exactly(), .is_left_alone = is_left_alone(looked)};
  observe::HtmlPage page{looked.view, about};
  const auto read = looked.snapshot.each_event(looked.id, [&](const Event& event) {
    page.add(event);
    return true;
  });
  if (!read) return show_error(read.error());
  const auto written = write_file(options.html.value_or("-"), page.html());
  return written ? exit_done : written.error();
}

}  // namespace reprise::cli
