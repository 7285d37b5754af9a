#include "cli/look/show_page.hpp"

#include "cli/io.hpp"
#include "cli/store_option.hpp"
#include "env/wall_clock.hpp"
#include "observe/page/html_page.hpp"

namespace reprise::cli {

int show_page(const ShowOptions& options, Looked& looked) {
  const observe::PageAbout about{.now = wall_clock_now_exactly(), .is_left_alone = is_left_alone(looked)};
  observe::HtmlPage page{looked.view, about};
  constexpr std::size_t evidence_bytes_max = std::size_t{16} << 20U;  // of what attempts left behind; later ones are in the store
  std::size_t evidence_bytes = 0;
  const auto read = looked.reader->each_event(looked.id, [&](Event&& event) {
    if (event.failure && evidence_bytes < evidence_bytes_max) {
      looked.reader->add_evidence(looked.id, *event.failure);
      evidence_bytes += event.failure->evidence.size();
    }
    page.add(event);
    return true;
  });
  if (!read) return show_error(read.error());
  const auto written = write_file(options.html.value_or("-"), std::move(page).html());
  return written ? exit_done : written.error();
}

}  // namespace reprise::cli
