#include "runtime/control.hpp"

#include <sys/eventfd.h>
#include <sys/poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <reprise/env.hpp>

#include "runtime/control_line.hpp"
#include "runtime/control_socket.hpp"

// One thread, one poll() over the listener, all connections and the event that ends it. A connection is read until its line is complete,
// handed to the handler, answered, written to, closed. Who is slow delays nobody else; only the handler does, because its calls come one at a
// time. Answers come from any thread into a box, which wakes the poll().

namespace reprise::runtime {
namespace {

using base::Descriptor;
using TimePoint = Env::TimePoint;

constexpr std::size_t read_bytes = std::size_t{16} * 1024;
constexpr std::chrono::milliseconds rest_without_descriptors{
    100};  // before the next try when the process has no more of them

TimePoint now() { return system_env().now(); }

// For poll(): rounded up, so that it does not wake before the time has come.
int milliseconds_until(TimePoint due) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now()).count();
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left, 0, 60'000));
}

enum class Transfer : unsigned char { waits, ended };

// What can be read now goes to the end of `text`. Ended: there will be no more.
Transfer receive(int socket, std::string& text) {
  std::array<char, read_bytes> bytes;
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count > 0) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
    return Transfer::waits;
  }
  const bool is_over = count == 0 || (errno != EAGAIN && errno != EINTR);
  return is_over ? Transfer::ended : Transfer::waits;
}

// What can be written now leaves `text`. Ended: the other end is gone.
Transfer send_some(int socket, std::string_view& text) {
  const ssize_t count = ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count >= 0) {
    text.remove_prefix(static_cast<std::size_t>(count));
    return Transfer::waits;
  }
  return errno == EAGAIN || errno == EINTR ? Transfer::waits : Transfer::ended;
}

ControlAnswer failed(ErrorCode code, std::string message) { return std::unexpected{Error{code, std::move(message)}}; }

// What has been answered and not yet been sent. The handler's threads share it with the server, which may be gone before them.
class AnswerBox {
 public:
  explicit AnswerBox(Descriptor wake) : wake_{std::move(wake)} {}

  int wake() const noexcept { return wake_.get(); }
  void put(std::uint64_t connection, ControlAnswer answer) {
    {
      const std::lock_guard lock{mutex_};
      answers_.emplace_back(connection, std::move(answer));
    }
    ring();
  }
  void end() {
    {
      const std::lock_guard lock{mutex_};
      ends_ = true;
    }
    ring();
  }
  using Answers = std::vector<std::pair<std::uint64_t, ControlAnswer>>;
  Answers take(bool& ends) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const ssize_t read = ::read(wake_.get(), &rings, sizeof rings);
    const std::lock_guard lock{mutex_};
    ends = ends_;
    return std::exchange(answers_, {});
  }

 private:
  void ring() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  Descriptor wake_;
  std::mutex mutex_;
  Answers answers_;
  bool ends_ = false;
};

struct Connection {
  std::uint64_t number;
  Descriptor socket;
  TimePoint due;
  std::string request = {};
  std::string answer = {};
  std::string_view unsent = {};  // of the answer; the connection stays where it is while it has one
  bool is_asked = false;         // the handler has not answered yet
  bool is_over = false;
};

}  // namespace

class ControlServer::State {
 public:
  State(BoundSocket socket, Descriptor wake, Handler handler, ControlLimits limits)
      : socket_{std::move(socket)},
        box_{std::make_shared<AnswerBox>(std::move(wake))},
        handler_{std::move(handler)},
        limits_{limits} {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    box_->end();
    if (thread_.joinable()) thread_.join();
    remove_control_socket(socket_);
  }

  void start() {
    thread_ = std::thread{[this] { serve(); }};
  }

 private:
  void serve();
  void accept_one();
  void read_from(Connection& connection);
  void answer(Connection& connection, const ControlAnswer& said);
  void handle(Connection& connection, std::string_view line);
  void empty_box();
  bool is_done() const;

  BoundSocket socket_;
  std::shared_ptr<AnswerBox> box_;
  Handler handler_;
  ControlLimits limits_;
  std::list<Connection> connections_;
  std::uint64_t next_number_ = 1;
  bool ends_ = false;  // nothing new is read
  TimePoint accepts_from_{};
  std::thread thread_;
};

void ControlServer::State::serve() {
  std::vector<pollfd> watched;
  while (!is_done()) {
    const bool rests = accepts_from_ > now();
    const bool has_room = connections_.size() < limits_.connections_max && !rests && !ends_;
    watched.assign({{box_->wake(), POLLIN, 0}, {has_room ? socket_.listener.get() : -1, POLLIN, 0}});
    TimePoint due = rests ? accepts_from_ : TimePoint::max();
    for (const Connection& each : connections_) {
      const bool waits_for_handler = each.is_asked && each.unsent.empty();
      watched.push_back(
          {waits_for_handler ? -1 : each.socket.get(), static_cast<short>(each.unsent.empty() ? POLLIN : POLLOUT), 0});
      due = std::min(due, each.due);
    }
    const int ready = ::poll(watched.data(), watched.size(), due == TimePoint::max() ? -1 : milliseconds_until(due));
    if (ready < 0) continue;  // a signal
    auto event = watched.begin() + 2;
    for (Connection& each : connections_) {
      if ((event++)->revents == 0) continue;
      if (each.unsent.empty()) {
        read_from(each);
      } else {
        each.is_over = send_some(each.socket.get(), each.unsent) == Transfer::ended || each.unsent.empty();
      }
    }
    if (watched[0].revents != 0) empty_box();
    const TimePoint time = now();
    std::erase_if(connections_, [&](const Connection& each) { return each.is_over || each.due <= time; });
    if (watched[1].revents != 0) accept_one();
  }
}

// At the end those are left that were asked something: they get their answers.
bool ControlServer::State::is_done() const {
  return ends_ && std::ranges::none_of(connections_,
                                       [](const Connection& each) { return each.is_asked || !each.unsent.empty(); });
}

void ControlServer::State::empty_box() {
  const bool ended_before = ends_;
  for (const auto& [number, said] : box_->take(ends_)) {
    const auto connection = std::ranges::find(connections_, number, &Connection::number);
    if (connection != connections_.end() && connection->is_asked) answer(*connection, said);
  }
  if (!ends_ || ended_before) return;
  std::erase_if(connections_, [](const Connection& each) { return !each.is_asked && each.unsent.empty(); });
  for (Connection& each : connections_) each.due = now() + limits_.time_max;
}

void ControlServer::State::accept_one() {
  Descriptor socket{::accept4(socket_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket.is_open()) {
    const bool is_short_of_something = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
    if (is_short_of_something) accepts_from_ = now() + rest_without_descriptors;
    return;
  }
  connections_.push_back({.number = next_number_++, .socket = std::move(socket), .due = now() + limits_.time_max});
  if (!peer_is_same_user(connections_.back().socket.get())) {
    answer(connections_.back(), failed(ErrorCode::invalid, "Only the user whose process owns the store may ask it."));
  }
}

void ControlServer::State::read_from(Connection& connection) {
  const Transfer transfer = receive(connection.socket.get(), connection.request);
  const std::string_view received = connection.request;
  const std::size_t end = received.find('\n');
  if (end != std::string_view::npos && end < limits_.line_bytes_max) return handle(connection, received.substr(0, end));
  if (received.size() >= limits_.line_bytes_max) {
    return answer(connection, failed(ErrorCode::invalid, "The request is longer than " +
                                                             std::to_string(limits_.line_bytes_max) + " bytes."));
  }
  if (transfer == Transfer::ended && !received.empty()) {
    return answer(connection, failed(ErrorCode::invalid, "The request was not understood: its line has no end."));
  }
  connection.is_over = transfer == Transfer::ended;
}

void ControlServer::State::answer(Connection& connection, const ControlAnswer& said) {
  connection.is_asked = false;
  connection.answer = answer_line(said);
  connection.unsent = connection.answer;
  connection.due = now() + limits_.time_max;  // the handler may have taken its time
  connection.is_over =
      send_some(connection.socket.get(), connection.unsent) == Transfer::ended || connection.unsent.empty();
}

void ControlServer::State::handle(Connection& connection, std::string_view line) {
  const auto request = read_request(line);
  if (!request) return answer(connection, std::unexpected{request.error()});
  connection.is_asked = true;
  connection.due = TimePoint::max();  // the owner takes its time; who asks waits as long as it likes
  const auto refuse = [&](std::string message) {
    box_->put(connection.number, failed(ErrorCode::invalid, std::move(message)));
  };
  try {
    handler_(*request,
             [box = box_, number = connection.number](ControlAnswer said) { box->put(number, std::move(said)); });
  } catch (const std::exception& problem) {
    refuse("The owner of the store could not do it: " + std::string{problem.what()});
  } catch (...) {
    refuse("The owner of the store could not do it, and did not say why.");
  }
}

ControlServer::ControlServer(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}
ControlServer::~ControlServer() = default;

std::unique_ptr<ControlServer> ControlServer::listen(const std::string& store_path, Handler handler,
                                                     ControlLimits limits) {
  BoundSocket socket = bind_control_socket(control_socket_path(store_path));
  if (!socket.listener.is_open()) return nullptr;
  Descriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!wake.is_open()) {
    remove_control_socket(socket);
    return nullptr;
  }
  auto state = std::make_unique<State>(std::move(socket), std::move(wake), std::move(handler), limits);
  try {
    state->start();
  } catch (const std::system_error&) {  // no more threads
    return nullptr;
  }
  return std::unique_ptr<ControlServer>{new ControlServer{std::move(state)}};
}

namespace {

ControlAnswer unreachable(const std::string& store_path, const std::string& why) {
  return failed(ErrorCode::store_unavailable, "Cannot ask the owner of " + store_path + ": " + why + ".");
}

ControlAnswer no_answer_in_time(const std::string& store_path) {
  return failed(ErrorCode::timed_out,
                "The owner of " + store_path + " did not answer in time. It may still do what it was asked.");
}

// Waits until the socket is ready; false when the time is over.
bool wait_for(int socket, short what, TimePoint due) {
  pollfd watched{socket, what, 0};
  while (true) {
    const int left = milliseconds_until(due);
    const int ready = ::poll(&watched, 1, left);
    if (ready > 0) return true;
    if (ready == 0 && now() >= due) return false;
  }
}

ControlAnswer converse(const std::string& store_path, int socket, const std::string& request,
                       const ControlLimits& limits) {
  const TimePoint due = now() + limits.time_max;
  // An owner that refuses early answers before it has read everything: the answer is read in any case.
  for (std::string_view unsent = request; !unsent.empty();) {
    if (!wait_for(socket, POLLOUT, due)) return no_answer_in_time(store_path);
    if (send_some(socket, unsent) == Transfer::ended) break;
  }
  std::string answer;
  while (answer.find('\n') == std::string::npos) {
    if (!wait_for(socket, POLLIN, due)) return no_answer_in_time(store_path);
    if (receive(socket, answer) == Transfer::ended)
      return unreachable(store_path, "it ended the connection without an answer");
    if (answer.size() > limits.line_bytes_max) return unreachable(store_path, "its answer is too long");
  }
  return read_answer(std::string_view{answer}.substr(0, answer.find('\n')));
}

}  // namespace

std::optional<ControlAnswer> ask_owner(const std::string& store_path, const ControlRequest& request,
                                       ControlLimits limits) {
  const Descriptor socket =
      connect_control_socket(control_socket_path(store_path), static_cast<int>(limits.time_max.count()));
  if (!socket.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ECONNREFUSED) return std::nullopt;
    if (errno == EAGAIN) return no_answer_in_time(store_path);
    return unreachable(store_path, std::system_category().message(errno));
  }
  if (!peer_is_same_user(socket.get())) return unreachable(store_path, "it runs as another user");
  const std::string line = request_line(request);
  if (line.size() > limits.line_bytes_max) {
    return failed(ErrorCode::invalid, "The request is longer than " + std::to_string(limits.line_bytes_max) +
                                          " bytes. Hand over a reference to large data instead of the data.");
  }
  return converse(store_path, socket.get(), line, limits);
}

}  // namespace reprise::runtime
