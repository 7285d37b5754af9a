#include "cli/operate/asker.hpp"

#include "env/wall_clock.hpp"
#include "env/who.hpp"
#include "runtime/ids.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {

std::string asker_name(std::string_view command) {
  return text::safe_to_show(user_and_host()) + ": reprise " + std::string{command};
}

runtime::Requester asker(std::string_view command, std::string_view why) {
  return {runtime::new_request_id(wall_clock_now_exactly().time_since_epoch().count()), asker_name(command),
          std::string{why}};
}

}  // namespace reprise::cli
