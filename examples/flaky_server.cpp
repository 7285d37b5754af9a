// An HTTP server on a bad day, for trying out retries: it first asks for patience, then fails, then answers.
//
//   flaky_server          prints its address, then what it was asked and how it answered
//
//   GET /weather          429 and Retry-After: 1, then 503, then 200 and JSON
//   POST /jobs            202, and the end is reported to the webhook of the request: first "out of paper", then a result
//
// Requests are told apart by their Idempotency-Key, which all attempts of one piece of work share, so every run finds the same bad day.
// It ends with SIGTERM, Ctrl-C, or when nobody has asked for a minute. It listens on the loopback interface only, takes one request at
// a time and reads no bodies.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

namespace {

constexpr int idle_ms = 60'000;
constexpr int patience_s = 5;  // with a client that connects and says nothing
constexpr std::size_t request_bytes_max = 16'384;

struct Answer {
  std::string_view status;
  std::string_view header;
  std::string_view body;
};

constexpr std::array bad_day{
    Answer{"429 Too Many Requests", "Retry-After: 1\r\n", R"({"error": "one request a second"})"},
    Answer{"503 Service Unavailable", "", R"({"error": "out for lunch"})"},
    Answer{"200 OK", "", R"({"city": "oslo", "sky": "clear"})"},
};

constexpr Answer accepted{"202 Accepted", "", ""};
constexpr std::array reports{
    std::string_view{R"({"success": false, "error": "out of paper"})"},
    std::string_view{R"({"success": true, "output": {"pages": 12}})"},
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// The socket and the port it was given; ends the program when there is none to be had.
int listen_on_loopback(int& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || ::bind(listener, generic, size) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, generic, &size) != 0) {
    std::perror("flaky_server");
    std::exit(EXIT_FAILURE);
  }
  port = ntohs(address.sin_port);
  return listener;
}

// Up to the empty line after the headers; less when the client stopped in the middle.
std::string read_request(int connection) {
  const timeval patience{.tv_sec = patience_s, .tv_usec = 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string request;
  std::array<char, 1024> part{};
  while (request.size() < request_bytes_max && request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = ::recv(connection, part.data(), part.size(), 0);
    if (count <= 0) break;
    request.append(part.data(), static_cast<std::size_t>(count));
  }
  return request;
}

std::string header_of(const std::string& request, std::string_view name) {
  const std::size_t start = request.find("\r\n" + std::string{name} + ": ");
  if (start == std::string::npos) return {};
  const std::size_t value = start + name.size() + 4;
  return request.substr(value, request.find("\r\n", value) - value);
}

void send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the client has gone, and will ask again
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

void answer_with(int connection, const std::string& request, const Answer& answer) {
  say(request.substr(0, request.find(" HTTP/")) + ": " + std::string{answer.status});
  send_all(connection, "HTTP/1.1 " + std::string{answer.status} + "\r\nContent-Type: application/json\r\n" +
                           std::string{answer.header} + "Content-Length: " + std::to_string(answer.body.size()) +
                           "\r\nConnection: close\r\n\r\n" + std::string{answer.body});
}

// The webhook of a request looks like http://127.0.0.1:43121/webhook/PLACE, and comes with a token.
void report_to_webhook(const std::string& request, std::string_view report) {
  constexpr std::string_view host = "http://127.0.0.1:";
  const std::string url = header_of(request, "X-Reprise-Webhook-Url");
  if (!url.starts_with(host)) return;
  const sockaddr_in address = loopback(static_cast<std::uint16_t>(std::atoi(url.c_str() + host.size())));
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    send_all(connection, "POST " + url.substr(url.find('/', host.size())) +
                             " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " +
                             header_of(request, "X-Reprise-Webhook-Token") + "\r\nContent-Length: " +
                             std::to_string(report.size()) + "\r\nConnection: close\r\n\r\n" + std::string{report});
    const std::string thanks = read_request(connection);
    say("reported " + std::string{report} + ": " + thanks.substr(0, thanks.find('\r')));
  }
  ::close(connection);
}

void serve(int connection, std::map<std::string, std::size_t>& asked) {
  const std::string request = read_request(connection);
  const std::size_t times = asked[header_of(request, "Idempotency-Key")]++;
  const bool is_job = request.starts_with("POST /jobs ");
  answer_with(connection, request, is_job ? accepted : bad_day[std::min(times, bad_day.size() - 1)]);
  ::close(connection);
  if (is_job) report_to_webhook(request, reports[std::min(times, reports.size() - 1)]);
}

}  // namespace

int main() {
  int port = 0;
  const int listener = listen_on_loopback(port);
  say("http://127.0.0.1:" + std::to_string(port));

  std::map<std::string, std::size_t> asked;  // how often, by the key of the work
  pollfd waiting{.fd = listener, .events = POLLIN, .revents = 0};
  while (::poll(&waiting, 1, idle_ms) > 0) {
    const int connection = ::accept(listener, nullptr, nullptr);
    if (connection < 0) continue;
    serve(connection, asked);
  }
  say("nobody has asked for a minute");
}
