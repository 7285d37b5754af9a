#include "exec/process/process_runner.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/block_signals.hpp"
#include "base/descriptor.hpp"
#include "exec/process/command.hpp"
#include "exec/process/guardian.hpp"
#include "exec/process/spawn.hpp"

// The way of a command: start() puts it into the inbox; the runner's thread takes it out, spawns it, listens to its two pipes and its
// process, and looks at it when its timer is due; the exit of the process ends it, whoever still holds its pipes.
//
// Locks: mutex_ guards the inbox only; it is never held while a callback runs or the kernel is asked for something slow.

namespace reprise::exec {
namespace {

using TimePoint = Env::TimePoint;

constexpr std::size_t buffer_bytes = std::size_t{256} << 10U;
constexpr std::size_t starts_at_once = 8;  // then the others get a look: each start holds the thread until exec
constexpr int events_at_once = 64;

// What an event of epoll is about: the ticket, and which of its descriptors. Tickets are never used twice, so an event that comes too
// late finds nothing.
enum class Source : std::uint64_t { process, out, err };
constexpr unsigned source_bits = 2;
constexpr std::uint64_t wake_token = 0;  // tickets begin at 1
constexpr std::uint64_t guardian_token = 1;

std::uint64_t token_of(ProcessRunner::Ticket ticket, Source source) noexcept {
  return ticket << source_bits | static_cast<std::uint64_t>(source);
}

[[noreturn]] void fail(const char* what) { throw std::system_error{errno, std::generic_category(), what}; }

// With SIGCHLD ignored, which is inherited from careless parents, the kernel throws away how children ended.
void heed_children() noexcept {
  struct sigaction action = {};
  if (::sigaction(SIGCHLD, nullptr, &action) != 0) return;
  if (action.sa_handler != SIG_IGN && (action.sa_flags & SA_NOCLDWAIT) == 0) return;
  if (action.sa_handler == SIG_IGN) action.sa_handler = SIG_DFL;
  action.sa_flags &= ~SA_NOCLDWAIT;
  ::sigaction(SIGCHLD, &action, nullptr);
}

Descriptor open_null() {
  const Descriptor null{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  Descriptor above{::fcntl(null.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  if (!above.is_open()) fail("/dev/null cannot be opened for the input of commands");
  return above;
}

}  // namespace

class ProcessRunner::State {
 public:
  explicit State(ProcessRunnerSettings settings);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  Ticket start(ProcessSpec spec, Done done, SignOfLife progress);
  void cancel(Ticket ticket);
  void kill_all();
  std::size_t running() const noexcept { return running_.load(std::memory_order_relaxed); }

 private:
  struct Waiting {
    Ticket ticket = 0;
    ProcessSpec spec;
    Done done;
    SignOfLife progress;
    bool canceled = false;
  };
  struct Inbox {
    std::vector<Waiting> starts;
    std::vector<Ticket> cancels;
    Ticket kill_up_to = 0;
    bool quit = false;

    bool is_empty() const noexcept { return starts.empty() && cancels.empty() && kill_up_to == 0 && !quit; }
  };
  using Commands = std::unordered_map<Ticket, std::unique_ptr<Command>>;

  void wake_unless(bool was_awake);
  bool listen(int descriptor, std::uint64_t token) noexcept;

  void loop();
  bool take_inbox();
  void cancel_now(Ticket ticket);
  void kill_now(Ticket up_to);
  Waiting* find_waiting(Ticket ticket);
  void start_waiting();
  void start_now(Waiting&& waiting);
  bool listen_to(Ticket ticket, Command& command);
  void never_ran(Done& done, ProcessEnd&& end);
  int wait_ms();
  void handle(const epoll_event& event);
  void listen_to_guardian();
  void replace_guardian();
  void exited(Commands::iterator at);
  void read(Command& command, CommandStream& stream);
  void look_at_due();
  bool catch_up(Commands::iterator at);
  void after_look(Commands::iterator at);
  void arm(Ticket ticket, Command& command);
  void end(Commands::iterator at);
  void end_all();
  template <typename Callback, typename... Arguments>
  void call(Callback& callback, Arguments&&... arguments);

  Env& env_;
  std::unique_ptr<Guardian> guardian_;
  Descriptor null_input_;
  Descriptor epoll_;
  Descriptor wake_;
  std::atomic<std::size_t> running_{0};

  std::mutex mutex_;
  Inbox inbox_;
  Ticket last_ticket_ = 0;

  // Of the thread alone, from here on.
  Spawner spawner_;
  Commands commands_;
  std::deque<Waiting> waiting_;  // in the order of their tickets
  std::set<std::pair<TimePoint, Ticket>> timers_;
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(buffer_bytes);
  std::span<char> buffer_{bytes_.get(), buffer_bytes};
  TimePoint now_{};
  std::thread thread_;
};

ProcessRunner::State::State(ProcessRunnerSettings settings)
    : env_{settings.env != nullptr ? *settings.env : system_env()},
      null_input_{open_null()},
      epoll_{::epoll_create1(EPOLL_CLOEXEC)},
      wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (!epoll_.is_open() || !wake_.is_open() || !listen(wake_.get(), wake_token))
    fail("the loop that runs commands cannot be made");
  heed_children();
  if (settings.guardian) {
    guardian_ = std::make_unique<Guardian>();
    listen_to_guardian();
  }
  thread_ = std::thread{[this] { loop(); }};
}

ProcessRunner::State::~State() {
  {
    const std::lock_guard lock{mutex_};
    inbox_.quit = true;
  }
  wake_unless(false);
  thread_.join();
}

// ---- From any thread ----------------------------------------

ProcessRunner::Ticket ProcessRunner::State::start(ProcessSpec spec, Done done, SignOfLife progress) {
  Ticket ticket = 0;
  bool was_awake = false;
  running_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock{mutex_};
    was_awake = !inbox_.is_empty();
    ticket = ++last_ticket_;
    inbox_.starts.push_back(
        {.ticket = ticket, .spec = std::move(spec), .done = std::move(done), .progress = std::move(progress)});
  }
  wake_unless(was_awake);
  return ticket;
}

void ProcessRunner::State::cancel(Ticket ticket) {
  bool was_awake = false;
  {
    const std::lock_guard lock{mutex_};
    was_awake = !inbox_.is_empty();
    inbox_.cancels.push_back(ticket);
  }
  wake_unless(was_awake);
}

void ProcessRunner::State::kill_all() {
  bool was_awake = false;
  {
    const std::lock_guard lock{mutex_};
    was_awake = !inbox_.is_empty();
    inbox_.kill_up_to = last_ticket_;
  }
  wake_unless(was_awake);
}

// Who found the inbox empty wakes the thread; it looks into the inbox before it sleeps, so its own callbacks need not.
void ProcessRunner::State::wake_unless(bool was_awake) {
  if (was_awake || std::this_thread::get_id() == thread_.get_id()) return;
  ::eventfd_write(wake_.get(), 1);
}

void ProcessRunner::State::listen_to_guardian() {
  if (guardian_->error() == 0 && listen(guardian_->process(), guardian_token)) return;
  const int error = guardian_->error() != 0 ? guardian_->error() : errno;
  env_.warn("commands may outlive this process if it is killed: their guardian could not be made: " +
            std::generic_category().message(error));
}

bool ProcessRunner::State::listen(int descriptor, std::uint64_t token) noexcept {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = token}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

// ---- The thread ----------------------------------------

void ProcessRunner::State::loop() {
  base::block_signals();  // a handler must not run in a child that is not itself yet
  std::array<epoll_event, events_at_once> events;
  while (take_inbox()) {
    start_waiting();
    const int count = ::epoll_wait(epoll_.get(), events.data(), events_at_once, wait_ms());
    now_ = env_.now();
    for (int index = 0; index < count; ++index) handle(events[static_cast<std::size_t>(index)]);
    look_at_due();
  }
  end_all();
}

bool ProcessRunner::State::take_inbox() {
  Inbox inbox;
  {
    const std::lock_guard lock{mutex_};
    std::swap(inbox, inbox_);
  }
  if (inbox.quit) return false;
  now_ = env_.now();
  std::ranges::move(inbox.starts, std::back_inserter(waiting_));
  for (const Ticket ticket : inbox.cancels) cancel_now(ticket);
  if (inbox.kill_up_to != 0) kill_now(inbox.kill_up_to);
  return true;
}

void ProcessRunner::State::cancel_now(Ticket ticket) {
  if (const auto at = commands_.find(ticket); at != commands_.end()) {
    if (catch_up(at)) return;
    at->second->stop(StopCause::cancel, now_);
    after_look(at);
  } else if (Waiting* const waiting = find_waiting(ticket)) {
    waiting->canceled = true;
  }
}

void ProcessRunner::State::kill_now(Ticket up_to) {
  for (auto at = commands_.begin(); at != commands_.end();) {
    const auto current = at++;
    current->second->stop(StopCause::cancel, now_);
    current->second->kill();
    after_look(current);
  }
  for (Waiting& waiting : waiting_) waiting.canceled = waiting.canceled || waiting.ticket <= up_to;
}

ProcessRunner::State::Waiting* ProcessRunner::State::find_waiting(Ticket ticket) {
  const auto at = std::ranges::lower_bound(waiting_, ticket, {}, &Waiting::ticket);
  return at != waiting_.end() && at->ticket == ticket ? &*at : nullptr;
}

void ProcessRunner::State::start_waiting() {
  for (std::size_t count = 0; count < starts_at_once && !waiting_.empty(); ++count) {
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    start_now(std::move(first));
  }
}

void ProcessRunner::State::start_now(Waiting&& waiting) {
  if (waiting.canceled) {
    ProcessEnd end;
    end.canceled = true;
    return never_ran(waiting.done, std::move(end));
  }
  auto command = std::make_unique<Command>(std::move(waiting.spec), std::move(waiting.done),
                                           std::move(waiting.progress), guardian_.get());
  std::optional<SpawnProblem> problem = command->start(spawner_, null_input_.get(), env_.now());
  if (!problem && !listen_to(waiting.ticket, *command)) {
    problem = SpawnProblem{
        errno, "it was killed at once, because it could not be listened to: " + std::generic_category().message(errno)};
  }
  if (problem) {
    ProcessEnd end;
    end.spawn_errno = problem->error;
    end.spawn_problem = std::move(problem->words);
    return never_ran(command->done, std::move(end));
  }
  arm(waiting.ticket, *command);
  commands_.emplace(waiting.ticket, std::move(command));
}

bool ProcessRunner::State::listen_to(Ticket ticket, Command& command) {
  return command.out().listen(epoll_.get(), token_of(ticket, Source::out)) &&
         command.err().listen(epoll_.get(), token_of(ticket, Source::err)) &&
         listen(command.process(), token_of(ticket, Source::process));
}

void ProcessRunner::State::never_ran(Done& done, ProcessEnd&& end) {
  running_.fetch_sub(1, std::memory_order_relaxed);
  call(done, std::move(end));
}

// Rounded up, so that what is due is due when the thread wakes. A timer that was armed needs no wake-up to be seen here.
int ProcessRunner::State::wait_ms() {
  if (!waiting_.empty()) return 0;
  {
    const std::lock_guard lock{mutex_};
    if (!inbox_.is_empty()) return 0;
  }
  if (timers_.empty()) return -1;
  constexpr auto longest = std::chrono::hours{1};
  const Duration left = timers_.begin()->first - env_.now();
  if (left <= Duration{0}) return 0;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, longest)).count());
}

void ProcessRunner::State::handle(const epoll_event& event) {
  if (event.data.u64 == wake_token) {
    eventfd_t value = 0;
    ::eventfd_read(wake_.get(), &value);
    return;
  }
  if (event.data.u64 == guardian_token) return replace_guardian();
  const auto at = commands_.find(event.data.u64 >> source_bits);
  if (at == commands_.end()) return;
  Command& command = *at->second;
  switch (static_cast<Source>(event.data.u64 & ((1U << source_bits) - 1))) {
    case Source::out:
      read(command, command.out());
      if (command.out().is_held_up()) after_look(at);
      return;
    case Source::err:
      read(command, command.err());
      if (command.err().is_held_up()) after_look(at);
      return;
    case Source::process:
      return exited(at);
  }
}

void ProcessRunner::State::replace_guardian() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guardian_->process(), nullptr);
  guardian_->replace();
  listen_to_guardian();
}

void ProcessRunner::State::read(Command& command, CommandStream& stream) {
  if (command.read(stream, buffer_, now_) && command.progress) call(command.progress);
}

void ProcessRunner::State::look_at_due() {
  while (!timers_.empty() && timers_.begin()->first <= now_) {
    const auto at = commands_.find(timers_.begin()->second);
    if (catch_up(at)) continue;
    Command& command = *at->second;
    if (command.look(now_) && command.progress) call(command.progress);
    after_look(at);
  }
}

// Look first, judge then (exec/time_limit.hpp): epoll tells of some events at a time, and of none when a halt interrupted it, so what the
// clock says about a command may be older than what the command has done. True: it has exited, and that is how it ended.
bool ProcessRunner::State::catch_up(Commands::iterator at) {
  Command& command = *at->second;
  if (command.has_exited()) return false;
  if (!command.out().is_held_up()) read(command, command.out());
  if (!command.err().is_held_up()) read(command, command.err());
  if (!command.has_ended_unseen()) return false;
  exited(at);
  return true;
}

void ProcessRunner::State::exited(Commands::iterator at) {
  Command& command = *at->second;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, command.process(), nullptr);
  command.exited(buffer_, now_);
  after_look(at);
}

// Ends it, or listens to its stderr, or does not, and sets its timer: whatever its state asks for now.
void ProcessRunner::State::after_look(Commands::iterator at) {
  Command& command = *at->second;
  if (command.is_over()) return end(at);
  for (const auto& [stream, source] :
       {std::pair{&command.out(), Source::out}, std::pair{&command.err(), Source::err}}) {
    if (stream->is_held_up()) {
      stream->pause();
    } else if (stream->is_open() && stream->is_paused()) {
      stream->listen(epoll_.get(), token_of(at->first, source));
    }
  }
  arm(at->first, command);
}

void ProcessRunner::State::arm(Ticket ticket, Command& command) {
  const TimePoint due = command.next_look();
  if (due == command.armed_for) return;
  if (command.armed_for != Command::never) timers_.erase({command.armed_for, ticket});
  if (due != Command::never) timers_.emplace(due, ticket);
  command.armed_for = due;
}

void ProcessRunner::State::end(Commands::iterator at) {
  const std::unique_ptr<Command> command = std::move(at->second);
  if (command->armed_for != Command::never) timers_.erase({command->armed_for, at->first});
  commands_.erase(at);
  running_.fetch_sub(1, std::memory_order_relaxed);
  call(command->done, command->take_end());
}

// All are killed before the first is waited for.
void ProcessRunner::State::end_all() {
  for (auto& [ticket, command] : commands_) command->kill();
  commands_.clear();
  waiting_.clear();
}

template <typename Callback, typename... Arguments>
void ProcessRunner::State::call(Callback& callback, Arguments&&... arguments) {
  if (!callback) return;
  try {
    callback(std::forward<Arguments>(arguments)...);
  } catch (const std::exception& problem) {
    env_.warn(std::string{"a callback of a command threw: "} + problem.what());
  } catch (...) {
    env_.warn("a callback of a command threw something that is no exception");
  }
}

// ---- The runner ----------------------------------------

ProcessRunner::ProcessRunner(ProcessRunnerSettings settings) : state_{std::make_unique<State>(settings)} {}
ProcessRunner::~ProcessRunner() = default;

ProcessRunner::Ticket ProcessRunner::start(ProcessSpec spec, Done done, SignOfLife progress) {
  return state_->start(std::move(spec), std::move(done), std::move(progress));
}

void ProcessRunner::cancel(Ticket ticket) { state_->cancel(ticket); }
void ProcessRunner::kill_all() { state_->kill_all(); }
std::size_t ProcessRunner::running() const noexcept { return state_->running(); }

}  // namespace reprise::exec
