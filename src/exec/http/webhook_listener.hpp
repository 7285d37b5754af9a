// A small HTTP server for one purpose: whoever was given an asynchronous job reports its end here.
//
//   WebhookListener listener{{}, [](WebhookCall call, WebhookReply reply) { reply({202, "thank you"}); }};
//   listener.url();          // http://127.0.0.1:43121/v1/callbacks/
//
// POST <url><token>. Everything else is refused here: other methods 405, other paths 404, another token in `Authorization: Bearer …` or
// `X-Reprise-Webhook-Token: …` 403, more than 1 MiB 413, slow clients after 10 s; and on the loopback address, unless another URL was given
// to callers, a Host that is not loopback 403. Whether the token is right, and what the body means, is for the handler to say.
// Thread safety: the handler is called from the listener's thread, one call at a time; its reply from any, once, also when the listener is
// gone. A call that is not answered within the patience is told to try again (503). Bounds: 64 connections, headers 16 KiB.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "exec/http/listen_address.hpp"

namespace reprise::exec {

struct WebhookCall {
  std::string token;  // the last part of the path
  std::string body;
};

struct WebhookAnswer {
  int status = 200;       // 503: with Retry-After
  std::string text = {};  // the answer's body is {"message": text}
};

using WebhookReply = std::function<void(WebhookAnswer)>;

struct WebhookSettings {
  ListenAddress address = {};
  std::string url = {};  // what callers are told instead of the address; a proxy passes it on to there
  // For one request, and for a connection that brings none.
  std::chrono::milliseconds patience = std::chrono::seconds{10};
};

class WebhookListener {
 public:
  using Handler = std::function<void(WebhookCall, WebhookReply)>;

  // Throws std::system_error when the address cannot be had.
  WebhookListener(WebhookSettings settings, Handler handler);
  WebhookListener(const WebhookListener&) = delete;
  WebhookListener& operator=(const WebhookListener&) = delete;
  // Answers that were given are sent, within a second.
  ~WebhookListener();

  const std::string& url() const noexcept;
  const ListenAddress& address() const noexcept;  // with the port that it got

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::exec
