// A disk in memory that SQLite can use: it keeps what was written apart from what was synced, and can lose power or run full.
//
//   PowerLossDisk disk{"a_disk"};
//   auto store = open_sqlite_store(path, {.vfs = disk.vfs()});
//   disk.fail_at_call(17);             // power goes with the 17th write, sync, truncate, open or delete from here on
//   ...                                // until then things work; from then on nothing does
//   store = {};                        // whoever used the disk must be gone
//   disk.power_on(PowerLoss::torn, seed);
//
// Thread safety: SQLite may call it from any thread; one mutex guards it. The functions below: not during a call of SQLite's,
// except for the settings of space and failure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace reprise::testing_support {

enum class PowerLoss {
  clean,  // everything that was not synced is gone
  torn,   // of what was not synced, a random part of the 512-byte sectors has arrived
};

class PowerLossDisk {
 public:
  explicit PowerLossDisk(const std::string& vfs_name);
  PowerLossDisk(const PowerLossDisk&) = delete;
  PowerLossDisk& operator=(const PowerLossDisk&) = delete;
  ~PowerLossDisk();

  const std::string& vfs() const noexcept;

  void fail_at_call(std::uint64_t call);  // counted from now, the first is 1; 0 = never
  bool power_failed() const;
  std::uint64_t calls() const;  // that change or sync something, so far

  void power_on(PowerLoss loss, std::uint64_t seed);
  void set_space(std::uint64_t bytes);  // all files together; UINT64_MAX at first
  std::uint64_t used() const;

  struct Disk;  // what the VFS's functions work on

 private:
  std::unique_ptr<Disk> disk_;
};

}  // namespace reprise::testing_support
