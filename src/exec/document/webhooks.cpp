#include "exec/document/webhooks.hpp"

#include <utility>

#include <boost/json/object.hpp>

#include "base/encoding.hpp"
#include "flow/json.hpp"

namespace reprise::exec {
namespace {

bool is_report(std::string_view body) {
  const auto value = flow::parse_json(body);
  if (!value || !flow::is_map(*value)) return false;
  const flow::Json* const success = value->get_object().if_contains("success");
  return success != nullptr && success->is_bool();
}

}  // namespace

Webhooks::Place Webhooks::expect(Arrived arrived) {
  const std::lock_guard lock{mutex_};
  if (listener_ == nullptr)
    listener_ = std::make_unique<WebhookListener>([this](const WebhookCall& call) { return answer(call); });
  Place place{new_token(), {}, new_token()};
  place.url = listener_->url() + place.id;
  waiting_.emplace(place.id, Waiting{place.token, std::move(arrived), false});
  return place;
}

void Webhooks::forget(std::string_view id) {
  const std::lock_guard lock{mutex_};
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  found->second.arrived = {};
  over_.emplace_back(id);
  if (over_.size() <= remembered_max) return;
  waiting_.erase(over_.front());
  over_.pop_front();
}

WebhookAnswer Webhooks::answer(const WebhookCall& call) {
  Arrived arrived;
  {
    const std::lock_guard lock{mutex_};
    const auto found = waiting_.find(call.id);
    if (found == waiting_.end() || !base::same_secret(found->second.token, call.token))
      return {403, "nobody waits for this, or the token is not the right one"};
    if (!is_report(call.body))
      return {400, "expected {\"success\": true, \"output\": …} or {\"success\": false, \"error\": …}"};
    if (found->second.is_reported) return {200, "this was reported before"};
    if (!found->second.arrived) return {410, "too late: nobody waits for this any more"};
    found->second.is_reported = true;
    arrived = std::exchange(found->second.arrived, {});
  }
  arrived(call.body);
  return {200, "thank you"};
}

}  // namespace reprise::exec
