#include "exec/http/webhook_listener.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <optional>
#include <system_error>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/block_signals.hpp"
#include "text/ascii.hpp"

namespace reprise::exec {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view path_prefix = "/webhook/";
constexpr std::size_t connections_max = 64;  // more wait in the kernel's queue until one ends
constexpr std::uint32_t header_bytes_max = 16U << 10U;
constexpr std::uint64_t body_bytes_max = 1U << 20U;
constexpr std::size_t unread_bytes_max = 2U << 20U;  // read and dropped after a refusal, so that the refusal arrives
constexpr std::size_t id_characters_max = 256;
constexpr std::chrono::milliseconds accept_pause{100};  // after an accept that failed: descriptors may come free

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

// A page in a browser can be made to call us under any name that its owner lets point here, but not under these.
bool is_loopback_host(std::string_view host) {
  const bool has_port = host.find(':') != std::string_view::npos && !host.ends_with(']');
  if (has_port) host = host.substr(0, host.rfind(':'));
  return host == "127.0.0.1" || host == "[::1]" || text::lowered(host) == "localhost";
}

// The characters of RFC 3986 that need no escape in a path.
bool is_id(std::string_view id) {
  static constexpr std::string_view marks = "-._~!$&'()*+,;=:@";
  const auto allowed = [](char c) {
    const char small = text::to_lower(c);
    return (small >= 'a' && small <= 'z') || text::is_digit(c) || marks.find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= id_characters_max && std::ranges::all_of(id, allowed);
}

std::string_view token_in(const Request::header_type& head) {
  constexpr std::string_view scheme = "bearer ";
  std::string_view credentials = view_of(head[http::field::authorization]);
  if (text::lowered(credentials.substr(0, scheme.size())) == scheme) {
    credentials.remove_prefix(scheme.size());
    return credentials.substr(std::min(credentials.find_first_not_of(' '), credentials.size()));
  }
  return view_of(head["X-Reprise-Webhook-Token"]);
}

// What is refused whatever the body says; std::nullopt: it is for the handler.
std::optional<WebhookAnswer> refusal_of(const Request::header_type& head) {
  const std::string_view target = view_of(head.target());
  if (!is_loopback_host(view_of(head[http::field::host])))
    return WebhookAnswer{403, "the Host header must name this machine: 127.0.0.1 or localhost"};
  if (!target.starts_with(path_prefix) || !is_id(target.substr(path_prefix.size())))
    return WebhookAnswer{404, "there is nothing here: POST to the URL that came with the job"};
  if (head.method() != http::verb::post) return WebhookAnswer{405, "only POST is understood"};
  if (token_in(head).empty())
    return WebhookAnswer{401, "the token is missing: send it as Authorization: Bearer … or X-Reprise-Webhook-Token: …"};
  return std::nullopt;
}

// Errors that deserve an answer; after the others nobody is there to read it.
std::optional<WebhookAnswer> answer_to(error_code error) {
  if (error == http::error::body_limit) return WebhookAnswer{413, "the body is larger than 1 MiB"};
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return WebhookAnswer{431, "the headers are larger than 16 KiB"};
  const bool is_malformed = error.category() == http::make_error_code(http::error::bad_method).category() &&
                            error != http::error::end_of_stream && error != http::error::partial_message;
  if (is_malformed) return WebhookAnswer{400, "this is not a request of HTTP/1.1"};
  return std::nullopt;
}

WebhookAnswer ask(const WebhookListener::Handler& handler, const WebhookCall& call) {
  try {
    WebhookAnswer answer = handler(call);
    if (answer.status >= 200 && answer.status <= 599) return answer;
  } catch (...) {  // what went wrong is not for whoever called to read
  }
  return {500, "the report could not be taken: try again later"};
}

Response response_of(const WebhookAnswer& answer, bool keep_alive) {
  Response response{static_cast<http::status>(answer.status), 11};
  response.set(http::field::content_type, "application/json");
  response.set(http::field::cache_control, "no-store");
  if (answer.status == 401) response.set(http::field::www_authenticate, "Bearer");
  if (answer.status == 405) response.set(http::field::allow, "POST");
  response.body() = boost::json::serialize(boost::json::object{{"message", answer.text}});
  response.keep_alive(keep_alive);
  response.prepare_payload();
  return response;
}

// One connection: requests one after the other, each within the patience from its first byte wanted to its last byte read. It lives as
// long as something is asked of the socket: each callback holds it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const WebhookListener::Handler& handler, std::chrono::milliseconds patience,
          std::function<void()> ended)
      : stream_{std::move(socket)}, handler_{handler}, patience_{patience}, ended_{std::move(ended)} {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { ended_(); }

  void read_head() {
    parser_.emplace();
    parser_->header_limit(header_bytes_max);
    parser_->body_limit(body_bytes_max);
    stream_.expires_after(patience_);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->take_head(error); });
  }

 private:
  void take_head(error_code error) {
    if (error) return refuse(error);
    // A body that is not read, or an answer to HEAD that has one, would be taken for the next message.
    const bool can_go_on = parser_->is_done() && parser_->keep_alive() && parser_->get().method() != http::verb::head;
    if (auto refusal = refusal_of(parser_->get())) return send(*refusal, can_go_on);
    if (text::lowered(view_of(parser_->get()[http::field::expect])) == "100-continue") return send_continue();
    read_body();
  }

  void send_continue() {
    response_ = Response{http::status::continue_, 11};
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->read_body();
    });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) { self->take_body(error); });
  }

  void take_body(error_code error) {
    if (error) return refuse(error);
    const bool keep_alive = parser_->keep_alive();
    Request request = parser_->release();
    const WebhookCall call{.id = std::string{view_of(request.target()).substr(path_prefix.size())},
                           .token = std::string{token_in(request)},
                           .body = std::move(request.body())};
    send(ask(handler_, call), keep_alive);
  }

  void refuse(error_code error) {
    if (const auto answer = answer_to(error)) send(*answer, false);
  }

  void send(const WebhookAnswer& answer, bool keep_alive) {
    response_ = response_of(answer, keep_alive);
    stream_.expires_after(patience_);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return;
      if (self->response_.keep_alive()) return self->read_head();
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
      self->drop_unread();
    });
  }

  // Closing with bytes unread would reset the connection, and the client would never see why it was refused.
  void drop_unread() {
    stream_.async_read_some(asio::buffer(dropped_), [self = shared_from_this()](error_code error, std::size_t size) {
      self->dropped_bytes_ += size;
      if (!error && self->dropped_bytes_ <= unread_bytes_max) self->drop_unread();
    });
  }

  beast::tcp_stream stream_;
  const WebhookListener::Handler& handler_;
  const std::chrono::milliseconds patience_;
  const std::function<void()> ended_;
  beast::flat_buffer buffer_{header_bytes_max + body_bytes_max};
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  std::array<char, 4096> dropped_{};
  std::size_t dropped_bytes_ = 0;
};

}  // namespace

class WebhookListener::State {
 public:
  State(Handler handler, std::uint16_t port, std::chrono::milliseconds patience)
      : handler_{std::move(handler)}, patience_{patience} {
    listen(port);
    url_ = "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + std::string{path_prefix};
    accept();
    thread_ = std::thread{[this] {
      base::block_signals();
      context_.run();
    }};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    context_.stop();  // a call to the handler that goes on is waited for
    thread_.join();
    stopped_ = true;  // the context, when it goes, ends the sessions
  }

  const std::string& url() const noexcept { return url_; }

 private:
  void listen(std::uint16_t port) {
    const tcp::endpoint endpoint{asio::ip::address_v4::loopback(), port};
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw std::system_error{static_cast<std::error_code>(error),
                              "cannot listen for webhooks on 127.0.0.1:" + std::to_string(port)};
  }

  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (error) return pause_accepting();
      ++connections_;
      std::make_shared<Session>(std::move(socket), handler_, patience_, [this] { session_ended(); })->read_head();
      if (connections_ < connections_max && !accepting_) accept();
    });
  }

  void pause_accepting() {
    accepting_ = true;
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  void session_ended() {
    --connections_;
    if (!accepting_ && !stopped_) accept();
  }

  const Handler handler_;
  const std::chrono::milliseconds patience_;
  std::string url_;
  std::size_t connections_ = 0;  // this and the next: the thread's own until it is joined
  bool accepting_ = false;       // or about to
  bool stopped_ = false;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

WebhookListener::WebhookListener(Handler handler, std::uint16_t port, std::chrono::milliseconds patience)
    : state_{std::make_unique<State>(std::move(handler), port, patience)} {}
WebhookListener::~WebhookListener() = default;

const std::string& WebhookListener::url() const noexcept { return state_->url(); }

}  // namespace reprise::exec
