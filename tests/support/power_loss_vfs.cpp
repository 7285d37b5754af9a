#include "support/power_loss_vfs.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

namespace reprise::testing_support {
namespace {

constexpr std::size_t sector_bytes = 512;

struct File {
  std::string written;             // what programs see
  std::string synced;              // what survives
  std::set<std::size_t> unsynced;  // sectors that differ, by number
  bool name_synced = false;        // a file that was never synced is not in its folder after a power loss

  int shared_locks = 0;
  bool reserved = false, exclusive = false;
  std::vector<std::unique_ptr<char[]>> memory;  // the WAL's index
  int memory_shared[SQLITE_SHM_NLOCK] = {};
  bool memory_exclusive[SQLITE_SHM_NLOCK] = {};
};

}  // namespace

struct PowerLossDisk::Disk {
  std::string name;
  sqlite3_vfs vfs{};
  sqlite3_vfs* system = nullptr;
  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<File>> files;
  std::uint64_t calls = 0;
  std::uint64_t fails_at = 0;
  bool off = false;
  std::uint64_t space = UINT64_MAX;

  bool count_call() {  // false: there is no power
    ++calls;
    if (fails_at != 0 && calls >= fails_at) off = true;
    return !off;
  }
  std::uint64_t used() const {
    std::uint64_t bytes = 0;
    for (const auto& [path, file] : files) bytes += file->written.size();
    return bytes;
  }
};

namespace {

using Disk = PowerLossDisk::Disk;

struct Handle {
  sqlite3_file base;  // first, so that SQLite's pointer is also ours
  Disk* disk;
  std::shared_ptr<File>* file;
  int lock;
  unsigned memory_shared;  // a bit for each lock of the WAL's index that this connection holds
  unsigned memory_exclusive;
};

Handle& handle_of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
Disk& disk_of(sqlite3_vfs* vfs) { return *static_cast<Disk*>(vfs->pAppData); }

void mark(File& file, std::size_t from, std::size_t to) {
  for (std::size_t sector = from / sector_bytes; sector * sector_bytes < to; ++sector) file.unsynced.insert(sector);
}

int unlock(sqlite3_file* file, int level);
int unmap_memory(sqlite3_file* file, int remove);

int close_file(sqlite3_file* file) {
  unlock(file, SQLITE_LOCK_NONE);
  unmap_memory(file, 0);
  delete handle_of(file).file;
  return SQLITE_OK;
}

int read_file(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (handle.disk->off) return SQLITE_IOERR_READ;
  const std::string& bytes = (*handle.file)->written;
  const auto from = static_cast<std::size_t>(offset);
  const auto wanted = static_cast<std::size_t>(amount);
  const std::size_t there = from < bytes.size() ? std::min(wanted, bytes.size() - from) : 0;
  std::memcpy(out, bytes.data() + std::min(from, bytes.size()), there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(out) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file* file, const void* data, int amount, sqlite3_int64 offset) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (!handle.disk->count_call()) return SQLITE_IOERR_WRITE;
  File& target = **handle.file;
  const auto from = static_cast<std::size_t>(offset);
  const std::size_t end = from + static_cast<std::size_t>(amount);
  if (end > target.written.size()) {
    if (handle.disk->used() + (end - target.written.size()) > handle.disk->space) return SQLITE_FULL;
    mark(target, target.written.size(), end);
    target.written.resize(end);
  }
  std::memcpy(target.written.data() + from, data, static_cast<std::size_t>(amount));
  mark(target, from, end);
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (!handle.disk->count_call()) return SQLITE_IOERR_TRUNCATE;
  File& target = **handle.file;
  const auto end = static_cast<std::size_t>(size);
  mark(target, std::min(end, target.written.size()), std::max(end, target.written.size()));
  target.written.resize(end);
  return SQLITE_OK;
}

int sync_file(sqlite3_file* file, int) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (!handle.disk->count_call()) return SQLITE_IOERR_FSYNC;
  File& target = **handle.file;
  target.synced.resize(target.written.size());
  for (const std::size_t sector : target.unsynced) {
    const std::size_t from = sector * sector_bytes;
    if (from >= target.written.size()) break;
    std::memcpy(target.synced.data() + from, target.written.data() + from,
                std::min(sector_bytes, target.written.size() - from));
  }
  target.unsynced.clear();
  target.name_synced = true;
  return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  *size = static_cast<sqlite3_int64>((*handle.file)->written.size());
  return handle.disk->off ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

int lock_file(sqlite3_file* file, int level) {
  Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (handle.disk->off) return SQLITE_IOERR_LOCK;
  File& target = **handle.file;
  if (handle.lock >= level) return SQLITE_OK;
  if (handle.lock == SQLITE_LOCK_NONE) {
    if (target.exclusive) return SQLITE_BUSY;
    ++target.shared_locks;
    handle.lock = SQLITE_LOCK_SHARED;
  }
  if (level >= SQLITE_LOCK_RESERVED && handle.lock < SQLITE_LOCK_RESERVED) {
    if (target.reserved) return SQLITE_BUSY;
    target.reserved = true;
    handle.lock = SQLITE_LOCK_RESERVED;
  }
  if (level == SQLITE_LOCK_EXCLUSIVE) {
    if (target.shared_locks > 1) return SQLITE_BUSY;
    target.exclusive = true;
    handle.lock = SQLITE_LOCK_EXCLUSIVE;
  }
  return SQLITE_OK;
}

int unlock(sqlite3_file* file, int level) {
  Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  File& target = **handle.file;
  if (handle.lock <= level) return SQLITE_OK;
  if (handle.lock == SQLITE_LOCK_EXCLUSIVE) target.exclusive = false;
  if (handle.lock >= SQLITE_LOCK_RESERVED) target.reserved = false;
  if (level == SQLITE_LOCK_NONE) --target.shared_locks;
  handle.lock = level;
  return SQLITE_OK;
}

int check_reserved(sqlite3_file* file, int* out) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  *out = (*handle.file)->reserved ? 1 : 0;
  return SQLITE_OK;
}

int file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int device_characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int map_memory(sqlite3_file* file, int region, int bytes, int extend, void volatile** out) {
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  *out = nullptr;
  if (handle.disk->off) return SQLITE_IOERR_SHMMAP;
  auto& memory = (*handle.file)->memory;
  const auto index = static_cast<std::size_t>(region);
  if (index >= memory.size() && extend == 0) return SQLITE_OK;
  while (memory.size() <= index) memory.push_back(std::make_unique<char[]>(static_cast<std::size_t>(bytes)));
  *out = memory[index].get();
  return SQLITE_OK;
}

int lock_memory(sqlite3_file* file, int offset, int count, int flags) {
  Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  File& target = **handle.file;
  for (int slot = offset; slot < offset + count && (flags & SQLITE_SHM_LOCK) != 0; ++slot) {
    const bool mine = (handle.memory_shared >> static_cast<unsigned>(slot) & 1U) != 0;
    const bool others_share = target.memory_shared[slot] > (mine ? 1 : 0);
    if (target.memory_exclusive[slot] || ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && others_share)) return SQLITE_BUSY;
  }
  for (int slot = offset; slot < offset + count; ++slot) {
    const unsigned bit = 1U << static_cast<unsigned>(slot);
    const bool take = (flags & SQLITE_SHM_LOCK) != 0;
    if ((flags & SQLITE_SHM_SHARED) != 0 && ((handle.memory_shared & bit) != 0) != take) {
      handle.memory_shared ^= bit;
      target.memory_shared[slot] += take ? 1 : -1;
    }
    if ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && ((handle.memory_exclusive & bit) != 0) != take) {
      handle.memory_exclusive ^= bit;
      target.memory_exclusive[slot] = take;
    }
  }
  return SQLITE_OK;
}

void memory_barrier(sqlite3_file* file) { const std::scoped_lock lock{handle_of(file).disk->mutex}; }

int unmap_memory(sqlite3_file* file, int remove) {
  lock_memory(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED);
  lock_memory(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
  const Handle& handle = handle_of(file);
  const std::scoped_lock lock{handle.disk->mutex};
  if (remove != 0) (*handle.file)->memory.clear();
  return SQLITE_OK;
}

constexpr sqlite3_io_methods methods = {2,
                                        close_file,
                                        read_file,
                                        write_file,
                                        truncate_file,
                                        sync_file,
                                        file_size,
                                        lock_file,
                                        unlock,
                                        check_reserved,
                                        file_control,
                                        sector_size,
                                        device_characteristics,
                                        map_memory,
                                        lock_memory,
                                        memory_barrier,
                                        unmap_memory,
                                        nullptr,
                                        nullptr};

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* out, int flags, int* out_flags) {
  Disk& disk = disk_of(vfs);
  const std::scoped_lock lock{disk.mutex};
  out->pMethods = nullptr;
  std::shared_ptr<File> file;
  if (name == nullptr) {
    file = std::make_shared<File>();
  } else if (const auto found = disk.files.find(name); found != disk.files.end()) {
    file = found->second;
  } else if ((flags & SQLITE_OPEN_CREATE) != 0) {
    if (!disk.count_call()) return SQLITE_CANTOPEN;
    file = disk.files[name] = std::make_shared<File>();
  }
  if (!file || disk.off) return SQLITE_CANTOPEN;
  Handle& handle = handle_of(out);
  handle = {{&methods}, &disk, new std::shared_ptr<File>{std::move(file)}, SQLITE_LOCK_NONE, 0, 0};
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs* vfs, const char* name, int) {
  Disk& disk = disk_of(vfs);
  const std::scoped_lock lock{disk.mutex};
  if (!disk.count_call()) return SQLITE_IOERR_DELETE;
  return disk.files.erase(name) > 0 ? SQLITE_OK : SQLITE_IOERR_DELETE_NOENT;
}

int access_file(sqlite3_vfs* vfs, const char* name, int, int* out) {
  Disk& disk = disk_of(vfs);
  const std::scoped_lock lock{disk.mutex};
  const auto found = disk.files.find(name);
  *out = found != disk.files.end() && !found->second->written.empty() ? 1 : 0;
  return disk.off ? SQLITE_IOERR_ACCESS : SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs* vfs, int size, char* out) {
  sqlite3_vfs* system = disk_of(vfs).system;
  return system->xRandomness(system, size, out);
}
int sleep_us(sqlite3_vfs* vfs, int amount) {
  sqlite3_vfs* system = disk_of(vfs).system;
  return system->xSleep(system, amount);
}
int current_time(sqlite3_vfs* vfs, sqlite3_int64* out) {
  sqlite3_vfs* system = disk_of(vfs).system;
  return system->xCurrentTimeInt64(system, out);
}
int last_error(sqlite3_vfs*, int, char*) { return 0; }

// What the sectors of a file are when power comes back.
void settle(File& file, PowerLoss loss, std::mt19937_64& random) {
  const bool torn = loss == PowerLoss::torn;
  if (torn && random() % 2 == 0) file.synced.resize(file.written.size());
  for (const std::size_t sector : file.unsynced) {
    const std::size_t from = sector * sector_bytes;
    const std::size_t end = std::min({from + sector_bytes, file.synced.size(), file.written.size()});
    if (torn && from < end && random() % 2 == 0)
      std::copy_n(file.written.data() + from, end - from, file.synced.data() + from);
  }
  file.written = file.synced;
  file.unsynced.clear();
  file.memory.clear();
}

}  // namespace

PowerLossDisk::PowerLossDisk(const std::string& vfs_name) : disk_{std::make_unique<Disk>()} {
  disk_->name = vfs_name;
  disk_->system = sqlite3_vfs_find(nullptr);
  sqlite3_vfs& vfs = disk_->vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = sizeof(Handle);
  vfs.mxPathname = 1024;
  vfs.zName = disk_->name.c_str();
  vfs.pAppData = disk_.get();
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = access_file;
  vfs.xFullPathname = full_path;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep_us;
  vfs.xGetLastError = last_error;
  vfs.xCurrentTimeInt64 = current_time;
  if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK) throw std::runtime_error{"SQLite refused " + vfs_name};
}

PowerLossDisk::~PowerLossDisk() { sqlite3_vfs_unregister(&disk_->vfs); }

const std::string& PowerLossDisk::vfs() const noexcept { return disk_->name; }

void PowerLossDisk::fail_at_call(std::uint64_t call) {
  const std::scoped_lock lock{disk_->mutex};
  disk_->fails_at = call == 0 ? 0 : disk_->calls + call;
}

bool PowerLossDisk::power_failed() const {
  const std::scoped_lock lock{disk_->mutex};
  return disk_->off;
}

std::uint64_t PowerLossDisk::calls() const {
  const std::scoped_lock lock{disk_->mutex};
  return disk_->calls;
}

void PowerLossDisk::power_on(PowerLoss loss, std::uint64_t seed) {
  const std::scoped_lock lock{disk_->mutex};
  std::mt19937_64 random{seed};
  std::erase_if(disk_->files, [](const auto& entry) { return !entry.second->name_synced; });
  for (auto& [path, file] : disk_->files) settle(*file, loss, random);
  disk_->off = false;
  disk_->fails_at = 0;
}

void PowerLossDisk::set_space(std::uint64_t bytes) {
  const std::scoped_lock lock{disk_->mutex};
  disk_->space = bytes;
}

std::uint64_t PowerLossDisk::used() const {
  const std::scoped_lock lock{disk_->mutex};
  return disk_->used();
}

}  // namespace reprise::testing_support
