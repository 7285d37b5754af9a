// Durable functions in a simulated world: programs drawn from a seed, one thread, virtual time, and crashes at every commit that there is.
//
// Each program first runs without a crash. Then it runs once for each commit with a crash right after that one, and with crashes, evictions
// and late ends drawn from the seed. Its result must be the same, nothing that was recorded may be done again, every destructor must run, and it must
// never be held.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <reprise/function.hpp>

#include "exec/fiber/function_executor.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "runtime/plan_book.hpp"
#include "store/memory_store.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using event::Payload;
using event::Time;

constexpr Call<int(int)> add_one{"add_one"};
constexpr Call<int(int)> refuse{"refuse"};
constexpr Call<void(int)> undo{"undo"};

// ---- programs ----------------------------------------

// One statement of a program; those with a body have more of them.
struct Statement {
  int kind = 0;
  int number = 0;
  std::vector<Statement> body = {};
};

std::vector<Statement> any_body(Random& random, int depth) {
  std::vector<Statement> body;
  for (std::int64_t count = random.between(1, depth == 0 ? 5 : 3); count > 0; --count) {
    Statement& statement = body.emplace_back();
    statement.kind = static_cast<int>(random.between(0, depth < 2 ? 13 : 9));
    statement.number = static_cast<int>(random.between(1, 9));
    if (statement.kind > 9) statement.body = any_body(random, depth + 1);
  }
  return body;
}

int living = 0;  // objects on the stacks of functions
struct Witness {
  Witness() { ++living; }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { --living; }
};

int run_body(Context& ctx, const std::vector<Statement>& body);

int run_statement(Context& ctx, const Statement& statement) {
  const Witness witness;
  const int number = statement.number;
  switch (statement.kind) {
    case 0:
    case 1:
      return ctx.call(add_one, number);
    case 2:
      ctx.sleep(std::chrono::seconds{number});
      return 1;
    case 3:
      return ctx.wait_signal<int>("number").value_or(0);
    case 4: {
      auto first = ctx.start(add_one, number);
      auto second = ctx.timer(std::chrono::seconds{number});
      const bool was_first = ctx.any(first, second) == 0;
      EXPECT_EQ(first.done(), was_first) << "in a replay as well";
      return first.wait();  // which of them was the first is no matter of the program
    }
    case 5:
      return ctx.try_call(refuse, number).has_value() ? 100 : 3;
    case 6:
      return ctx.run("own", [number] { return number * 2; });
    case 7:
      ctx.on_failure(undo, number);
      return 0;
    case 8:
      return static_cast<int>(ctx.random().between(0, 9)) + (ctx.changed("change") ? 1 : 0);
    case 9:
      try {
        return ctx.call(refuse, number);
      } catch (const CallFailed& failed) {
        const Witness in_catch;
        const int more = ctx.call(add_one, number);  // it waits inside of catch
        return more + static_cast<int>(failed.error().failure.message.size());
      }
    case 10: {
      const auto all = ctx.map(std::vector{1, 2, 3}, [&](Context& own, int factor) { return factor * run_body(own, statement.body); },
                               {.max_parallel = static_cast<std::uint32_t>(number % 3)});
      return all[0] + all[1] + all[2];
    }
    case 11: {
      int sum = 0;
      ctx.loop(std::pair{0, 0}, [&](std::pair<int, int>& state) {
        state.second += run_body(ctx, statement.body);
        sum = state.second;
        return ++state.first < number % 4 + 1 ? Next::again : Next::done;
      });
      return sum;
    }
    case 12:
      return ctx.shielded([&] { return run_body(ctx, statement.body); });
    default: {
      int left = 0;
      int right = 0;
      ctx.parallel({}, [&](Context& own) { left = run_body(own, statement.body); },
                   [&](Context& own) { right = own.call(add_one, number); });
      return left + 2 * right;
    }
  }
}

int run_body(Context& ctx, const std::vector<Statement>& body) {
  int sum = 0;
  for (const Statement& statement : body) sum = (sum * 3 + run_statement(ctx, statement)) % 100'003;
  return sum;
}

// ---- the world ----------------------------------------

struct Submitted final : runtime::SubmitReply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};
struct Done final : runtime::Reply {
  void done(std::expected<void, Error>) override {}
};

// What crashes again and again would be given up: not here.
Policy patient_with_crashes() {
  Policy policy = policy::standard;
  policy.worker_lost_max = 1'000'000;
  return policy;
}

struct Result {
  RunStatus status = RunStatus::running;
  std::string output;
  std::uint64_t commits = 0;
  std::multiset<std::string> undone;
};

class World {
 public:
  // Crashes right after that commit (0 = never), and in one of so many commits (0 = in none).
  World(std::uint64_t seed, std::uint64_t crash_after, int crash_in)
      : dice_{crash_in == 0 ? seed : seed + 1}, crash_after_{crash_after}, crash_in_{crash_in} {
    Random drawn{seed};
    program_ = any_body(drawn, 0);
    fails_ = drawn.between(0, 3) == 0;
    cancels_after_ = drawn.between(0, 5) == 0 ? drawn.between(1, 20) : 0;
    EXPECT_TRUE(book_.add_handler("add_one", {}));
    EXPECT_TRUE(book_.add_handler("refuse", {}));
    EXPECT_TRUE(book_.add_handler("undo", {}));
    queue_ = *book_.add_function("program", 1);
    begin();
  }
  ~World() {
    loop_.reset();
    functions_.reset();
    EXPECT_EQ(living, 0) << "a destructor did not run";
  }

  Result run(bool with_cancel) {
    auto reply = std::make_shared<Submitted>();
    reply->runs.emplace_back().plan = book_.plan_for({.handler = "program"})->plan;
    loop_->handle(runtime::Submit{reply}, now_);
    step();
    id_ = reply->runs.front().id;
    for (int round = 0; round < 20'000 && !has_ended(); ++round) {
      if (with_cancel && cancels_after_ > 0 && ++rounds_ == cancels_after_) operate(runtime::Operation::cancel);
      something_happens();
      step();
    }
    return result();
  }

 private:
  struct Handlers final : exec::Executor {
    void start(std::vector<exec::Job>& begun) override {
      for (exec::Job& job : begun) jobs.push_back(std::move(job));
      begun.clear();
    }
    void cancel(const exec::AttemptId& id) override {
      std::erase_if(jobs, [&](const exec::Job& job) { return job.id == id; });
    }
    std::size_t capacity(std::uint32_t) override { return 1000; }
    std::deque<exec::Job> jobs;
  };
  struct Sink final : exec::Sink {
    void ended(exec::Outcome&&) override {}
    void progressed(exec::Progress&&) override {}
    void decided(exec::Decided&& decided) override { late.push_back(std::move(decided)); }
    std::vector<exec::Decided> late;
  };

  // A new process on the same store.
  void begin() {
    loop_.reset();
    functions_.reset();
    EXPECT_EQ(living, 0) << "a destructor did not run";
    handlers_.jobs.clear();
    sink_.late.clear();
    recorded_.insert(ended_.begin(), ended_.end());
    ended_.clear();
    functions_ = std::make_unique<exec::FunctionExecutor>(
        sink_, [this](std::string_view hash) -> std::expected<std::string, Error> { return *store_->read_payload(hash).value(); },
        FunctionSettings{.threads = 0, .memory = 128U << 10U});
    const std::uint32_t number = functions_->add({"program", detail::function_body<int>([this](Context& ctx) {
                                                    const int sum = run_body(ctx, program_);
                                                    if (fails_) throw std::runtime_error{std::to_string(sum)};
                                                    return sum;
                                                  }),
                                                  {}});
    runtime::LoopSettings settings;
    settings.park_after = 3s;
    settings.plan_of_command = [this](const exec::Command& command) { return book_.plan_of_command(command); };
    loop_ = std::make_unique<runtime::Loop>(*store_, runtime::Executors{&handlers_}, settings, 1, now_);
    EXPECT_TRUE(loop_->recover({}, now_));
    for (const char* handler : {"add_one", "refuse", "undo"}) loop_->handle(runtime::OpenQueue{handler, {}, 0}, now_);
    loop_->handle(runtime::OpenQueue{std::string{runtime::closure_queue}, {}, 0}, now_);
    loop_->handle(runtime::AddExecutor{functions_.get()}, now_);
    loop_->handle(runtime::OpenQueue{queue_, {.executor = 1, .handler = number}, 0}, now_);
  }

  void step() {
    for (exec::Decided& decided : std::exchange(sink_.late, {})) loop_->handle(std::move(decided), now_);
    for (bool more = true; more;) {
      more = loop_->turn(now_);
      for (const runtime::Reading kind : runtime::readings) {
        while (const runtime::ReadRequest* const request = loop_->begin_read(kind, now_)) {
          loop_->end_read(kind, runtime::perform(*store_, *request), now_);
          more = true;
        }
      }
    }
    loop_->build(now_);
    while (const auto writing = loop_->begin_write(now_)) {
      loop_->end_write(runtime::write_commit(*store_, *writing->commit, writing->verify), now_);
      ++commits_;
      recorded_.insert(ended_.begin(), ended_.end());
      ended_.clear();
      const bool crashes = commits_ == crash_after_ || (crash_in_ > 0 && dice_.between(1, crash_in_) == 1);
      if (crashes) return begin();
    }
  }

  void something_happens() {
    const std::int64_t what = dice_.between(0, 9);
    if (what < 6 && !handlers_.jobs.empty()) return end_job();
    if (what == 6 || what == 7) {
      now_ += Duration{1s}.count();
      return;
    }
    if (what == 8) return operate(runtime::Operation::signal);
    // Its memory is needed. One that runs something itself stays.
    const core::Run* const run = loop_->core().find(runtime::number_in(id_));
    const bool is_pinned = run != nullptr && std::ranges::any_of(run->function->open, [&](std::uint32_t step) {
      return run->operation(step)->kind == event::OperationKind::run;
    });
    if (what == 9 && crash_in_ > 0 && !is_pinned) functions_->forget({.run = runtime::number_in(id_)});
  }

  void end_job() {
    const auto at = static_cast<std::size_t>(dice_.between(0, static_cast<std::int64_t>(handlers_.jobs.size()) - 1));
    exec::Job job = std::move(handlers_.jobs[at]);
    handlers_.jobs.erase(handlers_.jobs.begin() + static_cast<std::ptrdiff_t>(at));
    const std::string& path = job.context->operation;
    EXPECT_FALSE(recorded_.contains(path)) << "operation " << path << " is done again, though its end was recorded";
    exec::Outcome outcome{job.id, exec::Succeeded{}};
    if (*job.step == "refuse") {
      outcome = exec::failed(job.id, {.type = "Refused", .message = "no", .permanent = true});
    } else if (*job.step == runtime::closure_queue) {
      auto result = functions_->closures()->call(job.id.run, path, {});
      EXPECT_TRUE(result) << path;
      outcome.end = exec::Succeeded{Payload::of(*result), {}};
    } else if (*job.step == "undo") {
      undone_.insert(path + ' ' + job.input.bytes);
    } else {
      outcome.end = exec::Succeeded{Payload::of(std::to_string(std::stoi(job.input.bytes) + 1)), {}};
    }
    ended_.insert(path);
    loop_->handle(runtime::Ended{std::move(outcome), {}}, now_);
  }

  void operate(runtime::Operation operation) {
    runtime::Operate asked{operation, id_, {}, {}, {}, std::make_shared<Done>()};
    if (operation == runtime::Operation::signal) {
      asked.text = "number";
      asked.payload = Payload::of("5");
    }
    loop_->handle(std::move(asked), now_);
  }

  bool has_ended() {
    const core::Run* const run = loop_->core().find(runtime::number_in(id_));
    if (run != nullptr) {
      EXPECT_EQ(run->function->divergence, "");
      return run->has_ended() || !run->function->divergence.empty();
    }
    const auto row = store_->read_run(runtime::number_in(id_));
    return row && *row && !is_open((*row)->status);
  }

  Result result() {
    Result result;
    result.commits = commits_;
    for (const auto& path : undone_) result.undone.insert(path);
    const auto row = store_->read_run(runtime::number_in(id_));
    EXPECT_TRUE(row && *row);
    if (!row || !*row) return result;
    core::Core core{now_, 0};
    const auto plans = store_->read_plans();
    for (const store::StoredPlan& plan : *plans)
      core.add_plan(plan.number, std::make_shared<const core::Plan>(*core::decode_plan(plan.body, {}, nullptr)));
    core::Run run;
    EXPECT_TRUE(core.restore(run, (*row)->state));
    const RunOutcome outcome = core::outcome_of(run);
    result.status = outcome.status;
    result.output = outcome.output + outcome.failure.message;
    return result;
  }

  Random dice_;
  std::uint64_t crash_after_;
  int crash_in_;
  std::vector<Statement> program_;
  bool fails_ = false;
  std::int64_t cancels_after_ = 0;
  std::int64_t rounds_ = 0;
  Time now_ = 1'700'000'000'000'000'000;
  std::unique_ptr<store::Store> store_ = store::make_memory_store(1);
  runtime::PlanBook book_{{.retry = patient_with_crashes()}, {}};
  std::string queue_;
  Handlers handlers_;
  Sink sink_;
  std::unique_ptr<exec::FunctionExecutor> functions_;
  std::unique_ptr<runtime::Loop> loop_;
  RunId id_;
  std::uint64_t commits_ = 0;
  std::set<std::string> ended_;     // paths whose end is not recorded yet ...
  std::set<std::string> recorded_;  // ... and those whose end is
  std::set<std::string> undone_;
};

class FunctionPrograms : public ::testing::TestWithParam<std::uint64_t> {};

void expect_equal(const Result& result, const Result& calm) {
  EXPECT_EQ(result.status, calm.status);
  EXPECT_EQ(result.output, calm.output);
  EXPECT_EQ(result.undone, calm.undone);
}

TEST_P(FunctionPrograms, EndWhateverHappens) {
  for (std::uint64_t seed = GetParam() * 1000; seed < GetParam() * 1000 + 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Result calm = World{seed, 0, 0}.run(false);
    EXPECT_FALSE(is_open(calm.status));
    for (std::uint64_t commit = 1; commit <= std::min<std::uint64_t>(calm.commits, 40) && !HasFailure(); ++commit) {
      SCOPED_TRACE("a crash after commit " + std::to_string(commit));
      expect_equal(World{seed, commit, 0}.run(false), calm);
    }
    expect_equal(World{seed, 0, 5}.run(false), calm);
    EXPECT_FALSE(is_open(World{seed, 0, 8}.run(true).status));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FunctionPrograms, ::testing::Range<std::uint64_t>(1, 5));

}  // namespace
}  // namespace reprise
