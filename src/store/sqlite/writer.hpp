// The one connection that writes: it turns a commit into one transaction, and makes the checkpoints.
//
// It knows the numbers of the last commit (Counters) so that no commit has to look for them; they are written with it.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "store/sqlite/due_window.hpp"
#include "store/sqlite/run_list.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/wal_preallocation.hpp"
#include "store/store.hpp"

namespace reprise::store::sqlite {

// Parked runs whose due times agree but for these bits share lists: 4.6 minutes. Shorter spans would make each commit write more
// pages, longer ones would make reading the next due runs look at more entries.
inline constexpr Time due_span_mask = (Time{1} << 38U) - 1;

struct WriterSettings {
  std::string path;
  std::string vfs;                     // SQLite's own when empty
  std::uint32_t checkpoint_pages = 0;  // how long the WAL grows before its pages are copied into the file
  std::span<const SchemaStep> steps;
};

struct Counters {
  std::uint64_t last_commit = 0;
  std::uint64_t last_run = 0;
  std::uint64_t cut = 0;
  std::uint64_t open_runs = 0;
  std::uint64_t parked_runs = 0;
  std::uint64_t ended_runs = 0;

  bool operator==(const Counters&) const = default;
};

class Writer {
 public:
  static Result<Writer> open(const WriterSettings& settings, Access access);

  // All or nothing. After any error but `invalid` this writer is of no more use.
  Result<void> append(const Commit& commit, DueWindow& window);

  // Nothing is brought into the file when this ends, and nothing beside it is removed: other files may stand there by now.
  void leave_files_alone();

  Connection& connection() noexcept { return connection_; }  // to read from, while nothing is written
  const Counters& counters() const noexcept { return saved_; }
  std::uint64_t secret() const noexcept { return secret_; }  // 0: none yet
  std::uint32_t slot() const noexcept { return static_cast<std::uint32_t>(slot_); }
  Result<void> set_identity(std::uint64_t secret, std::uint32_t slot);

 private:
  // A table of lists is cleared from its front: an entry that no longer holds never holds again, so this only moves on.
  struct Front {
    std::int64_t slot = -1;
    std::size_t entry = 0;
  };

  void prepare();
  Result<void> load();

  // Each is true when it worked; if not, the connection has the error.
  bool write(const Commit& commit);
  bool finish(DueWindow& window);
  bool write_parts(const Commit& commit);
  bool write_image(const Commit& commit, const Image& image);
  bool update_run(const Commit& commit, const Image& image);
  bool write_due_lists();
  bool write_ended_list(std::uint64_t commit);
  bool remove_run(std::uint64_t run);
  bool cut_journal(std::uint64_t cut);
  bool write_counters(bool has_frame);
  bool clear_due_lists(std::size_t entries);
  bool clear_ended_lists(std::size_t entries);
  template <class Holds>
  bool clear_lists(Statement& first, Statement& erase, Front& front, std::size_t entries, const Holds& holds);

  Connection connection_;
  std::unique_ptr<WalPreallocation> ground_;  // after the connection: it is of no use without
  Counters saved_;                            // what is committed
  Counters current_;                          // what the transaction in progress will make of it
  std::uint64_t secret_ = 0;
  std::uint64_t slot_ = 0;
  std::uint64_t first_frame_ = 0;  // no frame is older
  std::uint64_t next_first_frame_ = 0;
  std::vector<DueCursor> parked_;
  std::vector<DueCursor> ended_;
  std::size_t moved_on_ = 0;  // runs that left a due time in this commit
  Front due_front_, ended_front_;
  std::vector<DueCursor> list_;
  std::string list_bytes_;
  std::string key_;

  Statement begin_, commit_, rollback_, set_meta_;
  Statement insert_frame_, delete_frames_;
  Statement insert_run_, run_before_, update_run_, insert_history_, delete_run_, delete_history_;
  Statement insert_key_, delete_key_;
  Statement insert_payload_, insert_payload_ref_, delete_payloads_, delete_payload_refs_;
  Statement insert_plan_;
  Statement last_due_slot_, insert_due_list_, first_due_list_, delete_due_list_;
  Statement insert_ended_list_, first_ended_list_, delete_ended_list_;
};

}  // namespace reprise::store::sqlite
