#include "exec/fiber/function_run.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/rfc3339.hpp"
#include "base/sha256.hpp"

namespace reprise::exec {

using event::OperationKind;

namespace {

// Unwinds a function that leaves memory. No std::exception, and nothing of it is recorded.
struct Unwound {};

Payload payload_of(std::string bytes, std::string& body) {
  if (bytes.size() <= event::payload_inline_max) return Payload::of(std::move(bytes));
  Payload payload{base::sha256(bytes), bytes.size(), true};
  body = std::move(bytes);
  return payload;
}

OperationKind kind_of(detail::Wanted wanted) {
  switch (wanted) {
    case detail::Wanted::call:
      return OperationKind::call;
    case detail::Wanted::sleep:
      return OperationKind::sleep;
    case detail::Wanted::signal:
      return OperationKind::signal;
    case detail::Wanted::run:
      return OperationKind::run;
    case detail::Wanted::undo:
      return OperationKind::undo;
  }
  return OperationKind::call;
}

std::string place_of(const std::source_location& place) {
  std::string_view file = place.file_name();
  if (const auto slash = file.find_last_of('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return std::string{file} + ':' + std::to_string(place.line());
}

std::string text_of(Time time) { return base::to_rfc3339(WallTime{Duration{time}}); }

std::string described(OperationKind kind, std::string_view name) {
  std::string text{name_of(kind)};
  if (!name.empty()) text += " \"" + std::string{name} + '"';
  return text;
}

std::uint64_t seed_of(const RunId& run, std::string_view path) {
  const std::string hash = base::sha256(to_string(run) + '/' + std::string{path});
  std::uint64_t seed = 0;
  for (std::size_t index = 0; index < sizeof seed; ++index) seed = seed << 8U | static_cast<unsigned char>(hash[index]);
  return seed;
}

// Is it there for its record alone?
bool is_over_at_once(OperationKind kind) { return kind == OperationKind::undo || kind == OperationKind::mark; }

}  // namespace

struct FunctionRun::Known final : detail::Operation {
  std::uint32_t step = 0;
  OperationKind kind = OperationKind::call;
  std::string path;
  std::string name;
  std::string place;
  Time called = 0;
  bool is_recorded = false;           // the log has it ...
  bool is_matched = false;            // ... and the function has begun it
  bool is_given_up = false;           // by the function itself
  bool has_closure = false;
  bool waits_for_closure = false;
  std::optional<bool> answer = {};    // of changed()
};

// ---- branches ----------------------------------------

class FunctionRun::Branch final : public detail::Branch {
 public:
  Branch(FunctionRun& run, std::string own_prefix, bool shielded)
      : prefix{std::move(own_prefix)}, is_shielded{shielded}, run_{run}, random_{seed_of(run.run_id_, prefix)} {}

  void start(std::move_only_function<void()> body) {
    fiber.emplace(run_.around_.stacks, run_.code_->options.stack, std::move(body));
    run_.stack_bytes_ += run_.code_->options.stack;
    run_.ready_.push_back(this);
  }

  detail::OperationPtr begin(detail::Beginning beginning) override { return begin_at(next_path(), beginning); }

  detail::OperationPtr begin_run(detail::Beginning beginning, Closures::Closure closure) override {
    const std::string path = next_path();
    const KnownPtr known = begin_at(path, beginning);
    if (known->has_ended) return known;
    run_.around_.closures.add(run_.id_.run, path, std::move(closure));
    known->has_closure = true;
    ++run_.open_closures_;
    return known;
  }

  void wait(const detail::OperationPtr& operation) override {
    const std::array<detail::OperationPtr, 1> one{operation};
    static_cast<void>(wait_any(one));
  }

  std::size_t wait_any(std::span<const detail::OperationPtr> operations) override {
    check();
    Known* first = nullptr;
    for (;;) {
      for (const detail::OperationPtr& operation : operations) {
        Known& known = static_cast<Known&>(*operation);
        if (known.has_ended && (first == nullptr || known.order < first->order)) first = &known;
      }
      if (first != nullptr && may_leave(*first)) break;
      waiting = operations;
      park();
    }
    waiting = {};
    if (first->is_dismissed && !first->is_given_up) throw Canceled{};
    const auto at = std::ranges::find(operations, first, [](const auto& one) { return static_cast<Known*>(one.get()); });
    return static_cast<std::size_t>(at - operations.begin());
  }

  void dismiss(const detail::OperationPtr& operation) override {
    check();
    Known& known = static_cast<Known&>(*operation);
    if (known.has_ended || known.is_given_up) return;
    known.is_given_up = true;
    Command command;
    command.what = Command::What::dismiss;
    command.path = known.path;
    run_.commands_.push_back(std::move(command));
  }

  std::vector<std::exception_ptr> parallel(const Group& group, std::vector<std::function<void(Context&)>> bodies,
                                           std::uint32_t) override {
    check();
    const std::string path = next_path();
    std::vector<std::exception_ptr> thrown(bodies.size());
    std::size_t open = bodies.size();
    std::size_t next = 0;
    const auto begin_next = [&] {
      const std::size_t index = next++;
      auto& branch = *run_.branches_.emplace_back(
          std::make_unique<Branch>(run_, path + '.' + std::to_string(index) + '.', is_shielded));
      branch.start([&, index, &own = branch] {
        Context context{own};
        try {
          if (!run_.unwinding_) bodies[index](context);
        } catch (...) {
          thrown[index] = std::current_exception();
        }
        --open;
        run_.ready_.push_back(this);
      });
    };
    const std::size_t limit = group.max_parallel == 0 ? bodies.size() : group.max_parallel;
    while (open > 0) {
      while (next < bodies.size() && next - (bodies.size() - open) < limit) begin_next();
      fiber->park();
      if (run_.unwinding_) break;
    }
    if (run_.unwinding_) throw Unwound{};  // they have ended: what is unwound is unwound from the last one on
    run_.drop_branches(path + '.');
    return thrown;
  }

  bool enter_shield(bool shielded) noexcept override { return std::exchange(is_shielded, shielded); }

  std::string begin_loop(std::string state, const std::source_location&) override {
    check();
    const std::string path = next_path();
    loops_.push_back({path, 1, prefix, ordinal_, random_});
    if (const auto known = run_.turns_.find(path); known != run_.turns_.end()) {
      loops_.back().turn = known->second.turn;
      state = known->second.state.bytes;
    }
    begin_turn();
    return state;
  }
  void next_turn(const std::string& state) override {
    check();
    Loop& loop = loops_.back();
    for (const auto& [path, known] : run_.known_) {
      if (path.starts_with(loop.path + '.') && !known->has_ended) dismiss(known);
    }
    Command command;
    command.what = Command::What::continued;
    command.path = loop.path;
    command.turn = ++loop.turn;
    command.payload = payload_of(state, command.body);
    run_.turns_.insert_or_assign(loop.path, RecordedTurn{loop.path, loop.turn, Payload::of(std::string{})});
    run_.commands_.push_back(std::move(command));
    run_.forget(loop.path + '.');
    begin_turn();
  }
  void end_loop() noexcept override {
    prefix = std::move(loops_.back().prefix);
    ordinal_ = loops_.back().ordinal;
    random_ = loops_.back().random;
    loops_.pop_back();
  }

  bool changed(std::string_view change, const std::source_location& place) override {
    check();
    const std::string path = prefix + '~' + std::string{change};
    const auto found = run_.known_.find(path);
    if (found != run_.known_.end() && found->second->answer) return *found->second->answer;
    const bool is_recorded = found != run_.known_.end();
    const std::string next = prefix + std::to_string(ordinal_);
    const auto after = run_.known_.lower_bound(next);
    const bool has_passed = after != run_.known_.end() && after->second->is_recorded && after->first.starts_with(next) &&
                            (after->first.size() == next.size() || after->first[next.size()] == '.');
    if (!is_recorded && has_passed) {
      auto known = std::make_shared<Known>();
      known->has_ended = known->is_matched = true;
      known->answer = false;
      run_.known_.emplace(path, std::move(known));
      return false;
    }
    detail::Beginning beginning{.name = change, .place = place};
    const KnownPtr known = run_.match(*this, OperationKind::mark, beginning, path);
    known->answer = true;
    return true;
  }
  void publish(std::string state) override {
    check();
    if (run_.is_replay_ && !run_.ends_.empty()) return;  // it was published then
    if (run_.published_ == state) return;
    run_.published_ = state;
    Command command;
    command.what = Command::What::publish;
    command.payload = payload_of(std::move(state), command.body);
    run_.commands_.push_back(std::move(command));
  }
  void hold(const std::string& why) override {
    run_.diverge(why);
    throw Unwound{};
  }
  WallTime now() const override { return WallTime{Duration{run_.now_}}; }
  Random& random() override { return random_; }
  const RunId& run_id() const override { return run_.run_id_; }

  void check() const {
    if (run_.unwinding_) throw Unwound{};
  }
  void throw_if_canceled() const {
    if (run_.canceling_ && !is_shielded) throw Canceled{};
  }

  std::string prefix;
  bool is_shielded;
  std::optional<Fiber> fiber;
  std::span<const detail::OperationPtr> waiting = {};

 private:
  struct Loop {
    std::string path;
    std::uint32_t turn;
    std::string prefix;  // as it was outside of the loop, like what follows
    std::uint32_t ordinal;
    Random random;
  };

  std::string next_path() { return prefix + std::to_string(ordinal_++); }
  void begin_turn() {
    const Loop& loop = loops_.back();
    prefix = loop.path + '.' + std::to_string(loop.turn) + '.';
    ordinal_ = 0;
    random_ = Random{seed_of(run_.run_id_, prefix)};
  }
  KnownPtr begin_at(const std::string& path, const detail::Beginning& beginning) {
    check();
    return run_.match(*this, kind_of(beginning.kind), beginning, path);
  }
  void park() {
    fiber->park();
    check();
  }
  // A closure looks into this stack: it is left when that has returned.
  bool may_leave(Known& known) {
    if (!known.has_closure) return true;
    if (!known.waits_for_closure &&
        run_.around_.closures.remove(run_.id_.run, known.path, run_.around_.closure_returned)) {
      known.has_closure = false;
      --run_.open_closures_;
      return true;
    }
    known.waits_for_closure = true;
    return false;
  }

  FunctionRun& run_;
  std::uint32_t ordinal_ = 0;
  Random random_;
  std::vector<Loop> loops_;
};

// ---- one run ----------------------------------------

FunctionRun::FunctionRun(std::shared_ptr<const FunctionCode> code, const News& begins, Surroundings surroundings)
    : code_{std::move(code)},
      around_{std::move(surroundings)},
      id_{begins.id},
      run_id_{begins.run_id},
      input_{bytes_of(begins.input)},
      now_{begins.began},
      is_replay_{true} {
  for (const RecordedTurn& turn : begins.turns)
    turns_.emplace(turn.path, RecordedTurn{turn.path, turn.turn, Payload::of(bytes_of(turn.state))});
  if (begins.published.size > 0) published_ = bytes_of(begins.published);
}

FunctionRun::~FunctionRun() { unwind(); }

std::string FunctionRun::bytes_of(const Payload& payload) {
  return payload.hashed ? *around_.payloads.read(payload.bytes) : payload.bytes;
}

Decided FunctionRun::take(News&& news) {
  canceling_ = news.canceling;
  for (RecordedOperation& told : news.operations) learn(std::move(told), news.begins);
  if (news.begins) {
    Branch& root = *branches_.emplace_back(std::make_unique<Branch>(*this, "", false));
    root.start([this] { run_root(); });
  }
  return go_on();
}

Decided FunctionRun::go_on() {
  for (const auto& branch : branches_) {
    const bool waits_for_closure = std::ranges::any_of(branch->waiting, [](const auto& operation) {
      return static_cast<Known&>(*operation).waits_for_closure;
    });
    if (!waits_for_closure) continue;
    for (const auto& operation : branch->waiting) static_cast<Known&>(*operation).waits_for_closure = false;
    ready_.push_back(branch.get());
  }
  run_branches();
  while (!ends_.empty() && !is_over_ && divergence_.empty()) {
    deliver_next();
    run_branches();
  }
  return answer();
}

// What the log has; ends are told when their turn has come.
void FunctionRun::learn(RecordedOperation&& told, bool begins) {
  if (begins) {
    auto known = std::make_shared<Known>();
    known->step = told.step;
    known->kind = told.kind;
    known->path = told.path;
    known->name = told.name;
    known->place = told.place;
    known->called = told.called;
    known->is_recorded = true;
    known->has_ended = is_over_at_once(told.kind);
    known->has_succeeded = known->has_ended;
    known_.insert_or_assign(told.path, std::move(known));
  }
  if (told.end != RecordedOperation::End::open && !is_over_at_once(told.kind)) ends_.push_back(std::move(told));
}

void FunctionRun::deliver_next() {
  RecordedOperation told = std::move(ends_.front());
  ends_.pop_front();
  now_ = std::max(now_, told.ended);
  const auto found = known_.find(told.path);
  if (found == known_.end()) return;  // of a turn that is forgotten
  const KnownPtr known = found->second;
  end(*known, std::move(told));
  for (const auto& branch : branches_) {
    if (std::ranges::find(branch->waiting, known) != branch->waiting.end()) ready_.push_back(branch.get());
  }
}

void FunctionRun::end(Known& known, RecordedOperation&& told) {
  using Told = RecordedOperation::End;
  known.has_ended = true;
  known.order = ++order_;
  known.has_succeeded = told.end == Told::succeeded;
  known.is_dismissed = told.end == Told::dismissed;
  if (known.has_succeeded) known.output = bytes_of(told.output);
  known.error = {std::move(told.failure), told.reason, told.attempts};
  if (known.is_dismissed) known.error.reason = StopReason::canceled;
}

void FunctionRun::run_branches() {
  while (!ready_.empty() && !is_over_) {
    Branch* const branch = ready_.front();
    ready_.pop_front();
    if (branch->fiber->has_ended()) continue;
    current_ = branch;
    branch->fiber->resume();
    current_ = nullptr;
    if (!divergence_.empty()) return;
  }
}

void FunctionRun::run_root() {
  Context context{*branches_.front()};
  try {
    if (!unwinding_) output_ = code_->body(context, input_);
  } catch (const Unwound&) {
  } catch (...) {
    thrown_ = std::current_exception();
  }
  if (!unwinding_) is_over_ = true;
}

void FunctionRun::drop_branches(const std::string& prefix) {
  std::erase_if(branches_, [&](const auto& branch) {
    const bool is_own = branch->prefix.starts_with(prefix) && branch->fiber->has_ended();
    if (is_own) {
      stack_bytes_ -= code_->options.stack;
      std::erase(ready_, branch.get());
    }
    return is_own;
  });
}

// From the last branch on: they look into the stacks of those before.
void FunctionRun::unwind() {
  unwinding_ = true;
  ready_.clear();
  if (open_closures_ > 0 && !around_.closures.remove_all(id_.run)) {
    // It looks into a stack, and does not return: that memory is not used again.
    static_cast<void>(new std::vector<std::unique_ptr<Branch>>{std::move(branches_)});
    return;
  }
  for (auto branch = branches_.rbegin(); branch != branches_.rend(); ++branch) {
    if ((*branch)->fiber && !(*branch)->fiber->has_ended()) (*branch)->fiber->resume();
  }
}

void FunctionRun::diverge(std::string what) {
  if (divergence_.empty()) divergence_ = std::move(what);
  unwinding_ = true;
}

FunctionRun::KnownPtr FunctionRun::match(Branch& branch, OperationKind kind, const detail::Beginning& beginning,
                                         const std::string& path) {
  const std::string place = place_of(beginning.place);
  if (const auto found = known_.find(path); found != known_.end() && found->second->is_recorded) {
    Known& known = *found->second;
    if (known.kind != kind || known.name != beginning.name) {
      diverge("operation " + path + ": the log has " + described(known.kind, known.name) + " (" + text_of(known.called) +
              ", " + known.place + "), and the function now begins " + described(kind, beginning.name) + " (" + place +
              "). Run the version of the program that made the log; or let runs that have passed here do what they did, with "
              "ctx.changed(\"a name\"), and resume the run; or cancel it");
      throw Unwound{};
    }
    known.is_matched = true;
    return found->second;
  }
  branch.throw_if_canceled();
  auto known = std::make_shared<Known>();
  known->kind = kind;
  known->path = path;
  known->name = beginning.name;
  known->place = place;
  known->called = now_;
  known->is_matched = true;
  known->has_ended = known->has_succeeded = is_over_at_once(kind);
  known_.insert_or_assign(path, known);
  Command command = command_of(kind, path, beginning);
  command.shielded = branch.is_shielded;
  commands_.push_back(std::move(command));
  return known;
}

Command FunctionRun::command_of(OperationKind kind, const std::string& path, const detail::Beginning& beginning) const {
  Command command;
  command.kind = kind;
  command.path = path;
  command.name = beginning.name;
  command.place = place_of(beginning.place);
  command.payload = payload_of(beginning.input, command.body);
  command.retry = beginning.options.retry;
  command.timeout = beginning.options.timeout;
  if (beginning.until) command.due = std::max<Time>(1, beginning.until->time_since_epoch().count());
  if (beginning.span) {
    const std::int64_t span = std::max<std::int64_t>(0, beginning.span->count());
    command.due = span > INT64_MAX - now_ ? INT64_MAX : now_ + span;
  }
  return command;
}

void FunctionRun::forget(const std::string& prefix) {
  const auto first = known_.lower_bound(prefix);
  auto last = first;
  while (last != known_.end() && last->first.starts_with(prefix)) ++last;
  known_.erase(first, last);
  std::erase_if(turns_, [&](const auto& turn) { return turn.first.starts_with(prefix); });
}

// Undos stay when their turn of a loop is forgotten.
bool FunctionRun::is_of_earlier_turn(std::string_view path) const {
  return std::ranges::any_of(turns_, [&](const auto& turn) {
    const std::string loop = turn.first + '.';
    return path.starts_with(loop) && !path.starts_with(loop + std::to_string(turn.second.turn) + '.');
  });
}

// Everything that was recorded followed from what the function has been told now: it must have done all of it.
void FunctionRun::check_for_what_is_missing() {
  for (const auto& [path, known] : known_) {
    if (!known->is_recorded || known->is_matched || known->kind == OperationKind::mark || is_of_earlier_turn(path)) continue;
    return diverge("operation " + path + ": the log has " + described(known->kind, known->name) + " (" +
                   text_of(known->called) + ", " + known->place + "), and the function now " +
                   (is_over_ ? "ends" : "waits") +
                   " without it. Run the version of the program that made the log; or let runs that have passed here do "
                   "what they did, with ctx.changed(\"a name\"), and resume the run; or cancel it");
  }
}

Decided FunctionRun::answer() {
  Decided decided;
  decided.id = id_;
  if (std::exchange(is_replay_, false) && divergence_.empty()) check_for_what_is_missing();
  if (!divergence_.empty()) {
    commands_.clear();
    if (code_->options.on_divergence == Divergence::hold) {
      decided.divergence = divergence_;
    } else {
      decided.end = Failed{std::make_unique<Failure>(Failure{.type = "DivergenceError",
                                                             .message = divergence_,
                                                             .failure_class = FailureClass::deterministic})};
    }
    return decided;
  }
  decided.commands = std::exchange(commands_, {});
  if (!is_over_) return decided;
  if (thrown_ == nullptr) {
    decided.end = Succeeded{payload_of(std::move(output_), decided.body), {}};
    return decided;
  }
  Failure failure;
  try {
    std::rethrow_exception(thrown_);
  } catch (const CallFailed& failed) {
    failure = failed.error().failure;
  } catch (const Canceled&) {
    failure = {.type = "Canceled", .message = "the function was cancelled", .failure_class = FailureClass::canceled};
  } catch (...) {
    failure = to_failure(std::current_exception());
  }
  decided.end = Failed{std::make_unique<Failure>(std::move(failure))};
  return decided;
}

}  // namespace reprise::exec
