#include "cli/run/same_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "exec/document/run_identity.hpp"

namespace reprise::cli {
namespace {

std::expected<std::vector<std::string>, Error> different_from(const RunSession& session, const RunId& run,
                                                              exec::RunInput& input) {
  const auto reader = session.reader();
  if (!reader) return std::unexpected{reader.error()};
  const auto view = (*reader)->run(run);
  if (!view) return std::unexpected{view.error()};
  if (!*view) return std::unexpected{Error{ErrorCode::not_found, "the run is gone"}};
  auto recorded = exec::decode_run_input((*view)->input);
  if (!recorded) return std::vector<std::string>{"that run is one of a program"};
  std::vector<std::string> different = exec::differences(*recorded, input);
  input = *std::move(recorded);
  return different;
}

}  // namespace

std::expected<exec::RunInput, int> input_of_same_run(const RunSession& session, const RunId& run,
                                                     const std::string& key, exec::RunInput asked, int exit_if_other) {
  if (key.empty() || session.shard().path.empty()) return asked;  // it can only be new
  const auto different = different_from(session, run, asked);
  if (!different) return std::unexpected{show_error(different.error())};
  if (different->empty()) return asked;
  print_error(
      fmt::format("reprise: the id {} belongs to run {}, and this call asks for other work: {}\n"
                  "reprise: use another --id for it; about that run: {}\n",
                  key, to_string(run), fmt::join(*different, ", "), suggested(session.options().store, "show", run)));
  return std::unexpected{exit_if_other};
}

}  // namespace reprise::cli
