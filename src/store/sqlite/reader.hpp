// A connection that is read from, with its statements; and the pool of those that wait for their next use.
//
// Readers never checkpoint, not even when they close: one connection does all the writing (docs/formats/store.md).
// Thread safety: a Reader belongs to one thread at a time; the pool may be used from any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "store/sqlite/due_window.hpp"
#include "store/store.hpp"

namespace reprise::store::sqlite {

class Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const std::string& path, const std::string& vfs);
  explicit Reader(Connection&& own);
  explicit Reader(Connection& borrowed);  // which must outlive this, and does nothing else meanwhile

  // From now on every call sees the same commit, until let_go() or the end of this reader.
  Result<void> hold();
  void let_go();

  Result<std::uint64_t> meta(std::string_view name, std::optional<std::uint64_t> if_absent = {});
  Result<std::uint64_t> last_commit();
  Result<void> read_journal(const Store::FrameReader& reader);
  Result<std::optional<StoredRun>> read_run(std::uint64_t run);
  Result<void> read_history(std::uint64_t run, const Store::ChunkReader& reader);
  Result<std::vector<StoredRun>> read_open(std::uint64_t after_run, std::size_t limit);
  Result<std::vector<StoredRun>> read_due(DueWindow& window, Time before, DueCursor after, std::size_t limit);
  Result<std::optional<Time>> next_due(DueWindow& window, DueCursor after);
  Result<std::vector<StoredRun>> find(const RunFilter& filter, std::uint64_t below_run, std::size_t limit);
  Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit);
  Result<std::optional<std::uint64_t>> run_of_key(std::string_view key);
  Result<std::optional<std::string>> read_payload(std::string_view hash);
  Result<std::vector<StoredPlan>> read_plans();

 private:
  class Snapshot;  // several statements that see the same commit

  void prepare();
  struct Chunk {
    std::uint64_t first_sequence;
    std::string events;
  };
  // What begins at `from` or later, up to a page's worth; none: there is no more.
  Result<std::vector<Chunk>> read_chunks(std::uint64_t run, std::uint64_t from);
  std::unexpected<Error> failure() const { return std::unexpected{connection_.error("read")}; }
  bool fill(DueWindow& window, DueCursor after);
  template <class Take>
  bool walk_due(DueWindow& window, Statement& select_run, Time before, DueCursor after, const Take& take);

  std::optional<Connection> own_;
  Connection& connection_;
  bool holds_ = false;  // one transaction around everything
  std::vector<DueCursor> list_;

  Statement begin_, end_, meta_, last_commit_, journal_, run_, due_run_, due_time_, inline_events_, history_, open_;
  Statement find_any_, find_by_status_, find_unparked_;
  Statement first_due_slot_, due_lists_, ended_lists_, ended_run_;
  Statement key_, payload_, plans_;
};

class ReaderPool {
 public:
  // Gives the reader back when it goes out of scope.
  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader) : pool_{&pool}, reader_{std::move(reader)} {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const noexcept { return reader_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  ReaderPool(std::string path, std::string vfs, FileId file)
      : path_{std::move(path)}, vfs_{std::move(vfs)}, file_{file} {}

  // Opens one more when all are in use, so that a callback may read, too. `store_gone` when the path leads to another file by now.
  Result<Lease> take();
  void close();  // all that wait; not while one is in use

 private:
  void give_back(std::unique_ptr<Reader> reader);

  std::string path_;
  std::string vfs_;
  FileId file_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Reader>> waiting_;
};

}  // namespace reprise::store::sqlite
