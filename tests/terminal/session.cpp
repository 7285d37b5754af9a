// Three processes: the recorder (us), the small shell (leader of the session), and the command (its foreground job).
#include "terminal/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <re2/re2.h>

#include "support/screen.hpp"

namespace reprise::terminal {
namespace {

using testing_support::Screen;
using testing_support::Setting;
using Clock = std::chrono::steady_clock;

// What the small shell tells the recorder.
struct News {
  enum class What { started, stopped, ended } what = What::started;
  int value = 0;  // process id, nothing, exit code
  double cpu_seconds = 0;
};
static_assert(std::is_trivially_copyable_v<News>);

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error{std::string{what} + ": " + std::strerror(errno)};
}

// ---- the small shell; nothing here returns to the recorder's code ----

// User and system time of a process that has ended and was not yet waited for.
double cpu_seconds_of(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
  std::string text;
  std::getline(file, text);
  std::istringstream fields{text.substr(std::min(text.rfind(')'), text.size() - 1) + 1)};
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;  // proc(5) counts from 1; 14 and 15 are utime and stime
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void say(std::string_view text) { (void)!::write(STDOUT_FILENO, text.data(), text.size()); }

void tell(int news, const News& what) { (void)!::write(news, &what, sizeof what); }

std::vector<std::string> environment_of(const SessionSettings& settings) {
  const char* path = std::getenv("PATH");
  std::vector<Setting> all{
      {"PATH", path != nullptr ? path : "/usr/bin:/bin"}, {"TERM", "xterm-256color"}, {"LC_ALL", "C.UTF-8"}};
  for (const Setting& setting : settings.environment) {
    std::erase_if(all, [&](const Setting& known) { return known.name == setting.name; });
    if (!setting.value.empty()) all.push_back(setting);
  }
  std::vector<std::string> words;
  for (const Setting& setting : all) words.push_back(setting.name + "=" + setting.value);
  return words;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void become_command(const SessionSettings& settings) {
  ::setpgid(0, 0);
  ::tcsetpgrp(STDIN_FILENO, ::getpid());
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) std::signal(number, SIG_DFL);
  std::vector<std::string> words = settings.command;
  std::vector<std::string> environment = environment_of(settings);
  if (::chdir(settings.folder.c_str()) == 0)
    ::execvpe(words.front().c_str(), pointers_to(words).data(), pointers_to(environment).data());
  say(words.front() + ": " + std::strerror(errno) + "\n");
  ::_exit(127);
}

[[noreturn]] void become_shell(const SessionSettings& settings, int news, int wishes) {
  for (const int number : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) std::signal(number, SIG_IGN);
  if (!settings.prompt.empty()) say("\x1b[32m$\x1b[0m " + settings.prompt + "\n");
  const pid_t command = ::fork();
  if (command == 0) become_command(settings);
  ::setpgid(command, command);
  tell(news, {News::What::started, command});
  while (true) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(command), &info, WEXITED | WSTOPPED | WNOWAIT) != 0 && errno == EINTR)
      continue;
    const double cpu_seconds = info.si_code == CLD_STOPPED ? 0 : cpu_seconds_of(command);
    int status = 0;
    ::waitpid(command, &status, WUNTRACED);
    ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
    if (!WIFSTOPPED(status)) {
      ::kill(-command, SIGHUP);  // as when a window is closed: nobody is left behind
      tell(news, {News::What::ended, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), cpu_seconds});
      ::_exit(0);
    }
    say("\n[1]+  Stopped\n");
    tell(news, {News::What::stopped});
    char wish = 0;
    if (::read(wishes, &wish, 1) != 1) ::_exit(1);
    say("$ fg\n");
    ::tcsetpgrp(STDIN_FILENO, command);
    ::kill(-command, SIGCONT);
  }
}

// ---- the recorder ----

volatile std::sig_atomic_t window_changed = 0;
void remember_change(int) { window_changed = 1; }

Size size_of_terminal(int terminal) {
  winsize size{};
  check(::ioctl(terminal, TIOCGWINSZ, &size) == 0, "no size of the terminal");
  return {size.ws_col, size.ws_row};
}

winsize native(Size size) {
  return {static_cast<unsigned short>(size.height), static_cast<unsigned short>(size.width), 0, 0};
}

struct Modes {
  termios settings{};

  explicit Modes(int terminal) { check(::tcgetattr(terminal, &settings) == 0, "no settings of the terminal"); }
  bool operator==(const Modes& other) const {
    const auto key = [](const termios& all) { return std::array{all.c_iflag, all.c_oflag, all.c_cflag, all.c_lflag}; };
    return key(settings) == key(other.settings) && std::ranges::equal(settings.c_cc, other.settings.c_cc);
  }
};

class Recorder {
 public:
  explicit Recorder(const SessionSettings& settings)
      : settings_{settings}, screen_{settings.size.width, settings.size.height} {
    session_.recording.size = settings.size;
    start();
  }

  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() {
    for (const int descriptor : {terminal_, held_open_, news_, wishes_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
    if (shell_ > 0) ::waitpid(shell_, nullptr, 0);
  }

  Session record() {
    const Modes before{terminal_};
    while (look_once()) {
    }
    session_.modes_restored = before == Modes{terminal_};
    read_to_the_end();
    for (; next_action_ < settings_.actions.size(); ++next_action_)
      session_.not_done.push_back(settings_.actions[next_action_].when);
    return std::move(session_);
  }

 private:
  void start() {
    std::array<int, 2> news{};
    std::array<int, 2> wishes{};
    check(::pipe2(news.data(), O_CLOEXEC) == 0 && ::pipe2(wishes.data(), O_CLOEXEC) == 0, "no pipe");
    const winsize size = native(settings_.size);
    int terminal = -1;
    int own_end = -1;
    check(::openpty(&terminal, &own_end, nullptr, nullptr, &size) == 0, "no terminal");
    shell_ = ::fork();
    check(shell_ >= 0, "no process");
    if (shell_ == 0) {
      ::close(terminal);
      ::close(news[0]);
      ::close(wishes[1]);
      ::login_tty(own_end);
      become_shell(settings_, news[1], wishes[0]);
    }
    held_open_ = own_end;  // so that the terminal's settings can still be asked for when everybody has gone
    ::close(news[1]);
    ::close(wishes[0]);
    terminal_ = terminal;
    news_ = news[0];
    wishes_ = wishes[1];
    ::fcntl(terminal_, F_SETFL, O_NONBLOCK);
  }

  double now() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  void note(Kind kind, std::string data) { session_.recording.happenings.push_back({now(), kind, std::move(data)}); }

  // False: the command has ended.
  bool look_once() {
    std::array<pollfd, 2> waiting{{{terminal_, POLLIN, 0}, {news_, POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), 200);
    if (window_changed != 0) follow_our_window();
    drain();
    if ((waiting[1].revents & (POLLIN | POLLHUP)) != 0 && !hear_news()) return false;
    if (!screen_.updating()) act();
    if (now() > static_cast<double>(settings_.patience_seconds) && command_ > 0) ::kill(-command_, SIGKILL);
    return true;
  }

  // What was written is not there at once: the kernel hands it over in its own time, and says so when there is no more.
  void read_to_the_end() {
    ::close(std::exchange(held_open_, -1));
    constexpr int patience_ms = 2000;  // for somebody who was left behind and holds the terminal
    for (pollfd waiting{terminal_, POLLIN, 0}; ::poll(&waiting, 1, patience_ms) > 0 && (waiting.revents & POLLIN) != 0;)
      drain();
    note(Kind::mark, "exit " + std::to_string(session_.exit_code));
  }

  void drain() {
    std::array<char, 65536> buffer{};
    while (true) {
      const ssize_t count = ::read(terminal_, buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      const std::string_view bytes{buffer.data(), static_cast<std::size_t>(count)};
      note(Kind::output, std::string{bytes});
      screen_.feed(bytes);
      if (settings_.through) say(bytes);
      if (!screen_.updating()) act();
    }
  }

  // False: the command has ended.
  bool hear_news() {
    News news;
    if (::read(news_, &news, sizeof news) != static_cast<ssize_t>(sizeof news)) return false;
    switch (news.what) {
      case News::What::started:
        command_ = news.value;
        return true;
      case News::What::stopped:
        drain();
        note(Kind::mark, "stopped");
        return true;
      case News::What::ended:
        break;
    }
    command_ = -1;
    session_.exit_code = news.value;
    session_.cpu_seconds = news.cpu_seconds;
    return false;
  }

  bool is_due(const Action& action) const {
    const RE2 words{action.when};
    for (const std::string& row : screen_.rows()) {
      std::uint64_t number = 0;
      if (action.at_least ? RE2::PartialMatch(row, words, &number) && number >= *action.at_least
                          : RE2::PartialMatch(row, words))
        return true;
    }
    return false;
  }

  void act() {
    if (command_ <= 0 || next_action_ == settings_.actions.size() || !is_due(settings_.actions[next_action_])) return;
    std::visit([this](const auto& what) { carry_out(what); }, settings_.actions[next_action_++].what);
  }

  void carry_out(const Resize& resize) {
    note(Kind::resize, to_text(resize.size));
    screen_.resize(resize.size.width, resize.size.height);
    const winsize size = native(resize.size);
    ::ioctl(terminal_, TIOCSWINSZ, &size);  // the kernel tells the foreground job
  }
  void carry_out(const Press& press) {
    note(Kind::input, press.keys);
    (void)!::write(terminal_, press.keys.data(), press.keys.size());
  }
  void carry_out(const Signal& signal) {
    note(Kind::mark, std::string{"signal "} + ::sigabbrev_np(signal.number));
    ::kill(command_, signal.number);
  }
  void carry_out(const Foreground&) { (void)!::write(wishes_, "f", 1); }

  void follow_our_window() {
    window_changed = 0;
    drain();
    carry_out(Resize{size_of_terminal(STDOUT_FILENO)});
  }

  const SessionSettings& settings_;
  Screen screen_;
  Session session_ = {};
  Clock::time_point began_ = Clock::now();
  std::size_t next_action_ = 0;
  int terminal_ = -1;
  int held_open_ = -1;
  int news_ = -1;
  int wishes_ = -1;
  pid_t shell_ = -1;
  pid_t command_ = -1;
};

}  // namespace

Session run_session(const SessionSettings& settings) {
  SessionSettings all = settings;
  if (all.through) {
    std::signal(SIGWINCH, remember_change);
    all.size = size_of_terminal(STDOUT_FILENO);
  }
  return Recorder{all}.record();
}

}  // namespace reprise::terminal
