#include "cli/run/progress_display.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include <reprise/env.hpp>

#include "cli/io.hpp"
#include "env/wall_clock.hpp"
#include "observe/live/live_view.hpp"
#include "observe/live/painter.hpp"
#include "observe/live/plain_progress.hpp"

namespace reprise::cli {
namespace {

using namespace std::chrono_literals;

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class JsonLines final : public ProgressDisplay {
 public:
  void recall(const Event& /*event*/) override {}
  void add(const Event& event) override { print_error(to_json(event) + "\n"); }
  void time_passes() override {}
  Duration patience() const override { return 1s; }
  void say(std::string_view /*line*/) override {}  // every line is an event
};

class PlainLines final : public ProgressDisplay {
 public:
  PlainLines(const std::shared_ptr<const core::Plan>& plan, bool only_trouble, observe::LabelOf labels)
      : progress_{plan, only_trouble, std::move(labels)} {}

  void recall(const Event& event) override { progress_.recall(event); }
  void add(const Event& event) override { write(progress_.add(event)); }
  void time_passes() override { write(progress_.heartbeat(wall_clock_now_exactly())); }
  Duration patience() const override { return 1s; }

 private:
  static void write(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) print_error(line + "\n");
  }
  observe::PlainProgress progress_;
};

observe::TerminalSize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

class LiveTerminal final : public ProgressDisplay {
 public:
  LiveTerminal(const std::shared_ptr<const core::Plan>& plan, observe::LabelOf labels)
      : view_{plan, symbols_of_terminal(), std::move(labels)}, painter_{has_colours()} {}

  void recall(const Event& event) override {
    const std::lock_guard lock{mutex_};
    view_.recall(event);
  }
  void add(const Event& event) override {
    const std::lock_guard lock{mutex_};
    view_.add(event);
    if (system_env().now() - last_drawn_ >= between_pictures) draw();
  }
  void time_passes() override {
    const std::lock_guard lock{mutex_};
    draw();
  }
  Duration patience() const override { return between_pictures; }
  void finish() override {
    const std::lock_guard lock{mutex_};
    show(view_.take_lines(), Picture::none);
  }

  void say(std::string_view line) override {
    const std::lock_guard lock{mutex_};
    auto lines = view_.take_lines();
    lines.push_back({{std::string{line}, observe::Style::strong}});
    show(std::move(lines), Picture::drawn);
  }
  void pause_drawing() override {
    const std::lock_guard lock{mutex_};
    show(view_.take_lines(), Picture::none);
    is_paused_ = true;
  }
  void draw_again() override {
    const std::lock_guard lock{mutex_};
    painter_.leave();
    is_paused_ = false;
    draw();
  }

 private:
  static constexpr Duration between_pictures = 100ms;

  enum class Picture : bool { none, drawn };

  void draw() {
    if (is_paused_) return;
    last_drawn_ = system_env().now();
    show(view_.take_lines(), Picture::drawn);
  }
  void show(std::vector<observe::StyledLine> staying, Picture wanted) {
    const observe::TerminalSize size = terminal_size();  // asked once: it may change at any moment
    std::vector<observe::StyledLine> picture;
    if (wanted == Picture::drawn) picture = view_.frame(wall_clock_now_exactly(), size.columns - 1, size.rows - 1);
    if (symbols_of_terminal().is_ascii) {
      for (auto* const lines : {&staying, &picture}) {
        for (observe::StyledLine& line : *lines)
          for (observe::Span& span : line) span.text = observe::in_ascii(span.text);
      }
    }
    const std::string bytes = painter_.paint(size, staying, picture);
    if (!bytes.empty()) print_error_bytes(bytes);
  }

  std::mutex mutex_;
  observe::LiveView view_;
  observe::Painter painter_;
  Env::TimePoint last_drawn_ = {};  // not by the time of day, which may be set back
  bool is_paused_ = false;
};

class WithOutput final : public ProgressDisplay {
 public:
  WithOutput(std::unique_ptr<ProgressDisplay> inner, OutputLines output)
      : inner_{std::move(inner)}, output_{std::move(output)} {}

  void recall(const Event& event) override {
    output_.skip(event);
    if (inner_) inner_->recall(event);
  }
  void add(const Event& event) override {
    tell(output_.add(event));
    if (inner_) inner_->add(event);
  }
  void time_passes() override {
    tell(output_.news());
    if (inner_) inner_->time_passes();
  }
  Duration patience() const override { return std::min<Duration>(inner_ ? inner_->patience() : 1s, between_looks); }
  void finish() override {
    tell(output_.news());
    if (inner_) inner_->finish();
  }
  void say(std::string_view line) override { inner_ ? inner_->say(line) : ProgressDisplay::say(line); }
  void pause_drawing() override {
    if (inner_) inner_->pause_drawing();
  }
  void draw_again() override {
    if (inner_) inner_->draw_again();
  }

 private:
  static constexpr Duration between_looks = 100ms;

  void tell(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) say(line);
  }

  std::unique_ptr<ProgressDisplay> inner_;
  OutputLines output_;
};

}  // namespace

std::unique_ptr<ProgressDisplay> with_output(std::unique_ptr<ProgressDisplay> inner, OutputLines output) {
  return std::make_unique<WithOutput>(std::move(inner), std::move(output));
}

void ProgressDisplay::say(std::string_view line) { print_error(std::string{line} + "\n"); }

std::unique_ptr<ProgressDisplay> make_progress_display(ProgressMode mode, bool only_trouble,
                                                       const std::shared_ptr<const core::Plan>& plan,
                                                       observe::LabelOf labels) {
  switch (mode) {
    case ProgressMode::quiet:
      return nullptr;
    case ProgressMode::json:
      return std::make_unique<JsonLines>();
    case ProgressMode::live:
      return std::make_unique<LiveTerminal>(plan, std::move(labels));
    case ProgressMode::automatic:
    case ProgressMode::plain:
      break;
  }
  return std::make_unique<PlainLines>(plan, only_trouble, std::move(labels));
}

ProgressMode automatic_progress() {
  const std::string_view ci = environment("CI");
  const bool is_ci = !ci.empty() && ci != "false" && ci != "0";
  const std::string_view terminal = environment("TERM");
  const bool is_simple = terminal.empty() || terminal == "dumb" || !environment("NO_COLOR").empty();
  return isatty(STDERR_FILENO) == 1 && !is_ci && !is_simple ? ProgressMode::live : ProgressMode::plain;
}

const observe::Symbols& symbols_of_terminal() {
  static const bool is_utf8 = [] {
    for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
      const std::string_view value = environment(name);
      if (value.empty()) continue;
      for (const char* const code : {"UTF-8", "utf-8", "UTF8", "utf8"})
        if (value.find(code) != std::string_view::npos) return true;
      return false;
    }
    return false;
  }();
  return is_utf8 ? observe::unicode_symbols : observe::ascii_symbols;
}

bool has_colours() { return environment("NO_COLOR").empty() && environment("TERM") != "dumb"; }

}  // namespace reprise::cli
