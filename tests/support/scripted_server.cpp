#include "support/scripted_server.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "support/loopback.hpp"

namespace reprise::testing_support {
namespace {

constexpr std::size_t generated_block_bytes = 64U << 10U;

std::string lower(std::string_view text) {
  std::string small{text};
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

std::string cut_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find("\r\n"), rest.size());
  std::string line{rest.substr(0, end)};
  rest.remove_prefix(std::min(end + 2, rest.size()));
  return line;
}

RecordedRequest parse_head(std::string_view head) {
  RecordedRequest request;
  const std::string first = cut_line(head);
  const std::size_t space = first.find(' ');
  request.method = first.substr(0, space);
  if (space != std::string::npos) request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  while (!head.empty()) {
    const std::string line = cut_line(head);
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    request.headers.emplace_back(lower(line.substr(0, colon)), line.substr(value));
  }
  return request;
}

// The next request; what came after it stays in `unread`. std::nullopt: the client has closed.
std::optional<RecordedRequest> read_request(const LoopbackSocket& socket, std::string& unread) {
  std::size_t end = unread.find("\r\n\r\n");
  while (end == std::string::npos) {
    if (!socket.receive(unread)) return std::nullopt;
    end = unread.find("\r\n\r\n");
  }
  RecordedRequest request = parse_head(std::string_view{unread}.substr(0, end + 2));
  unread.erase(0, end + 4);
  const std::string length = request.header("content-length");
  std::size_t body_bytes = 0;
  std::from_chars(length.data(), length.data() + length.size(), body_bytes);
  while (unread.size() < body_bytes) {
    if (!socket.receive(unread)) return std::nullopt;
  }
  request.body = unread.substr(0, body_bytes);
  unread.erase(0, body_bytes);
  return request;
}

}  // namespace

std::string RecordedRequest::header(std::string_view name_in_lower_case) const {
  for (const auto& [name, value] : headers) {
    if (name == name_in_lower_case) return value;
  }
  return {};
}

Script& Script::add(Kind kind, std::string bytes, std::uint64_t count) {
  moves_.push_back({.kind = kind, .bytes = std::move(bytes), .count = count, .held = std::exchange(hold_next_, false)});
  return *this;
}

Script& Script::answer(int status, HeaderLines headers, std::string body) {
  std::string bytes = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  for (const auto& [name, value] : headers) bytes.append(name).append(": ").append(value).append("\r\n");
  const bool no_body = status < 200 || status == 204 || status == 304;
  if (!no_body) bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return add(Kind::answer, bytes + "\r\n" + body);
}

Script& Script::when_released() {
  hold_next_ = true;
  return *this;
}

Script& Script::never_answer() { return add(Kind::bytes_stall); }
Script& Script::hang_up() { return add(Kind::bytes); }
Script& Script::reset() { return add(Kind::bytes_reset); }
Script& Script::send(std::string bytes) { return add(Kind::bytes, std::move(bytes)); }
Script& Script::send_then_reset(std::string bytes) { return add(Kind::bytes_reset, std::move(bytes)); }
Script& Script::send_then_stall(std::string bytes) { return add(Kind::bytes_stall, std::move(bytes)); }
Script& Script::drip(std::string bytes) { return add(Kind::drip, std::move(bytes)); }

Script& Script::cut_off(std::size_t announced_bytes, std::size_t sent_bytes) {
  return send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(announced_bytes) + "\r\n\r\n" +
              std::string(sent_bytes, 'x'));
}

Script& Script::generate(std::uint64_t body_bytes) {
  return add(Kind::generated, "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body_bytes) + "\r\n\r\n",
             body_bytes);
}

Script& Script::generate_endlessly() {
  return add(Kind::endless, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

class ScriptedServer::State {
 public:
  State() : listener_{LoopbackSocket::listening()}, port_{listener_.port()}, acceptor_{[this] { accept_all(); }} {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    {
      const std::scoped_lock lock{mutex_};
      stopping_ = true;
      for (const Connection& connection : connections_) connection.socket.shut_down();
    }
    changed_.notify_all();
    listener_.shut_down();
    acceptor_.join();
    for (Connection& connection : connections_) connection.thread.join();
  }

  std::uint16_t port() const noexcept { return port_; }

  Script& on(const std::string& path) {
    const std::scoped_lock lock{mutex_};
    return scripts_[path];
  }

  std::vector<RecordedRequest> requests() const {
    const std::scoped_lock lock{mutex_};
    return requests_;
  }

  bool wait_for_requests(std::size_t count) const {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, std::chrono::minutes{1}, [&] { return requests_.size() >= count; });
  }

  void release() {
    {
      const std::scoped_lock lock{mutex_};
      released_ = true;
    }
    changed_.notify_all();
  }

 private:
  struct Connection {
    LoopbackSocket socket;  // closed by nobody but the destructor, so that it can be shut down at any time
    std::thread thread = {};
  };

  void accept_all() {
    while (true) {
      LoopbackSocket socket = listener_.accept();
      const std::scoped_lock lock{mutex_};
      if (!socket.is_open() || stopping_) return;
      Connection& connection = connections_.emplace_back(Connection{.socket = std::move(socket)});
      const int number = static_cast<int>(connections_.size());
      connection.thread = std::thread{[this, &connection, number] { serve(connection.socket, number); }};
    }
  }

  void serve(LoopbackSocket& socket, int number) {
    std::string unread;
    while (std::optional<RecordedRequest> request = read_request(socket, unread)) {
      request->connection = number;
      const bool is_head = request->method == "HEAD";
      Script::Move move = next_move(std::move(*request));
      if (const std::size_t blank = move.bytes.find("\r\n\r\n"); is_head && blank != std::string::npos)
        move.bytes.erase(blank + 4);
      if (!perform(move, socket)) break;
    }
    const std::scoped_lock lock{mutex_};
    socket.shut_down();
  }

  Script::Move next_move(RecordedRequest&& request) {
    std::unique_lock lock{mutex_};
    auto script = scripts_.find(request.target.substr(0, request.target.find('?')));
    if (script == scripts_.end()) script = scripts_.find("*");
    requests_.push_back(std::move(request));
    changed_.notify_all();
    if (script == scripts_.end() || script->second.moves_.empty())
      return {.bytes = "HTTP/1.1 404 Not Scripted\r\nContent-Length: 0\r\n\r\n"};
    Script& found = script->second;
    const Script::Move move = found.moves_[std::min(found.next_++, found.moves_.size() - 1)];
    if (move.held) changed_.wait(lock, [&] { return released_ || stopping_; });
    return move;
  }

  // True: the connection goes on.
  bool perform(const Script::Move& move, LoopbackSocket& socket) {
    switch (move.kind) {
      case Script::Kind::answer:
        return socket.send(move.bytes);
      case Script::Kind::bytes:
        socket.send(move.bytes);
        return false;
      case Script::Kind::bytes_stall:
        stall(move, socket);
        return false;
      case Script::Kind::generated:
        generate(move, socket);
        return false;
      case Script::Kind::endless:
        generate_endlessly(move, socket);
        return false;
      case Script::Kind::drip:
        drip(move, socket);
        return false;
      case Script::Kind::bytes_reset: {
        socket.send(move.bytes);
        const std::scoped_lock lock{mutex_};
        socket.reset();
        return false;
      }
    }
    return false;
  }

  static void stall(const Script::Move& move, const LoopbackSocket& socket) {
    socket.send(move.bytes);
    std::string ignored;
    while (socket.receive(ignored)) ignored.clear();
  }

  static void generate(const Script::Move& move, const LoopbackSocket& socket) {
    const std::string block(generated_block_bytes, 'g');
    bool wanted = socket.send(move.bytes);
    for (std::uint64_t left = move.count; wanted && left > 0;) {
      const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size()));
      wanted = socket.send(std::string_view{block}.substr(0, size));
      left -= size;
    }
  }

  static void generate_endlessly(const Script::Move& move, const LoopbackSocket& socket) {
    const std::string chunk = "10000\r\n" + std::string(generated_block_bytes, 'e') + "\r\n";
    bool wanted = socket.send(move.bytes);
    while (wanted) wanted = socket.send(chunk);
  }

  void drip(const Script::Move& move, const LoopbackSocket& socket) {
    std::unique_lock lock{mutex_};
    for (const char byte : move.bytes) {
      if (changed_.wait_for(lock, std::chrono::milliseconds{20}, [&] { return stopping_; })) return;
      if (!socket.send({&byte, 1})) return;
    }
  }

  LoopbackSocket listener_;
  const std::uint16_t port_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;  // requests_, released_ or stopping_
  std::map<std::string, Script> scripts_;
  std::vector<RecordedRequest> requests_;
  std::list<Connection> connections_;
  bool released_ = false;
  bool stopping_ = false;
  std::thread acceptor_;
};

ScriptedServer::ScriptedServer() : state_{std::make_unique<State>()} {}
ScriptedServer::~ScriptedServer() = default;

Script& ScriptedServer::on(const std::string& path) { return state_->on(path); }
std::string ScriptedServer::url(std::string_view target) const { return "http://" + place() + std::string{target}; }
std::string ScriptedServer::place() const { return "127.0.0.1:" + std::to_string(port()); }
std::uint16_t ScriptedServer::port() const noexcept { return state_->port(); }
std::vector<RecordedRequest> ScriptedServer::requests() const { return state_->requests(); }
bool ScriptedServer::wait_for_requests(std::size_t count) const { return state_->wait_for_requests(count); }
void ScriptedServer::release() { state_->release(); }

}  // namespace reprise::testing_support
