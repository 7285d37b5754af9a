#include "exec/http/webhook_listener.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

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

constexpr std::string_view path_prefix = "/v1/callbacks/";
constexpr std::size_t connections_max = 64;  // more wait in the kernel's queue until one ends
constexpr std::uint32_t header_bytes_max = 16U << 10U;
constexpr std::uint64_t body_bytes_max = 1U << 20U;
constexpr std::size_t unread_bytes_max = 2U << 20U;  // read and dropped after a refusal, so that the refusal arrives
constexpr std::size_t token_characters_max = 256;
constexpr std::chrono::seconds last_patience{1};        // for answers that are on their way when the listener goes
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
bool is_token(std::string_view id) {
  static constexpr std::string_view marks = "-._~!$&'()*+,;=:@";
  const auto allowed = [](char c) {
    const char small = text::to_lower(c);
    return (small >= 'a' && small <= 'z') || text::is_digit(c) || marks.find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= token_characters_max && std::ranges::all_of(id, allowed);
}

// The last part of the path, behind the prefix; a proxy may have put something before that. Empty: it is another path.
std::string_view token_in_path(std::string_view target) {
  const std::size_t prefix = target.rfind(path_prefix);
  if (prefix == std::string_view::npos) return {};
  const std::string_view token = target.substr(prefix + path_prefix.size());
  return is_token(token) ? token : std::string_view{};
}

// Given once more, for those who send it with every request. Empty: it is not.
std::string_view token_in_head(const Request::header_type& head) {
  constexpr std::string_view scheme = "bearer ";
  std::string_view credentials = view_of(head[http::field::authorization]);
  if (text::lowered(credentials.substr(0, scheme.size())) == scheme) {
    credentials.remove_prefix(scheme.size());
    return credentials.substr(std::min(credentials.find_first_not_of(' '), credentials.size()));
  }
  return view_of(head["X-Reprise-Webhook-Token"]);
}

// What is refused whatever the body says; std::nullopt: it is for the handler.
std::optional<WebhookAnswer> refusal_of(const Request::header_type& head, bool only_loopback) {
  if (only_loopback && !is_loopback_host(view_of(head[http::field::host])))
    return WebhookAnswer{403, "the Host header must name this machine: 127.0.0.1 or localhost"};
  const std::string_view token = token_in_path(view_of(head.target()));
  if (token.empty()) return WebhookAnswer{404, "there is nothing here: POST to the URL that came with the job"};
  if (head.method() != http::verb::post) return WebhookAnswer{405, "only POST is understood"};
  const std::string_view repeated = token_in_head(head);
  if (!repeated.empty() && repeated != token)
    return WebhookAnswer{403, "the token in the header is not the one of this URL"};
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

Response response_of(const WebhookAnswer& answer, bool keep_alive) {
  const bool is_known = answer.status >= 200 && answer.status <= 599;
  Response response{is_known ? static_cast<http::status>(answer.status) : http::status::internal_server_error, 11};
  response.set(http::field::content_type, "application/json");
  response.set(http::field::cache_control, "no-store");
  if (answer.status == 503) response.set(http::field::retry_after, "1");
  if (answer.status == 405) response.set(http::field::allow, "POST");
  response.body() = boost::json::serialize(boost::json::object{{"message", answer.text}});
  response.keep_alive(keep_alive);
  response.prepare_payload();
  return response;
}

// How an answer gets from any thread to the listener's, as long as there is one.
struct Door {
  std::mutex mutex;
  asio::io_context* context = nullptr;  // nullptr: the listener is gone

  template <class Work>
  void post(Work&& work) {
    const std::lock_guard lock{mutex};
    if (context != nullptr) asio::post(*context, std::forward<Work>(work));
  }
};

struct SessionSettings {
  WebhookListener::Handler handler;
  std::chrono::milliseconds patience;
  bool only_loopback = true;
  std::shared_ptr<Door> door;
};

// One connection: requests one after the other, each within the patience from its first byte wanted to its last byte read. It lives as
// long as something is asked of the socket: each callback holds it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const SessionSettings& settings, std::function<void()> ended)
      : stream_{std::move(socket)}, settings_{settings}, ended_{std::move(ended)}, waiting_{stream_.get_executor()} {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { ended_(); }

  // Nothing more is read; an answer that is being sent still is.
  void end_soon() {
    is_last_ = true;
    if (is_sending_) return;
    waiting_.cancel();
    stream_.cancel();
  }

  void read_head() {
    if (is_last_) return;
    parser_.emplace();
    parser_->header_limit(header_bytes_max);
    parser_->body_limit(body_bytes_max);
    stream_.expires_after(settings_.patience);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = shared_from_this()](error_code error, std::size_t) { self->take_head(error); });
  }

 private:
  void take_head(error_code error) {
    if (error) return refuse(error);
    // A body that is not read, or an answer to HEAD that has one, would be taken for the next message.
    const bool can_go_on = parser_->is_done() && parser_->keep_alive() && parser_->get().method() != http::verb::head;
    if (auto refusal = refusal_of(parser_->get(), settings_.only_loopback)) return send(*refusal, can_go_on);
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
    Request request = parser_->release();
    ask({.token = std::string{token_in_path(view_of(request.target()))}, .body = std::move(request.body())},
        request.keep_alive());
  }

  // The connection waits for the answer, which may come from another thread, or not in time.
  void ask(WebhookCall call, bool keep_alive) {
    const std::uint64_t question = ++question_;
    stream_.expires_never();
    waiting_.expires_after(settings_.patience);
    waiting_.async_wait([self = shared_from_this(), question, keep_alive](error_code error) {
      if (!error) self->answer(question, {503, "it is not recorded yet: try again"}, keep_alive);
    });
    try {
      settings_.handler(std::move(call), [door = settings_.door, weak = weak_from_this(), question,
                                          keep_alive](const WebhookAnswer& answer) {
        door->post([weak, question, keep_alive, answer] {
          if (const auto self = weak.lock()) self->answer(question, answer, keep_alive);
        });
      });
    } catch (...) {  // what went wrong is not for whoever called to read
      answer(question, {500, "the report could not be taken: try again later"}, keep_alive);
    }
  }

  void answer(std::uint64_t question, const WebhookAnswer& answer, bool keep_alive) {
    if (question != question_ || answered_ == question) return;
    answered_ = question;
    waiting_.cancel();
    send(answer, keep_alive);
  }

  void refuse(error_code error) {
    if (const auto answer = answer_to(error)) send(*answer, false);
  }

  void send(const WebhookAnswer& answer, bool keep_alive) {
    response_ = response_of(answer, keep_alive && !is_last_);
    is_sending_ = true;
    stream_.expires_after(settings_.patience);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code error, std::size_t) {
      self->is_sending_ = false;
      if (error || self->is_last_) return;
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
  const SessionSettings& settings_;
  const std::function<void()> ended_;
  asio::steady_timer waiting_;  // for the handler's answer
  std::uint64_t question_ = 0;
  std::uint64_t answered_ = 0;
  bool is_sending_ = false;
  bool is_last_ = false;  // the listener goes
  beast::flat_buffer buffer_{header_bytes_max + body_bytes_max};
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  std::array<char, 4096> dropped_{};
  std::size_t dropped_bytes_ = 0;
};

}  // namespace

class WebhookListener::State {
 public:
  State(WebhookSettings settings, Handler handler)
      : session_settings_{.handler = std::move(handler),
                          .patience = settings.patience,
                          .only_loopback = settings.url.empty() && is_loopback_host(settings.address.host),
                          .door = std::make_shared<Door>()},
        address_{std::move(settings.address)} {
    listen();
    url_ = (settings.url.empty() ? "http://" + to_string(address_) : settings.url) + std::string{path_prefix};
    session_settings_.door->context = &context_;
    accept();
    thread_ = std::thread{[this] {
      base::block_signals();
      context_.run();
    }};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    asio::post(context_, [this] { end(); });
    thread_.join();
    const std::lock_guard lock{session_settings_.door->mutex};
    session_settings_.door->context = nullptr;
    stopped_ = true;  // the context, when it goes, ends the sessions
  }

  const std::string& url() const noexcept { return url_; }
  const ListenAddress& address() const noexcept { return address_; }

 private:
  void listen() {
    const tcp::endpoint endpoint{asio::ip::make_address(address_.host), address_.port};
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      throw std::system_error{static_cast<std::error_code>(error),
                              "cannot listen for webhooks on " + to_string(address_)};
    address_.port = acceptor_.local_endpoint().port();
  }

  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (error) return pause_accepting();
      ++connections_;
      auto session = std::make_shared<Session>(std::move(socket), session_settings_, [this] { session_ended(); });
      std::erase_if(sessions_, [](const auto& weak) { return weak.expired(); });
      sessions_.push_back(session);
      session->read_head();
      if (connections_ < connections_max && !accepting_) accept();
    });
  }

  void pause_accepting() {
    if (ending_) return;
    accepting_ = true;
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }

  void session_ended() {
    --connections_;
    if (stopped_) return;
    if (ending_ && connections_ == 0) return context_.stop();
    if (!accepting_ && !ending_) accept();
  }

  // Connections that nothing is being sent to are closed; the others have a moment.
  void end() {
    ending_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.expires_after(last_patience);
    pause_.async_wait([this](error_code) { context_.stop(); });
    for (const auto& weak : sessions_) {
      if (const auto session = weak.lock()) session->end_soon();
    }
    if (connections_ == 0) context_.stop();
  }

  SessionSettings session_settings_;
  ListenAddress address_;
  std::string url_;
  std::size_t connections_ = 0;  // this and the next: the thread's own until it is joined
  bool accepting_ = false;       // or about to
  bool ending_ = false;
  bool stopped_ = false;
  std::vector<std::weak_ptr<Session>> sessions_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

WebhookListener::WebhookListener(WebhookSettings settings, Handler handler)
    : state_{std::make_unique<State>(std::move(settings), std::move(handler))} {}
WebhookListener::~WebhookListener() = default;

const std::string& WebhookListener::url() const noexcept { return state_->url(); }
const ListenAddress& WebhookListener::address() const noexcept { return state_->address(); }

}  // namespace reprise::exec
