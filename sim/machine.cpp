// One round of the driver as a happening, and everything that power can do to it.
#include "sim/machine.hpp"

#include <algorithm>

#include "runtime/ids.hpp"
#include "text/pattern.hpp"

namespace reprise::sim {
namespace {

constexpr std::uint32_t restless_max = 1000;
constexpr std::uint32_t at_once_max = 20'000;

}  // namespace

core::PatternCompiler pattern_compiler() {
  return [](std::string_view expression) -> std::shared_ptr<const MessagePattern> {
    auto pattern = text::compile_pattern(expression);
    return pattern ? *std::move(pattern) : nullptr;
  };
}

Machine::Machine(World& world, Model& model, FaultyStore& store, FaultyExecutor& executor, const Program& program,
                 const runtime::LoopSettings& settings)
    : world_{world}, model_{model}, store_{store}, executor_{executor}, program_{program}, settings_{settings} {
  executor_.answer = [this](runtime::Input&& input) { push(std::move(input)); };
  executor_.wall_clock = [this] { return wall(); };
  executor_.new_child = [this](std::size_t document, std::string input) {
    const auto planned = book_->book_document(program_.documents[document % program_.documents.size()]);
    if (!planned) throw Violation{"a good document has no plan", 0};
    runtime::NewRun run;
    run.plan = planned->plan;
    run.input = event::Payload::of(std::move(input));
    return run;
  };
  executor_.limits.clear();
  for (const auto& handler : program_.handlers) executor_.limits.push_back(handler.options.concurrency);
}

// ---- power ----------------------------------------

void Machine::boot() {
  model_.new_life();
  skew_ = next_skew_;
  store_.power_cycle();
  loop_ = std::make_unique<runtime::Loop>(store_, runtime::Executors{&executor_}, settings_, world_.random().next(),
                                          wall());
  book_ =
      std::make_unique<runtime::PlanBook>(runtime::PolicyDefaults{}, core::FactsDecoder{pattern_compiler(), nullptr});
  auto plans = loop_->recover(pattern_compiler(), wall());
  if (!plans) {
    if (plans.error().code != ErrorCode::store_unavailable)
      throw Violation{"the engine does not start: " + plans.error().message, 0};
    power_off();
    const std::uint32_t life = model_.life();
    world_.after(world_.span(millisecond, 5 * second), [this, life] {
      if (is_off() && model_.life() == life && store_.is_given()) boot();
    });
    return;
  }
  book_->restore(*std::move(plans));
  loop_->set_observer(this);
  give_handlers();
  wake_at(world_.now());
}

void Machine::give_handlers() {
  for (std::size_t index = 0; index < program_.handlers.size(); ++index) {
    const auto& handler = program_.handlers[index];
    if (auto added = book_->add_handler(handler.name, handler.options); !added)
      throw Violation{added.error().message, 0};
    if (handlers_come == 0) {
      open_queue(index);
      continue;
    }
    const std::uint32_t life = model_.life();
    world_.after(world_.between(0, handlers_come), [this, life, index] {
      if (model_.life() == life) open_queue(index);
    });
  }
  for (const Flow& flow : program_.flows) {
    if (auto added = book_->add_flow(flow); !added) throw Violation{added.error().message, 0};
  }
}

const core::Plan* Machine::document(std::string_view name) const {
  const auto found = std::ranges::find(program_.documents, name, &core::Plan::name);
  return found != program_.documents.end() ? &*found : nullptr;
}

void Machine::open_queue(std::size_t handler) {
  push(runtime::OpenQueue{program_.handlers[handler].name,
                          {.executor = 0, .handler = static_cast<std::uint32_t>(handler)},
                          executor_.limits[handler]});
}

void Machine::power_off() {
  loop_.reset();
  book_.reset();
  inbox_.clear();
  writing_.reset();
  written_.reset();
  wake_.reset();
  published_.clear();
  stopping_ = false;
  gives_up_ = false;
  executor_.power_off();
}

void Machine::crash() {
  if (is_off()) return;
  ++crashes_;
  model_.new_life();  // whatever was on its way goes nowhere
  power_off();
}

void Machine::stop() {
  if (!is_up()) return;
  stopping_ = true;
  loop_->stop_starting();
  for (const event::AttemptId& id : executor_.stop()) {
    inbox_.push_back(runtime::Ended{{id, exec::Interrupted{}}, {}});
  }
  wake_at(world_.now());
}

std::function<void()> Machine::lose_shard() {
  struct Sleeper {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<runtime::PlanBook> book;
    std::vector<runtime::Input> inbox;
    std::optional<runtime::Loop::Writing> writing;
    std::unique_ptr<runtime::Loop> loop;
  };
  auto sleeper =
      std::make_shared<Sleeper>(store_.take(), std::move(book_), std::move(inbox_), writing_, std::move(loop_));
  model_.new_life();
  power_off();
  return [this, sleeper] {
    runtime::Loop& loop = *sleeper->loop;
    for (runtime::Input& input : sleeper->inbox) loop.handle(std::move(input), wall());
    loop.build(wall());
    if (!sleeper->writing) sleeper->writing = loop.begin_write(wall());
    if (!sleeper->writing) return;
    auto result = runtime::write_commit(*sleeper->store, *sleeper->writing->commit, sleeper->writing->verify);
    if (result || result.error().code != ErrorCode::fenced)
      throw Violation{"an owner whose shard is another's by now was not refused", 0};
    loop.end_write(std::move(result), wall());
    if (loop.begin_write(INT64_MAX - 1)) throw Violation{"an owner that was fenced writes again", 0};
  };
}

void Machine::set_clock_back(Time by) {
  next_skew_ -= by;
  model_.clock_was_set_back(-next_skew_);
}

// ---- driving ----------------------------------------

bool Machine::is_quiet() const {
  return loop_ != nullptr && inbox_.empty() && !written_ && loop_->outstanding() == 0 && !loop_->has_news() &&
         !loop_->waits_for_store() && executor_.is_idle();
}

void Machine::push(runtime::Input&& input) {
  if (is_off()) return;
  inbox_.push_back(std::move(input));
  if (loop_->outstanding() > 0 && world_.chance(lazy)) return;
  wake_at(world_.now());
}

void Machine::wake_at(Time when) {
  when = std::max(when, world_.now());
  if (wake_ && *wake_ <= when) return;
  wake_ = when;
  world_.at(when, [this, step = step_, life = model_.life(), when] {
    if (step_ == step && model_.life() == life && wake_ == when) this->step();
  });
}

void Machine::step() {
  if (is_off()) return;
  ++step_;
  wake_.reset();
  at_once_ = last_step_ == world_.now() ? at_once_ + 1 : 0;
  last_step_ = world_.now();
  if (at_once_ > at_once_max) {
    const EngineStats stats = loop_->stats();
    throw Violation{"the loop goes round and round without any time passing (ready " + std::to_string(stats.ready) +
                        ", running " + std::to_string(stats.running) + ", in memory " + std::to_string(stats.resident) +
                        ", " + std::to_string(stats.resident_bytes) + " bytes, commits " +
                        std::to_string(stats.commits) + ", inputs " + std::to_string(inbox_.size()) + ")",
                    0};
  }
  const bool had_input = written_.has_value() || !inbox_.empty();
  if (written_) {
    store::Result<void> result = *std::move(written_);
    written_.reset();
    writing_.reset();
    written(std::move(result));
  }
  std::vector<runtime::Input> inputs;
  inputs.swap(inbox_);
  for (runtime::Input& input : inputs) loop_->handle(std::move(input), wall());

  bool more = loop_->turn(wall());
  const bool had_news = loop_->has_news();
  loop_->build(wall());
  write();
  more |= read();
  if (had_input || had_news) restless_ = 0;
  const bool is_recorded = !loop_->has_news() && loop_->outstanding() == 0 && !loop_->waits_for_store();
  if (stopping_ && inbox_.empty() && (is_recorded || (!loop_->has_news() && loop_->in_trouble()))) {
    loop_->abandon_replies({ErrorCode::stopped, "the engine has stopped"});
    model_.new_life();
    power_off();
    if (gone) gone();
    return;
  }
  if (gives_up_) {
    crash();
    if (gone) gone();
    return;
  }
  plan_next_step(more);
  look();
}

void Machine::plan_next_step(bool more) {
  if (more || loop_->has_news_now()) return wake_at(world_.now());
  const std::optional<Time> next = loop_->next_wakeup();
  if (!next) return;
  if (*next > wall()) return wake_at(world_.now() + std::min(*next - wall(), INT64_MAX - world_.now()));
  // A real driver would be back at once, and again: that burns a processor. Some of it is allowed, as when the store cannot be read.
  if (++restless_ > restless_max)
    throw Violation{"the loop wants to be woken at once, again and again, and does nothing", 0};
  wake_at(world_.now() + millisecond);
}

void Machine::write() {
  while (const std::optional<runtime::Loop::Writing> writing = loop_->begin_write(wall())) {
    if (store_.faults.exactly > 0) return begin_slow_write(*writing, store_.faults.exactly, 0);
    if (store_.faults.slowest > 0 && world_.chance(700)) {
      const Time happens = world_.span(1000, store_.faults.slowest);
      return begin_slow_write(*writing, happens, world_.chance(300) ? world_.span(1000, store_.faults.slowest) : 0);
    }
    written(runtime::write_commit(store_, *writing->commit, writing->verify));
  }
}

// True: the loop was told something.
bool Machine::read() {
  bool is_told = false;
  for (const runtime::Reading kind : runtime::readings) {
    const runtime::ReadRequest* const request = loop_->begin_read(kind, wall());
    if (request == nullptr) continue;
    if (store_.faults.slowest_read > 0 && world_.chance(700)) {
      begin_slow_read(kind, *request);
    } else {
      loop_->end_read(kind, runtime::perform(store_, *request), wall());
      is_told = true;
    }
  }
  return is_told;
}

// What was read may be old when it is told.
void Machine::begin_slow_read(runtime::Reading kind, const runtime::ReadRequest& request) {
  const std::uint32_t life = model_.life();
  const Time answered = world_.chance(600) ? world_.span(1000, store_.faults.slowest_read) : 0;
  world_.after(world_.span(1000, store_.faults.slowest_read), [this, kind, &request, answered, life] {
    if (model_.life() != life) return;
    auto answer = std::make_shared<runtime::ReadAnswer>(runtime::perform(store_, request));
    world_.after(answered, [this, kind, answer, life] {
      if (model_.life() != life) return;
      loop_->end_read(kind, std::move(*answer), wall());
      wake_at(world_.now());
    });
  });
}

void Machine::written(store::Result<void> result) {
  gives_up_ = !result && (result.error().code == ErrorCode::fenced || result.error().code == ErrorCode::store_behind);
  loop_->end_write(std::move(result), wall());
}

void Machine::begin_slow_write(const runtime::Loop::Writing& writing, Time happens, Time answered) {
  writing_ = writing;
  const std::uint32_t life = model_.life();
  world_.after(happens, [this, writing, answered, life] {
    if (model_.life() != life) return;
    auto result = std::make_shared<store::Result<void>>(runtime::write_commit(store_, *writing.commit, writing.verify));
    world_.after(answered, [this, result, life] {
      if (model_.life() != life) return;
      written_ = std::move(*result);
      wake_at(world_.now());
    });
  });
}

void Machine::look() {
  executor_.check_limits();
  if (step_ % 64 != 0) return;
  model_.compare(*loop_);
  model_.check_books(*loop_);
}

bool Machine::knows(const RunId& run) { return published_.contains(runtime::number_in(run)); }

void Machine::published(const RunId& run, const core::Plan&, std::uint64_t chunk_first, std::uint64_t new_first,
                        std::string_view chunk) {
  published_.insert(runtime::number_in(run));
  model_.published(runtime::number_in(run), chunk_first, new_first, chunk);
}

}  // namespace reprise::sim
