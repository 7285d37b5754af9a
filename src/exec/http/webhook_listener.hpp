// A small HTTP server on the loopback address, for one purpose: whoever was given an asynchronous job reports its end here.
//
//   WebhookListener listener{[](const WebhookCall& call) { return WebhookAnswer{200, "thank you"}; }};
//   listener.url();          // http://127.0.0.1:43121/webhook/
//
// POST <url><id> with the token in `Authorization: Bearer …` or `X-Reprise-Webhook-Token: …`. Everything else is refused here: other
// methods 405, other paths 404, no token 401, more than 1 MiB 413, a Host that is not loopback 403, slow clients after 10 s.
// Whether id and token belong together, and what the body means, is for the handler to say.
// Thread safety: the handler is called from the listener's thread, one call at a time. Bounds: 64 connections, headers 16 KiB.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::exec {

struct WebhookCall {
  std::string id;  // the last part of the path
  std::string token;
  std::string body;
};

struct WebhookAnswer {
  int status = 200;
  std::string text = {};  // the answer's body is {"message": text}
};

class WebhookListener {
 public:
  using Handler = std::function<WebhookAnswer(const WebhookCall&)>;

  // Throws std::system_error when no port can be had. Port 0 = any. Patience is for one request, and for a connection that brings none.
  explicit WebhookListener(Handler handler, std::uint16_t port = 0,
                           std::chrono::milliseconds patience = std::chrono::seconds{10});
  WebhookListener(const WebhookListener&) = delete;
  WebhookListener& operator=(const WebhookListener&) = delete;
  ~WebhookListener();

  const std::string& url() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// 32 characters that nobody can guess. They are compared by base::same_secret().
std::string new_token();

}  // namespace reprise::exec
