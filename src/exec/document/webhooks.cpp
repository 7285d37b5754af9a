#include "exec/document/webhooks.hpp"

#include <system_error>
#include <utility>

#include <boost/json/object.hpp>

#include "json/json.hpp"

namespace reprise::exec {
namespace {

// What it says about the work; std::nullopt: it is no report.
std::optional<bool> success_in(std::string_view body) {
  const auto value = json::parse_json(body);
  if (!value || !json::is_map(*value)) return std::nullopt;
  const json::Json* const success = value->get_object().if_contains("success");
  if (success == nullptr || !success->is_bool()) return std::nullopt;
  return success->get_bool();
}

}  // namespace

Webhooks::Webhooks(CallbackSettings settings, std::string store_folder, Sink& sink)
    : settings_{std::move(settings)}, store_folder_{std::move(store_folder)}, sink_{&sink} {}

std::expected<void, std::string> Webhooks::open() {
  const std::lock_guard lock{mutex_};
  if (listener_ != nullptr) return {};
  return open(settings_.listen.value_or(ListenAddress{}), settings_.url);
}

std::expected<void, std::string> Webhooks::open(const ListenAddress& address, const std::string& url) {
  if (key_.empty()) {
    auto key = callback_key(store_folder_);
    if (!key) return std::unexpected{key.error()};
    key_ = *std::move(key);
  }
  try {
    listener_ = std::make_unique<WebhookListener>(
        WebhookSettings{.address = address, .url = url},
        [this](WebhookCall call, const WebhookReply& reply) { take(std::move(call), reply); });
    url_ = url;
    return {};
  } catch (const std::system_error& error) {
    return std::unexpected{std::string{error.what()}};
  }
}

void Webhooks::open_again(std::string_view used) {
  const std::lock_guard lock{mutex_};
  if (listener_ != nullptr || used.empty()) return;
  const std::size_t blank = used.find(' ');
  const auto address = parse_listen_address(used.substr(0, blank));
  const std::string url{blank == std::string_view::npos ? std::string_view{} : used.substr(blank + 1)};
  const bool is_given = settings_.listen.has_value();
  const auto opened = is_given || !address ? open(settings_.listen.value_or(ListenAddress{}), settings_.url)
                                           : open(*address, settings_.url.empty() ? url : settings_.url);
  if (opened || !settings_.warn) return;
  settings_.warn(opened.error() +
                 ": work that was told to report there cannot be heard; free that port and resume the run again");
}

std::string Webhooks::used() const {
  const std::lock_guard lock{mutex_};
  if (listener_ == nullptr) return "";
  return to_string(listener_->address()) + (url_.empty() ? "" : " " + url_);
}

std::expected<Webhooks::Place, std::string> Webhooks::place_of(const CallbackPlace& place) {
  if (auto opened = open(); !opened) return std::unexpected{opened.error()};
  const std::lock_guard lock{mutex_};
  std::string token = token_of(place, key_);
  return Place{listener_->url() + token, std::move(token)};
}

void Webhooks::stop_taking() {
  const std::lock_guard lock{sink_mutex_};
  sink_ = nullptr;
}

std::string Webhooks::key() const {
  const std::lock_guard lock{mutex_};
  return key_;
}

void Webhooks::take(WebhookCall&& call, const WebhookReply& reply) {
  const auto place = place_in(call.token, key());
  if (!place) return reply({403, "nobody waits for this: the token is not one of this store"});
  const auto success = success_in(call.body);
  if (!success)
    return reply({400, "expected {\"success\": true, \"output\": …} or {\"success\": false, \"error\": …}"});
  const std::lock_guard lock{sink_mutex_};
  if (sink_ == nullptr) return reply({503, "the run is being stopped: try again"});
  sink_->reported(
      {.run = place->run,
       .step = place->step,
       .item = place->item,
       .visit = place->visit,
       .attempt = place->attempt,
       .success = *success,
       .only_own = place->only_own,
       .body = std::move(call.body),
       .answer = [this, token = std::move(call.token), reply](ReportTaken taken) { answer(token, taken, reply); }});
}

void Webhooks::answer(const std::string& token, ReportTaken taken, const WebhookReply& reply) {
  bool is_repeated = false;
  {
    const std::lock_guard lock{mutex_};
    is_repeated = taken_.contains(token);
    if (taken == ReportTaken::yes && taken_.insert(token).second) order_.push_back(token);
    if (order_.size() > remembered_max) {
      taken_.erase(order_.front());
      order_.pop_front();
    }
  }
  switch (taken) {
    case ReportTaken::yes:
      return reply({202, "thank you"});
    case ReportTaken::known:
      return reply({202, "this was reported before"});
    case ReportTaken::over:
      return is_repeated ? reply({202, "this was reported before"})
                         : reply({410, "too late: nobody waits for this any more"});
    case ReportTaken::not_now:
      return reply({503, "no process works on this run now: try again"});
  }
}

}  // namespace reprise::exec
