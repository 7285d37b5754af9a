// Reading the files that documents name: regular ones whole, nothing else, and one that hangs holds up nobody but itself.
#include "exec/document/file_reader.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <latch>
#include <memory>
#include <vector>

#include "support/run_program.hpp"

namespace reprise::exec {
namespace {

using namespace std::chrono_literals;

// A mount that does not answer until it is told to: paths that begin with /dead.
class DeadMount {
 public:
  ~DeadMount() { revive(); }

  ReadFile reading() {
    return [reads = reads_, revived = revived_](const std::string& path, std::size_t) -> FileContent {
      ++*reads;
      if (path.starts_with("/dead")) revived.wait();
      return "content of " + path;
    };
  }
  void revive() {
    if (!std::exchange(is_revived_, true)) promise_.set_value();
  }
  int reads() const { return reads_->load(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> revived_ = promise_.get_future().share();
  bool is_revived_ = false;
  std::shared_ptr<std::atomic<int>> reads_ = std::make_shared<std::atomic<int>>(0);  // threads of readers outlive this
};

// What a read brought, or its message; asked for on the serial queue's thread as everything there.
std::future<std::string> read(SerialQueue& queue, FileReader& files, const std::string& path,
                              std::optional<Env::TimePoint> deadline = {}) {
  auto answer = std::make_shared<std::promise<std::string>>();
  auto future = answer->get_future();
  queue.post([&files, path, deadline, answer]() noexcept {
    files.read(path, 100, deadline,
               [answer](FileContent content) { answer->set_value(content ? *content : content.error().message); });
  });
  return future;
}

TEST(ExecFileReader, AFileThatDoesNotAnswerHoldsUpNobodyElse) {
  DeadMount mount;
  SerialQueue queue;
  FileReader files{queue, {.read = mount.reading()}};
  auto dead = read(queue, files, "/dead/list");
  for (int number = 0; number < 50; ++number) {
    const std::string path = "/alive/" + std::to_string(number);
    EXPECT_EQ(read(queue, files, path).get(), "content of " + path);
  }
  EXPECT_NE(dead.wait_for(0s), std::future_status::ready);
  mount.revive();
  EXPECT_EQ(dead.get(), "content of /dead/list");
}

TEST(ExecFileReader, WhoWaitsTooLongIsToldSo) {
  DeadMount mount;
  SerialQueue queue;
  FileReader files{queue, {.patience = 20ms, .read = mount.reading()}};
  EXPECT_EQ(read(queue, files, "/dead/list").get(), "cannot read /dead/list: no answer within 20ms");
  EXPECT_EQ(read(queue, files, "/alive").get(), "content of /alive");
}

TEST(ExecFileReader, TheDeadlineOfAnAttemptCountsWhenItIsEarlier) {
  DeadMount mount;
  SerialQueue queue;
  FileReader files{queue, {.patience = 1h, .read = mount.reading()}};
  auto late = read(queue, files, "/dead/list", system_env().now() + 10ms);
  EXPECT_TRUE(late.get().starts_with("cannot read /dead/list: no answer within "));
}

TEST(ExecFileReader, AFileThatHangsKeepsOneThreadHoweverOftenItIsAskedFor) {
  DeadMount mount;
  SerialQueue queue;
  FileReader files{queue, {.threads_max = 2, .patience = 10ms, .read = mount.reading()}};
  for (int attempt = 0; attempt < 5; ++attempt) {
    EXPECT_TRUE(read(queue, files, "/dead/list").get().contains("no answer"));
  }
  EXPECT_EQ(mount.reads(), 1);
  EXPECT_EQ(read(queue, files, "/alive").get(), "content of /alive");
}

TEST(ExecFileReader, WhoAsksDuringAReadGetsOneThatBeginsLater) {
  std::atomic<int> version = 1;
  std::promise<void> began;
  std::promise<void> go_on;
  auto may_go_on = go_on.get_future().share();
  std::atomic<int> reads = 0;
  SerialQueue queue;
  FileReader files{queue, {.read = [&](const std::string&, std::size_t) -> FileContent {
                     const int seen = version.load();
                     if (reads++ == 0) {
                       began.set_value();
                       may_go_on.wait();
                     }
                     return std::to_string(seen);
                   }}};
  auto before = read(queue, files, "/list");
  began.get_future().wait();
  version = 2;
  auto after = read(queue, files, "/list");
  auto also_after = read(queue, files, "/list");
  queue.post([&]() noexcept { go_on.set_value(); });
  EXPECT_EQ(before.get(), "1");
  EXPECT_EQ(after.get(), "2");
  EXPECT_EQ(also_after.get(), "2");
  EXPECT_EQ(reads, 2);
}

TEST(ExecFileReader, AThreadThatHangsIsLeftBehind) {
  DeadMount mount;
  SerialQueue queue;
  {
    FileReader files{queue, {.read = mount.reading()}};
    queue.post([&]() noexcept { files.read("/dead/list", 100, {}, [](const FileContent&) {}); });
    while (mount.reads() == 0) std::this_thread::yield();
    queue.finish();
  }
  SUCCEED() << "neither the queue nor the reader waited for it";
}

// ---- the files themselves ----------------------------------------

std::string said(const FileContent& content) { return content ? *content : content.error().message; }

TEST(ExecReadFile, OnlyRegularFilesOfABoundedSize) {
  const testing_support::TemporaryDirectory folder;
  const std::string regular = folder.path() + "/list";
  std::ofstream{regular} << "a\nb\n";
  EXPECT_EQ(said(read_regular_file(regular, 4)), "a\nb\n");
  EXPECT_TRUE(said(read_regular_file(regular, 3)).starts_with("cannot read " + regular + ": it has more than "));
  EXPECT_EQ(said(read_regular_file(folder.path() + "/none", 4)),
            "cannot read " + folder.path() + "/none: No such file or directory");
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(said(read_regular_file(pipe, 4)),
            "cannot read " + pipe + ": it is a pipe, and a document can name regular files only");
  EXPECT_EQ(said(read_regular_file("/dev/zero", 4)),
            "cannot read /dev/zero: it is a device, and a document can name regular files only");
  EXPECT_EQ(said(read_regular_file(folder.path(), 4)),
            "cannot read " + folder.path() + ": it is a folder, and a document can name regular files only");
}

}  // namespace
}  // namespace reprise::exec
