// What is told on standard error while a run goes on: lines, JSON, or a live view.
//
// Thread safety: one thread, except say(), pause_drawing() and draw_again().
#pragma once

#include <memory>
#include <string_view>

#include <reprise/event.hpp>

#include "cli/look/output_lines.hpp"
#include "cli/run/run_commands.hpp"
#include "core/plan.hpp"
#include "observe/styled.hpp"
#include "observe/words.hpp"

namespace reprise::cli {

class ProgressDisplay {
 public:
  virtual ~ProgressDisplay() = default;
  virtual void recall(const Event& event) = 0;  // it happened before: it counts, but nothing is said about it
  virtual void add(const Event& event) = 0;
  virtual void time_passes() = 0;         // to be called when patience() is over and nothing has happened
  virtual Duration patience() const = 0;  // how long nothing may be shown at most
  virtual void finish() {}                // nothing more will be shown

  virtual void say(std::string_view line);  // a word of the command itself, without a line end
  virtual void pause_drawing() {}           // the terminal is handed to somebody else
  virtual void draw_again() {}
};

// `quiet` gives none.
std::unique_ptr<ProgressDisplay> make_progress_display(ProgressMode mode, bool only_trouble,
                                                       const std::shared_ptr<const core::Plan>& plan,
                                                       observe::LabelOf labels = {});

// The same, and before each event what the work has written. `inner` may be nullptr.
std::unique_ptr<ProgressDisplay> with_output(std::unique_ptr<ProgressDisplay> inner, OutputLines output);

// What `auto` means here and now: a live view only where a person sits at a terminal that can show it.
ProgressMode automatic_progress();

// The signs to be used, and whether colours are welcome, in the words that follow a live view.
const observe::Symbols& symbols_of_terminal();
bool has_colours();

}  // namespace reprise::cli
