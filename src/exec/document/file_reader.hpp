// Reads files that documents name without ever holding up the queue: a file that does not answer (a dead mount) costs the attempt that
// waits for it its time, and nobody else anything.
//
//   files.read(path, list_file_bytes_max, deadline, [weak](FileContent content) { … });
//
// Each path is read by one thread at a time: who asks meanwhile gets the read that begins after it. So a file that hangs keeps one thread,
// however often it is asked for. A thread that never comes back is left behind when the reader is destroyed.
// Bounds: threads_max threads; `patience` for each read, whatever its deadline. When all threads hang, further reads end by their patience.
// Thread safety: read() and `done` on the serial queue's thread only. `done` comes once, later, unless the queue finishes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <reprise/env.hpp>

#include "exec/document/read_file.hpp"
#include "exec/document/serial_queue.hpp"

namespace reprise::exec {

struct FileReaderSettings {
  std::size_t threads_max = 32;
  Duration patience = std::chrono::seconds{60};
  ReadFile read = read_regular_file;  // another one for tests
};

class FileReader {
 public:
  using Done = std::function<void(FileContent)>;

  FileReader(SerialQueue& queue, FileReaderSettings settings);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  // No `deadline`: the patience alone.
  void read(const std::string& path, std::size_t bytes_max, std::optional<Env::TimePoint> deadline, Done done);

 private:
  class Threads;
  using Key = std::pair<std::string, std::size_t>;  // the path, and how much of it
  struct Request;
  using Deadlines = std::multimap<Env::TimePoint, std::shared_ptr<Request>>;
  struct Request {
    Done done;  // empty: it has been answered
    Duration patience{0};
    std::string path;
    Deadlines::iterator place = {};
  };
  struct Readings {
    std::vector<std::shared_ptr<Request>> current;  // of the read that goes on
    std::vector<std::shared_ptr<Request>> next;     // came after it had begun
  };

  void begin(const Key& key, Readings& readings);
  void ended(const Key& key, const FileContent& content);
  void answer(Request& request, FileContent content);
  void wait_until(Env::TimePoint due);
  void give_up_late_ones();

  SerialQueue& serial_;
  Duration patience_;
  std::map<Key, Readings> readings_;
  Deadlines deadlines_;
  std::optional<Env::TimePoint> next_look_;
  std::shared_ptr<Threads> threads_;
};

}  // namespace reprise::exec
