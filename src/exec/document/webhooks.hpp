// Who waits for which webhook. The listener is opened when the first asynchronous request is about to be sent.
//
// A report may come before the request itself was answered, twice, late, or from somebody who guesses: only the first with the right
// token counts, and every honest repetition is thanked.
// Thread safety: all functions from any thread; `arrived` is called from the listener's.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "exec/http/webhook_listener.hpp"

namespace reprise::exec {

class Webhooks {
 public:
  using Arrived = std::function<void(std::string body)>;

  struct Place {
    std::string id;
    std::string url;
    std::string token;
  };

  // Throws std::system_error when nobody can listen.
  Place expect(Arrived arrived);
  void forget(std::string_view id);  // from now on a report comes too late

 private:
  struct Waiting {
    std::string token;
    Arrived arrived;  // empty: it has been reported, or nobody waits any more
    bool is_reported = false;
  };
  static constexpr std::size_t remembered_max = 10'000;  // that are over, to thank for duplicates

  WebhookAnswer answer(const WebhookCall& call);

  std::mutex mutex_;
  std::map<std::string, Waiting, std::less<>> waiting_;
  std::deque<std::string> over_;
  std::unique_ptr<WebhookListener> listener_;  // the last: its thread uses the others
};

}  // namespace reprise::exec
