// The loop that joins core, store and executor: inbox → core → commit → effects.
//
// It has no thread, clock or lock of its own: the engine (engine.cpp) and the simulator (sim/) both drive it, with real and virtual time.
// The driver gives it inputs and calls turn(); asks build() for batches; writes them in order with write_commit(); and tells
// end_write(). Up to two batches are on their way: while one is being synced the next is filled. Effects of a batch (attempts to
// start, answers to callers) are released by end_write() and never before.
//
// It never waits for the store either: what it wants to know it asks with begin_read(), and end_read() tells it. An input that needs a run
// which is not in memory, or a key, waits until the store has been asked, and with it all later ones for the same run. Only recover() reads
// by itself.
//
// Runs with nothing to do for long are written as images and leave memory; they come back when they are due. So does what is submitted
// when memory is full. The journal is kept short by writing images of the runs that have been in it longest.
// Thread safety: none; one thread drives it. The store may be written by another thread between begin_write() and end_write(), and read by
// others between begin_read() and end_read().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/core.hpp"
#include "exec/executor.hpp"
#include "runtime/inputs.hpp"
#include "runtime/journal.hpp"
#include "runtime/look_ups.hpp"
#include "runtime/outputs_cache.hpp"
#include "runtime/parentage.hpp"
#include "runtime/reads.hpp"
#include "runtime/retention.hpp"
#include "runtime/stored_runs.hpp"
#include "runtime/young_keys.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

struct LoopSettings {
  std::size_t memory = 256U << 20U;
  std::uint64_t max_open = 100'000'000;
  Duration park_after = std::chrono::seconds{10};
  std::optional<Duration> keep_ended = {};
  std::optional<std::uint64_t> keep_count = {};
  std::size_t journal_max = 8U << 20U;  // bytes of frames before images are written to shorten it
  // How much is done at once before the loop looks at its inputs again. The simulator makes them small.
  std::size_t timers_a_turn = 8192;
  std::size_t starts_a_turn = 4096;
  std::size_t rows_a_turn = 1024;       // loaded from the store
  std::size_t removals_a_turn = 256;    // by retention
  std::size_t images_to_shorten = 512;  // for each commit, when the journal is too long
  std::size_t waiting_max = 65'536;     // inputs that wait for the store; more are refused as `full`
  const TypeTree* types = nullptr;
  // The plan of a task that does what a function wants.
  std::function<std::expected<const BookedPlan*, Error>(const exec::Command&)> plan_of_command = {};
};

// Watches events as they become durable. It must return quickly and may not call back.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;
  virtual bool is_watching() noexcept = 0;
  virtual bool knows(const RunId& run) = 0;  // it has been told of this run's past
  // Whole events of one run, as a chunk; the first new one has this sequence.
  virtual void published(const RunId& run, const core::Plan& plan, std::uint64_t chunk_first, std::uint64_t new_first,
                         std::string_view chunk) = 0;
};

struct Batch {
  struct Answer {
    std::shared_ptr<Reply> reply;
    std::expected<void, Error> answer;
  };
  struct Notice {
    std::uint64_t run;
    const core::Plan* plan;
    Time created;
    std::uint64_t chunk_first, new_first;
    std::string chunk;
  };
  // For one executor.
  struct Orders {
    std::vector<exec::Job> jobs;
    std::vector<event::AttemptId> cancels;
    std::vector<event::AttemptId> take_backs;
  };
  store::Commit commit;
  std::vector<Orders> orders;             // by the executor's number
  std::vector<event::AttemptId> settled;  // for whichever executor keeps places for them
  std::vector<core::Prepare> prepares;
  std::vector<Answer> answers;
  std::vector<std::uint64_t> leaving;  // runs that leave memory when it is durable
  std::vector<Notice> notices;
  Time earliest_due = INT64_MAX;  // of the runs that it parks

  void clear();
};

// By their numbers: OpenQueue says which of them works for a queue. The first has what no queue was opened for.
using Executors = std::vector<exec::Executor*>;

class Loop {
 public:
  Loop(store::Store& store, Executors executors, const LoopSettings& settings, std::uint64_t seed, Time now);

  // Reads the plans and the journal: what was in memory when the engine ended is in memory again. Other open runs follow, turn by turn.
  store::Result<std::vector<BookedPlan>> recover(const core::PatternCompiler& compile, Time now);

  // After recover(): runs of documents that were there before go on only when they are allowed to.
  void restrict_documents() { core_.restrict_documents(next_run_); }

  void handle(Input&& input, Time now);
  // Fires timers, loads runs, starts what is ready. True: there is more to do at once.
  bool turn(Time now);
  // No timer fires before: the driver has not run for a while, and what has come meanwhile is on its way here.
  void hold_timers_until(Time time) noexcept { timers_held_until_ = time; }

  // Makes a batch of what has happened, if there is anything and fewer than two are on their way.
  void build(Time now);
  struct Writing {
    const store::Commit* commit = nullptr;
    bool verify = false;  // it was tried before, and may have happened
  };
  std::optional<Writing> begin_write(Time now);  // std::nullopt: nothing to write now, or somebody is writing
  void end_write(store::Result<void> result, Time now);

  // What is to be read now, with perform(); it stays as it is until end_read(). nullptr: nothing, or readings of this kind are on their way.
  const ReadRequest* begin_read(Reading kind, Time now);
  void end_read(Reading kind, ReadAnswer&& answer, Time now);
  // Somebody's answer depends on a reading.
  bool waits_for_store() const noexcept { return !waiting_.empty() || !finds_.empty() || finding_; }

  std::size_t outstanding() const noexcept { return outstanding_.size(); }
  bool has_news() const noexcept;                                    // build() would find something ...
  bool has_news_now() const noexcept;                                // ... and has room for it
  bool in_trouble() const noexcept { return trouble_.has_value(); }  // the store cannot be written
  bool is_loading() const noexcept { return loading_; }
  std::optional<Time> next_wakeup() const;
  // What happens next only if it may: nothing new is started any more.
  void stop_starting();
  bool has_reserved() const noexcept { return core_.counters().reserved > 0; }
  // Whoever has sent it is told so, if anybody can be; nothing else is done with it.
  static void refuse(Input& input, const Error& error);
  // No answer will come any more: everybody who waits is told so.
  void abandon_replies(const Error& error);

  void set_observer(Observer* observer) noexcept { observer_ = observer; }
  EngineStats stats() const;
  std::uint64_t secret() const noexcept { return secret_; }
  std::uint32_t slot() const noexcept { return slot_; }
  core::Core& core() noexcept { return core_; }

 private:
  // loop.cpp. Those that give false have done nothing: something has to be read first.
  void take(Ended&& ended, Time now);
  void take(Began&& began, Time now) { core_.began(began.id, began.when, now); }
  bool start_ready(Time now);
  std::vector<std::size_t> promised_jobs() const;
  bool take(Submit&& submit, Time now);
  bool take(Operate&& operate, Time now);
  bool take(Ask&& ask, Time now);
  void take(Find&& find, Time now);
  void take(OpenQueue&& queue, Time now);
  void take(RoomChanged&&, Time) {}
  void take(exec::Progress&& progress, Time now);
  void take(Begins&& begins, Time now);
  std::expected<void, Error> admit(std::size_t runs) const;
  void accept(NewRun& run, const std::optional<RunId>& known, Time now);
  std::expected<void, Error> operate_on(core::Run& run, Operate& operate, Time now);
  std::optional<std::expected<void, Error>> remove(const Operate& operate);
  void count_if_open(core::Run& run);
  void answer_later(std::shared_ptr<Reply> reply, std::expected<void, Error> answer);
  void tell_trouble(const Error& error);  // to everybody whose answer waits for a commit
  const core::NumberedPlan* plan_of(const BookedPlan& booked);
  void put_payload(std::uint64_t run, const Payload& payload, std::string body);
  void put_evidence(std::uint64_t run, const Failure& failure, std::string body = {});
  void describe(const core::Run& run, AskReply& reply) const;
  RunId id(std::uint64_t number, Time created) const noexcept;

  // functions.cpp: durable functions, which are told what has ended and say what follows
  void take(AddExecutor&& added, Time) { executors_.push_back(added.executor); }
  void take(exec::Decided&& decided, Time now);
  void take_function_starts();
  bool advance_functions(Time now);
  void announce_functions();
  exec::News news_of(core::Run& run, const core::Item& own);
  Payload readable(const Payload& payload) const;
  bool perform(core::Run& run, exec::Command& command, Time now);

  // children.cpp: attempts that go on as runs of their own
  void take(HandOver&& over, Time now);
  bool take(Allow&& allow, Time now);
  void retry_hand_overs(Time now);
  void want_children();
  bool hand_over(HandOver& over, Time now);
  void hand_over_to(core::Run& child, const HandOver& over, Time now);
  void record_hand_over(const HandOver& over, const RunId& child, bool reopens, Time now);
  std::expected<void, Error> begin_again(core::Run& child, Time now);
  bool has_children_to_settle() const noexcept;
  bool settle_children(Time now);
  bool tell_parent(std::uint64_t child, Time now);
  void tell(core::Run& parent, const ParentPlace& place, core::Run& child, Time now);
  void end_attempt(const event::AttemptId& attempt, const core::Run& child, Time now);
  bool call_back(const core::Recall& recall, Time now);
  bool are_children_known(const core::Run& run);
  void allow_children(const core::Run& run, bool resumes, Time now);

  // reports.cpp: attempts whose work was accepted elsewhere, and what is reported about them
  void take(exec::Accepted&& accepted, Time now);
  bool take(Reported&& reported, Time now);
  bool take_judged(Ended& ended, Time now);
  bool take_early(const exec::Outcome& outcome, Time now);
  void judge(const event::AttemptId& id, std::string body, std::function<void(exec::ReportTaken)> answer, Time now);
  void judge_early(const event::AttemptId& id, Time now);
  void listen_again(const core::Run& run);
  void answer_reports(exec::ReportTaken taken);

  // commit.cpp
  Batch& new_batch();
  void write_run(core::Run& run, Batch& batch, Time now);
  void add_notice(const core::Run& run, Batch& batch);
  void write_image(core::Run& run, Batch& batch, Time due);
  void write_part(core::Run& run, Batch& batch);
  std::optional<Time> park_until(const core::Run& run, Time now) const;
  void shorten_journal(Batch& batch);
  void add_orders(Batch& batch);
  exec::Job job_of(const core::Start& start);
  void add_context(exec::Job& job, const core::Run& run);
  void put_imaged_runs(Batch& batch);
  void prepare(const core::Prepare& prepare, Time now);
  void count_items(const core::Prepare& prepare, Time now);
  void give_up(const Error& error);
  void release(Batch& batch, Time now);
  void let_go(Batch& batch);
  void answer_ended(core::Run& run, Batch& batch);
  void account(core::Run& run);
  bool memory_is_short() const noexcept { return resident_bytes_ > settings_.memory; }
  // Runs that wait for others must not keep them from coming in.
  bool has_room_to_load() const noexcept { return resident_bytes_ - waiting_bytes_ <= settings_.memory / 4 * 3; }
  void forget(core::Run& run);

  // recovery.cpp
  store::Result<void> replay_journal(Time now);
  void take_open_runs(const store::Result<Rows>& rows, Time now);
  void take_due_runs(const ReadRequest::DueRuns& asked, const ReadAnswer& answer, Time now);
  std::optional<ReadRequest::DueRuns> due_runs_to_read(Time now);
  core::Run* revive(const store::StoredRun& row);
  void take_in(core::Run& run, Time now);
  Time earliest_due_outstanding() const noexcept;
  Time parked_after() const noexcept;
  void remove_expired(const std::vector<std::uint64_t>& expired, Time now);

  // reading.cpp: what has to be read, and who waits for it
  template <class T>
  using Looked = std::optional<store::Result<T>>;  // std::nullopt: it has to be read first, and is asked for
  struct Loaded {
    core::Run* run = nullptr;  // nullptr: there is no such run
    bool fresh = false;        // it was not in memory, and is not live
  };
  Looked<Loaded> load(const RunId& id);
  void unload(const Loaded& loaded);  // again, unless something happened to it
  void adopt(core::Run& run, Time now);
  Looked<std::optional<RunId>> id_of_key(const std::string& key);
  bool must_wait_behind_others(const Input& input) const;
  void put_aside(Input&& input);
  void refuse_finds(const Error& error);
  void try_waiting_again(Time now);
  void reading_failed(const Error& why, Time now);
  const ReadRequest* begin_look_ups(Time now);
  const ReadRequest* begin_listing(Time now);
  void end_look_ups(ReadAnswer&& answer, Time now);
  void end_listing(ReadAnswer&& answer, Time now);
  void finish_find(Find&& find, const store::Result<Rows>& rows);
  void left_memory(const core::Run& run);
  void removed(std::span<const std::uint64_t> runs);

  store::Store& store_;
  Executors executors_;
  LoopSettings settings_;
  core::Core core_;
  std::uint64_t secret_;
  std::uint32_t slot_;
  Observer* observer_ = nullptr;

  std::uint64_t next_run_ = 1;
  std::uint64_t next_commit_ = 1;
  std::uint64_t open_ = 0;
  std::size_t resident_bytes_ = 0;
  std::size_t waiting_bytes_ = 0;  // of those: runs that wait for other runs
  bool starting_ = true;
  Time timers_held_until_ = 0;

  // what goes into the next batch besides the runs that were touched
  store::Commit filling_;  // keys, payloads, plans and removals
  std::vector<Batch::Answer> answers_;
  std::vector<bool> stored_plans_;
  std::string frame_;  // memory that is used again

  std::deque<std::unique_ptr<Batch>> outstanding_;  // the first one is the next to become durable
  std::vector<std::unique_ptr<Batch>> spare_;
  bool writing_ = false;
  std::optional<Error> trouble_;       // with writing
  Time began_ = 0;  // when this engine took the store
  std::optional<Error> read_trouble_;  // with reading
  Time retry_at_ = 0;                  // INT64_MAX: never, it does not pass
  Duration retry_delay_{0};

  YoungKeys young_keys_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<AskReply>> waiting_for_end_;

  OutputsCache outputs_;
  Journal journal_;
  Retention retention_;

  bool loading_ = true;
  std::uint64_t open_cursor_ = 0;
  store::DueCursor due_cursor_;
  std::optional<Time> next_due_;  // of the parked runs; not exact: may be too early
  Time read_again_ = 0;           // the store could not be read: not before this

  LookUps look_ups_;
  std::deque<Input> waiting_;  // in the order in which they came
  std::unordered_set<std::uint64_t> waiting_runs_;
  bool tries_again_ = false;  // something in there could not be read
  std::deque<Find> finds_;
  std::optional<Find> finding_;  // it is being read
  struct OnTheWay {
    bool is_reading = false;
    ReadRequest request;
  };
  OnTheWay looking_up_;
  OnTheWay listing_;
  bool is_spoiled_ = false;            // the store had trouble while there were look-ups
  Time parked_meanwhile_ = INT64_MAX;  // the earliest due time of what was parked while due runs are being read
  bool was_told_ = false;              // what was read since the last turn
  // What happened to runs while lists are being read: they may be in the list as they were before.
  MeanwhileRuns meanwhile_;

  std::vector<core::Prepare> uncounted_;  // lists that could not be read
  struct Unwritten {
    std::uint64_t commit;
    std::string body;
  };
  std::map<std::string, Unwritten, std::less<>> unwritten_;  // what functions are told before the store has it, by hash
  std::deque<HandOver> hand_overs_;       // that wait for the store
  using AttemptKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  static AttemptKey key_of(const event::AttemptId& id) { return {id.run, id.step, id.item, id.token}; }
  static constexpr std::size_t early_max = 10'000;
  std::map<AttemptKey, std::string> early_;  // reports that came before the work itself was accepted
  // Reports whose meaning the executor finds out, and who waits for it.
  std::map<AttemptKey, std::vector<std::function<void(exec::ReportTaken)>>> judging_;
  bool is_held_back_ = false;  // the next batch waits for a run that could not be read
  std::uint64_t committed_ = 0;
  std::uint64_t committed_bytes_ = 0;
};

// Has this commit happened, of whose append nobody knows? The store is opened again for this.
store::Result<bool> is_written(store::Store& store, const store::Commit& commit);
// Writes one commit. With `verify` the store is opened again first, and what is already there is not written twice.
store::Result<void> write_commit(store::Store& store, const store::Commit& commit, bool verify);

}  // namespace reprise::runtime
