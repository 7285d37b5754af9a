#include "exec/document/preparation_run.hpp"

#include <utility>

#include <boost/json/array.hpp>
#include <reprise/dialect.hpp>

#include "core/item_policies.hpp"
#include "exec/log_path.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::exec {

using json::Json;

PreparationRun::PreparationRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Step& step,
                               const AttemptId& id, Done done)
    : services_{services}, scope_{std::move(scope)}, step_{step}, id_{id}, done_{std::move(done)} {}

void PreparationRun::finish(Prepared&& prepared) {
  if (!done_) return;
  prepared.id = id_;
  current_.reset();
  const Done done = std::exchange(done_, {});
  done(std::move(prepared));
}

void PreparationRun::fail(Failure failure) {
  Prepared prepared;
  prepared.failure = std::make_unique<Failure>(std::move(failure));
  finish(std::move(prepared));
}

void PreparationRun::fail(std::string message) { fail(judge().invalid(std::move(message))); }

void PreparationRun::cancel() {
  done_ = {};
  if (current_ != nullptr) current_->cancel();
}

void PreparationRun::start() {
  if (step_.condition) {
    const auto value = step_.condition->evaluate(*scope_);
    if (!value) return fail("if: " + value.error());
    if (!flow::is_true(*value)) {
      Prepared prepared;
      prepared.skip = true;
      return finish(std::move(prepared));
    }
  }
  step_.for_each ? find_items() : check_precondition();
}

void PreparationRun::run(const flow::Command& command, bool whole_output, std::function<void(Judged)> then) {
  CommandSetting setting{.step = step_, .idempotency_key = to_string(scope_->facts().run) + "/" + step_.id};
  setting.whole_output = whole_output;
  if (!services_.settings.store_folder.empty())
    setting.log_file = log_path(services_.settings.store_folder, scope_->facts().run, step_.id, 0, 0);
  current_ = std::make_shared<CommandRun>(services_, scope_, command, std::move(setting),
                                          [self = shared_from_this(), then = std::move(then)](Judged result) {
                                            guarded(*self, [&] { then(std::move(result)); });
                                          });
  current_->start();
}

void PreparationRun::check_precondition() {
  if (!step_.require) return begin({}, {});
  run(*step_.require, false, [this](Judged result) {
    if (result) return begin({}, {});
    result.error().message = "require: " + result.error().message;
    fail(std::move(result).error());
  });
}

// ---- items ----------------------------------------

void PreparationRun::find_items() {
  const flow::ItemSource& source = *step_.for_each;
  switch (source.kind) {
    case flow::ItemSource::Kind::value: {
      const auto value = evaluate(source.value, *scope_);
      if (!value) return fail("for_each: " + value.error());
      return items_in_value(*value, "for_each");
    }
    case flow::ItemSource::Kind::file: {
      auto name = source.file.render(*scope_, flow::Quoting::none);
      if (!name) return fail("for_each: " + name.error());
      const std::string path = path_in(scope_->facts().program->input.directory, *name);
      return services_.files.read(path, list_file_bytes_max, std::nullopt,
                                  [this, weak = weak_from_this(), path](const FileContent& content) {
                                    const auto self = weak.lock();
                                    if (self == nullptr || !done_) return;
                                    guarded(*self, [&] {
                                      if (!content) return fail(judge().unreadable("for_each", content.error()));
                                      items_in_text(*content, path);
                                    });
                                  });
    }
    case flow::ItemSource::Kind::command:
      return run(*source.command, true, [this](Judged result) {
        if (result) return items_in_text(*result, "the output of its command");
        result.error().message = "for_each: " + result.error().message;
        fail(std::move(result).error());
      });
  }
}

// JSON; JSON in each line; or lines, each of which is an item.
void PreparationRun::items_in_text(std::string_view text, std::string_view where) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool looks_like_json = first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
  const auto whole = looks_like_json || step_.for_each->path ? json::parse_json(text)
                                                             : std::expected<Json, std::string>{std::unexpect, ""};
  if (whole) return items_in_value(*whole, where);
  if (step_.for_each->path) return fail("for_each: " + std::string{where} + " is not JSON: " + whole.error());
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!text::is_utf8(line)) {  // as text it would name another file, say
      return fail("for_each: line " + std::to_string(items.size() + 1) + " of " + std::string{where} +
                  " is not UTF-8 text");
    }
    if (!looks_like_json) {
      items.push_back(json::to_text(Json(line)));
    } else if (auto value = json::parse_json(line)) {
      items.push_back(json::to_text(*value));
    } else {
      return fail("for_each: " + std::string{where} + " is neither JSON nor JSON lines: " + whole.error());
    }
  }
  begin_with(std::move(items));
}

void PreparationRun::items_in_value(const Json& value, std::string_view where) {
  std::vector<std::string> items;
  if (step_.for_each->path) {
    const auto nodes = step_.for_each->path->select(value);
    if (!nodes) return fail("for_each: " + nodes.error());
    for (const Json* const node : *nodes) items.push_back(json::to_text(*node));
  } else if (value.is_array()) {
    items.reserve(value.get_array().size());
    for (const Json& element : value.get_array()) items.push_back(json::to_text(element));
  } else {
    return fail("for_each: " + std::string{where} + " is not a list but " + text::shorten(json::to_text(value), 80));
  }
  begin_with(std::move(items));
}

void PreparationRun::begin_with(std::vector<std::string> items) {
  constexpr std::size_t items_max = 100'000'000;
  if (items.size() > items_max) return fail("for_each: more than 100 million items");
  Prepared prepared;
  prepared.items = static_cast<std::uint32_t>(items.size());
  prepared.list = Payload::of(encode_list(items));
  begin(std::move(prepared), items);
}

// `items` of a step that has but one is empty.
void PreparationRun::begin(Prepared&& prepared, const std::vector<std::string>& items) {
  if (step_.item_policy) {
    auto policies = item_policies(items);
    if (!policies) return fail(policies.error());
    prepared.policies = *std::move(policies);
  }
  finish(std::move(prepared));
}

namespace {

std::expected<std::optional<Policy>, std::string> policy_in(const Json& value, const flow::Step& step) {
  if (value.is_null()) return std::nullopt;
  const bool is_name = value.is_string() && step.item_policy->dialect == Dialect::native;
  auto read = read_policy(is_name ? json::to_plain(value) : json::to_text(value), step.item_policy->dialect, "policy");
  if (!read) return std::unexpected{read.error().front().message};
  if (step.timeout && (!read->policy.attempt_timeout || *step.timeout < *read->policy.attempt_timeout))
    read->policy.attempt_timeout = step.timeout;
  return std::move(read->policy);
}

}  // namespace

std::expected<std::string, std::string> PreparationRun::item_policies(const std::vector<std::string>& items) const {
  const std::string& key = step_.item_policy->key;
  const std::size_t count = step_.for_each ? items.size() : 1;
  if (count > core::item_policies_max)
    return std::unexpected{key + ": more than " + std::to_string(core::item_policies_max) +
                           " items, each with a policy"};
  std::vector<std::optional<Policy>> policies;
  for (std::size_t index = 0; index < count; ++index) {
    ScopeFacts facts = scope_->facts();
    facts.index = static_cast<std::uint32_t>(index);
    if (step_.for_each) facts.item = items[index];
    const StepScope scope{std::move(facts), services_.payloads};
    const auto value = evaluate(step_.item_policy->value, scope);
    auto policy = value ? policy_in(*value, step_) : std::unexpected{value.error()};
    if (!policy)
      return std::unexpected{key + (step_.for_each ? " of item " + std::to_string(index) : "") + ": " + policy.error()};
    policies.push_back(*std::move(policy));
  }
  return core::encode_item_policies(policies);
}

}  // namespace reprise::exec
