// Where work that was accepted elsewhere reports its end: URLs for attempts, and reports that come to them.
//
// The listener is opened when the first asynchronous request is about to be sent, or when a run is resumed that has sent one: then at the
// address that was used before, if it is free. Which attempt a report is about stands in its token (callback_token.hpp), so nothing is kept here
// for those that wait. Whether a report counts is for the engine to say; it is thanked for once it is recorded.
// Thread safety: all functions from any thread; Sink::reported() is called from the listener's, never after stop_taking().
#pragma once

#include <cstddef>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "exec/executor.hpp"
#include "exec/http/callback_token.hpp"
#include "exec/http/webhook_listener.hpp"

namespace reprise::exec {

struct CallbackSettings {
  std::optional<ListenAddress> listen = {};           // nothing: a free port of the loopback address
  std::string url = {};                               // what workers are told instead of the address
  std::function<void(const std::string&)> warn = {};  // an address of before could not be had; for people
};

class Webhooks {
 public:
  Webhooks(CallbackSettings settings, std::string store_folder, Sink& sink);

  struct Place {
    std::string url;
    std::string token;
  };
  // The error is for people: nobody can listen, or the key cannot be read.
  std::expected<Place, std::string> place_of(const CallbackPlace& place);
  std::expected<void, std::string> open();
  // The same address, so that those who were given it are heard. What was asked for by settings wins.
  void open_again(std::string_view used);
  std::string used() const;  // what open_again() needs; empty: nobody listens
  void stop_taking();        // from now on everybody is told to try again

 private:
  static constexpr std::size_t remembered_max = 10'000;  // tokens, to thank for repetitions

  std::expected<void, std::string> open(const ListenAddress& address, const std::string& url);
  std::string key() const;
  void take(WebhookCall&& call, const WebhookReply& reply);
  void answer(const std::string& token, ReportTaken taken, const WebhookReply& reply);

  const CallbackSettings settings_;
  const std::string store_folder_;
  std::mutex sink_mutex_;  // never taken while the other is held
  Sink* sink_;             // nullptr: nothing is taken any more
  mutable std::mutex mutex_;
  std::string key_;
  std::unordered_set<std::string> taken_;
  std::deque<std::string> order_;              // in which they were taken
  std::string url_;                            // that was given instead of the address
  std::unique_ptr<WebhookListener> listener_;  // the last: its thread uses the others
};

}  // namespace reprise::exec
