#include "exec/document/file_reader.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "text/duration.hpp"

namespace reprise::exec {

// What the threads share. They hold on to it, so that one that comes back late finds its place still there.
class FileReader::Threads : public std::enable_shared_from_this<Threads> {
 public:
  Threads(FileReader& reader, FileReaderSettings settings)
      : reader_{&reader}, living_{&reader}, settings_{std::move(settings)} {}

  void add(const Key& key) {
    const std::lock_guard lock{mutex_};
    queue_.push_back(key);
    if (idle_ >= queue_.size() || count_ >= settings_.threads_max) return wake_.notify_one();
    try {
      std::thread{[self = shared_from_this()] { self->run(); }}.detach();
      ++count_;
    } catch (const std::system_error&) {
      wake_.notify_one();  // too many threads on this machine: those that are there have to do
    }
  }

  // Returns when the reader is not in use any more.
  void leave() {
    {
      const std::lock_guard life{life_};
      living_ = nullptr;
    }
    const std::lock_guard lock{mutex_};
    reader_ = nullptr;
    queue_.clear();
    wake_.notify_all();
  }

  // For what was left with the queue, which may outlive the reader.
  template <class Use>
  void with_reader(const Use& use) {
    const std::lock_guard life{life_};
    if (living_ != nullptr) use(*living_);
  }

 private:
  FileContent read(const Key& key) const {
    try {
      return settings_.read(key.first, key.second);
    } catch (const std::exception& problem) {  // a list of half a gigabyte, and no memory for it
      return std::unexpected{FileProblem{"cannot read " + key.first + ": " + problem.what(), true}};
    }
  }

  void run() {
    std::unique_lock lock{mutex_};
    while (true) {
      ++idle_;
      wake_.wait(lock, [&] { return reader_ == nullptr || !queue_.empty(); });
      --idle_;
      if (reader_ == nullptr) return;
      const Key key = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      FileContent content = read(key);
      lock.lock();
      if (reader_ == nullptr) return;
      reader_->serial_.post([self = shared_from_this(), key, content = std::move(content)]() noexcept {
        self->with_reader([&](FileReader& reader) { reader.ended(key, content); });
      });
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Key> queue_;
  std::size_t count_ = 0;
  std::size_t idle_ = 0;
  FileReader* reader_;         // nullptr: it is gone
  std::recursive_mutex life_;  // an answer may ask for the next file; taken before mutex_
  FileReader* living_;         // guarded by life_; the same
  const FileReaderSettings settings_;
};

FileReader::FileReader(SerialQueue& queue, FileReaderSettings settings)
    : serial_{queue}, patience_{settings.patience}, threads_{std::make_shared<Threads>(*this, std::move(settings))} {}

FileReader::~FileReader() { threads_->leave(); }

void FileReader::read(const std::string& path, std::size_t bytes_max, std::optional<Env::TimePoint> deadline,
                      Done done) {
  const Env::TimePoint now = system_env().now();
  const Env::TimePoint due = std::min(now + patience_, deadline.value_or(Env::TimePoint::max()));
  auto request = std::make_shared<Request>(Request{
      std::move(done), std::chrono::duration_cast<Duration>(std::max(due - now, Env::TimePoint::duration{0})), path});
  request->place = deadlines_.emplace(due, request);
  wait_until(due);
  const Key key{path, bytes_max};
  const auto [found, is_new] = readings_.try_emplace(key);
  Readings& readings = found->second;
  std::erase_if(readings.next, [](const auto& each) { return !each->done; });
  readings.next.push_back(std::move(request));
  if (is_new) begin(key, readings);
}

void FileReader::begin(const Key& key, Readings& readings) {
  readings.current = std::exchange(readings.next, {});
  threads_->add(key);
}

void FileReader::ended(const Key& key, const FileContent& content) {
  const auto found = readings_.find(key);
  const auto requests = std::exchange(found->second.current, {});
  std::erase_if(found->second.next, [](const auto& each) { return !each->done; });
  if (found->second.next.empty()) {
    readings_.erase(found);
  } else {
    begin(key, found->second);
  }
  for (const auto& request : requests) {
    if (request->done) answer(*request, content);
  }
}

void FileReader::answer(Request& request, FileContent content) {
  deadlines_.erase(request.place);
  std::exchange(request.done, {})(std::move(content));
}

void FileReader::wait_until(Env::TimePoint due) {
  if (next_look_ && *next_look_ <= due) return;
  next_look_ = due;
  serial_.post_at(due, [threads = threads_]() noexcept {
    threads->with_reader([](FileReader& reader) { reader.give_up_late_ones(); });
  });
}

void FileReader::give_up_late_ones() {
  next_look_.reset();
  const Env::TimePoint now = system_env().now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const std::shared_ptr<Request> request = deadlines_.begin()->second;
    answer(*request, std::unexpected{FileProblem{"cannot read " + request->path + ": no answer within " +
                                                     text::rough_duration(request->patience),
                                                 true}});
  }
  if (!deadlines_.empty()) wait_until(deadlines_.begin()->first);
}

}  // namespace reprise::exec
