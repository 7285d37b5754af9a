// The control socket, both ends in one process: what is asked arrives, what goes wrong is answered, and nobody holds up the others.
#include "runtime/control.hpp"

#include <gtest/gtest.h>

#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/control_line.hpp"
#include "runtime/control_socket.hpp"

namespace reprise::runtime {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using base::Descriptor;

constexpr ControlLimits patient{.time_max = 60s};  // so that a busy machine fails no test
constexpr ControlLimits brief{.time_max = 50ms};
constexpr int safety_ms = 60'000;

class RuntimeControl : public testing::Test {
 protected:
  RuntimeControl() {
    std::string pattern = (fs::temp_directory_path() / "reprise-control-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
    store_ = folder_ + "/store.db";
  }
  ~RuntimeControl() override { fs::remove_all(folder_); }

  std::unique_ptr<ControlServer> serve(ControlLimits limits = patient) {
    return ControlServer::listen(
        store_,
        [this](const ControlRequest& request, const ControlServer::Answered& answered) {
          ++calls_;
          if (request.operation == "ping") return answered(ControlDone{});
          if (request.operation == "throw") throw std::runtime_error{"the disk is gone"};
          answered(std::unexpected{
              Error{ErrorCode::not_found, request.run + "|" + request.text + "|" + request.payload}});
        },
        limits);
  }

  // A client of our own, for what ask_owner() would never send.
  Descriptor connect() const { return connect_control_socket(control_socket_path(store_), safety_ms); }

  std::string folder_;
  std::string store_;
  std::atomic<int> calls_ = 0;
};

void send_all(const Descriptor& socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Everything until the other end closes; "(hangs)" when it does not.
std::string receive_all(const Descriptor& socket) {
  std::string text;
  while (true) {
    pollfd watched{socket.get(), POLLIN, 0};
    if (::poll(&watched, 1, safety_ms) <= 0) return "(hangs)";
    char bytes[4096];
    const ssize_t count = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (count <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(count));
  }
}

TEST_F(RuntimeControl, WhatIsAskedArrivesAndIsAnswered) {
  const auto server = serve();
  ASSERT_NE(server, nullptr);
  const auto done = ask_owner(store_, {.operation = "ping"}, patient);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->has_value());
  const auto refused = ask_owner(
      store_, {.operation = "signal", .run = "0191", .text = "it's \"ü\"\n", .payload = R"({"a": [1, 2]})"}, patient);
  ASSERT_TRUE(refused);
  ASSERT_FALSE(refused->has_value());
  EXPECT_EQ(refused->error().code, ErrorCode::not_found);
  EXPECT_EQ(refused->error().message, "0191|it's \"ü\"\n|{\"a\": [1, 2]}");
}

TEST_F(RuntimeControl, NobodyThereIsNoError) {
  EXPECT_FALSE(ask_owner(store_, {.operation = "ping"}));
  EXPECT_FALSE(ask_owner(folder_ + "/no/folder/store.db", {.operation = "ping"}));
  std::ofstream{store_ + ".sock"} << "a file of somebody else";
  EXPECT_FALSE(ask_owner(store_, {.operation = "ping"}));
}

TEST_F(RuntimeControl, TheSocketIsForItsUserAndGoesWithTheServer) {
  auto server = serve();
  struct stat made {};
  ASSERT_EQ(::stat((store_ + ".sock").c_str(), &made), 0);
  EXPECT_TRUE(S_ISSOCK(made.st_mode));
  EXPECT_EQ(made.st_mode & 0777U, 0600U);
  server.reset();
  EXPECT_FALSE(fs::exists(store_ + ".sock"));
  EXPECT_FALSE(ask_owner(store_, {.operation = "ping"}));
}

TEST_F(RuntimeControl, ASocketOfSomebodyElseIsNotRemoved) {
  auto server = serve();
  fs::remove(store_ + ".sock");
  std::ofstream{store_ + ".sock"} << "new";
  server.reset();
  EXPECT_TRUE(fs::exists(store_ + ".sock"));
}

TEST_F(RuntimeControl, ADeadOwnersSocketIsReplaced) {
  {
    const Descriptor dead{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (store_ + ".sock").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(fs::exists(store_ + ".sock")) << "closing leaves the file, as a kill does";
  const auto server = serve();
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
}

TEST_F(RuntimeControl, ALivingOwnersSocketIsNot) {
  const auto server = serve();
  EXPECT_EQ(ControlServer::listen(store_, [](const ControlRequest&, const ControlServer::Answered&) {}), nullptr);
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value()) << "the first one goes on";
  EXPECT_EQ(calls_, 1);
}

TEST_F(RuntimeControl, NoSocketIsMadeWhereNoneCanBe) {
  store_ = folder_ + "/no/folder/store.db";
  EXPECT_EQ(serve(), nullptr);
  store_ = folder_ + "/store.db";
  std::ofstream{store_ + ".sock"} << "a file of somebody else";
  EXPECT_EQ(serve(), nullptr);
  EXPECT_EQ(fs::file_size(store_ + ".sock"), 23U) << "it is left alone";
}

TEST_F(RuntimeControl, LongPathsHaveTheirSocketInTheTemporaryDirectory) {
  store_ = folder_ + "/" + std::string(90, 'a') + "/" + std::string(90, 'b') + ".db";
  const fs::path socket = control_socket_path(store_);
  EXPECT_EQ(socket.parent_path(), fs::temp_directory_path());
  EXPECT_LE(socket.string().size(), 107U);
  EXPECT_NE(socket, control_socket_path(store_ + "x"));
  EXPECT_EQ(socket, control_socket_path(folder_ + "/./" + std::string(90, 'a') + "/" + std::string(90, 'b') + ".db"));
  auto server = serve();
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
  server.reset();
  EXPECT_FALSE(fs::exists(socket));
}

TEST_F(RuntimeControl, GarbageIsAnsweredNotObeyed) {
  const auto server = serve();
  for (const char* line :
       {"hello\n", "\n", "[]\n", "{}\n", "{\"operation\": 1}\n", "{\"operation\": \"ping\", \"run\": {}}\n",
        "{\"operation\": \"ping\"\n", "{\"operation\": \"\xff\"}\n"}) {
    const Descriptor client = connect();
    send_all(client, line);
    const std::string answer = receive_all(client);
    EXPECT_TRUE(answer.starts_with(R"({"ok":false,"code":"invalid","message":"The request was not understood)"))
        << line << answer;
  }
  const Descriptor unfinished = connect();
  send_all(unfinished, "{\"operation\": \"ping\"}");
  ::shutdown(unfinished.get(), SHUT_WR);
  EXPECT_NE(receive_all(unfinished).find("its line has no end"), std::string::npos);
  const Descriptor silent = connect();
  ::shutdown(silent.get(), SHUT_WR);
  EXPECT_EQ(receive_all(silent), "");
  EXPECT_EQ(calls_, 0);
}

TEST_F(RuntimeControl, OneConnectionOneRequest) {
  const auto server = serve();
  const Descriptor client = connect();
  send_all(client, "{\"operation\": \"ping\", \"later\": true}\n{\"operation\": \"ping\"}\n");
  EXPECT_EQ(receive_all(client), "{\"ok\":true}\n");
  EXPECT_EQ(calls_, 1);
}

TEST_F(RuntimeControl, LinesHaveABound) {
  const auto server = serve();
  const std::string fitting =
      R"({"operation":"note","payload":")" + std::string(patient.line_bytes_max - 34, 'x') + "\"}\n";
  ASSERT_EQ(fitting.size(), patient.line_bytes_max);
  const Descriptor large = connect();
  send_all(large, fitting);
  EXPECT_GT(receive_all(large).size(), patient.line_bytes_max - 100) << "the handler sends the payload back";
  const Descriptor larger = connect();
  send_all(larger, std::string(2 * patient.line_bytes_max, 'x'));
  EXPECT_EQ(receive_all(larger),
            "{\"ok\":false,\"code\":\"invalid\",\"message\":\"The request is longer than 1048576 bytes.\"}\n");
  EXPECT_EQ(calls_, 1);
  const auto refused = ask_owner(store_, {.operation = "signal", .payload = std::string(patient.line_bytes_max, 'x')});
  EXPECT_EQ(refused.value().error().code, ErrorCode::invalid);
}

TEST_F(RuntimeControl, WhoIsSlowHoldsUpNobody) {
  const auto server = serve();
  const Descriptor silent = connect();
  const Descriptor slow = connect();
  for (const char c : std::string_view{"{\"operation\": \"ping\"}"}) {
    send_all(slow, {&c, 1});
    EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
  }
  send_all(slow, "\n");
  EXPECT_EQ(receive_all(slow), "{\"ok\":true}\n");
}

TEST_F(RuntimeControl, WhoSaysNothingIsSentAwayInTheEnd) {
  const auto server = serve(brief);
  const Descriptor silent = connect();
  send_all(silent, "{\"operation\"");
  EXPECT_EQ(receive_all(silent), "");
}

TEST_F(RuntimeControl, TooManyConnectionsWaitForTheirTurn) {
  const auto server = serve({.connections_max = 2, .time_max = 200ms});
  std::vector<Descriptor> silent;
  for (int count = 0; count < 5; ++count) silent.push_back(connect());
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
}

TEST_F(RuntimeControl, AnOwnerThatDoesNotAnswerIsNotWaitedForForever) {
  std::binary_semaphore go_on{0};
  const auto server = ControlServer::listen(
      store_,
      [&](const ControlRequest&, const ControlServer::Answered& answered) {
        go_on.acquire();
        answered(ControlDone{});
      },
      patient);
  const auto answer = ask_owner(store_, {.operation = "cancel"}, brief);
  EXPECT_EQ(answer.value().error().code, ErrorCode::timed_out);
  go_on.release();
}

TEST_F(RuntimeControl, WhatTheHandlerThrowsIsAnswered) {
  const auto server = serve();
  const auto answer = ask_owner(store_, {.operation = "throw"}, patient);
  EXPECT_EQ(answer.value().error().message, "The owner of the store could not do it: the disk is gone");
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
}

TEST_F(RuntimeControl, ManyAskAtOnceOneCallAtATime) {
  constexpr int askers = 8;
  constexpr int questions = 25;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto server = ControlServer::listen(
      store_,
      [&](const ControlRequest& request, const ControlServer::Answered& answered) {
        most = std::max(most.load(), ++inside);
        --inside;
        answered(std::unexpected{Error{ErrorCode::full, request.run}});
      },
      patient);
  std::atomic<int> right = 0;
  {
    std::latch together{askers};
    std::vector<std::jthread> threads;
    for (int asker = 0; asker < askers; ++asker) {
      threads.emplace_back([&, asker] {
        together.arrive_and_wait();
        for (int question = 0; question < questions; ++question) {
          const std::string run = std::to_string(asker) + "-" + std::to_string(question);
          const auto answer = ask_owner(store_, {.operation = "retry", .run = run}, patient);
          if (answer && !*answer && answer->error() == Error{ErrorCode::full, run}) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, askers * questions);
  EXPECT_EQ(most, 1);
}

TEST_F(RuntimeControl, AnAnswerMayComeLaterAndFromAnotherThread) {
  std::vector<ControlServer::Answered> waiting;
  std::mutex mutex;
  std::latch asked{2};
  const auto server = ControlServer::listen(
      store_,
      [&](const ControlRequest& request, ControlServer::Answered answered) {
        if (request.operation == "ping") return answered(ControlDone{});
        const std::lock_guard lock{mutex};
        waiting.push_back(std::move(answered));
        asked.count_down();
      },
      patient);
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> askers;
    for (int count = 0; count < 2; ++count) {
      askers.emplace_back([&] {
        const auto answer = ask_owner(store_, {.operation = "submit"}, patient);
        if (answer && *answer && (*answer)->run == "7") ++answered;
      });
    }
    asked.wait();
    EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value()) << "nobody waits for the others";
    for (const ControlServer::Answered& each : waiting) each(ControlDone{.run = "7"});
  }
  EXPECT_EQ(answered, 2);
  waiting.front()(ControlDone{.run = "again"});  // for nobody
}

TEST_F(RuntimeControl, AServerThatEndsWaitsForAnswersThatAreOnTheirWay) {
  ControlServer::Answered later;
  std::binary_semaphore asked{0};
  auto server = ControlServer::listen(
      store_,
      [&](const ControlRequest&, ControlServer::Answered answered) {
        later = std::move(answered);
        asked.release();
      },
      patient);
  bool was_done = false;
  {
    const std::jthread asker{[&] {
      const auto answer = ask_owner(store_, {.operation = "cancel"}, patient);
      was_done = answer && *answer;
    }};
    asked.acquire();
    const std::jthread owner{[&] { server.reset(); }};
    later(ControlDone{});
  }
  EXPECT_TRUE(was_done);
  later(ControlDone{});  // the server is gone
}

// What versions before requests had ids send, and what they expect.
TEST_F(RuntimeControl, OlderAndNewerEndsUnderstandEachOther) {
  const auto server = serve();
  const Descriptor older = connect();
  send_all(older, "{\"operation\":\"ping\",\"run\":\"\",\"text\":\"\",\"payload\":\"\"}\n");
  EXPECT_EQ(receive_all(older), "{\"ok\":true}\n");
  const Descriptor newer = connect();
  send_all(newer, "{\"operation\":\"ping\",\"of the future\":{\"deep\":[1]},\"request\":\"\"}\n");
  EXPECT_EQ(receive_all(newer), "{\"ok\":true}\n");
}

TEST_F(RuntimeControl, EndingWithOpenConnectionsClosesThem) {
  auto server = serve();
  const Descriptor silent = connect();
  EXPECT_TRUE(ask_owner(store_, {.operation = "ping"}, patient).value().has_value());
  server.reset();
  EXPECT_EQ(receive_all(silent), "");
}

TEST(RuntimeControlLine, EveryCodeComesBack) {
  for (int number = 0; number <= static_cast<int>(ErrorCode::store_behind); ++number) {
    const Error error{static_cast<ErrorCode>(number), "why \"\n\""};
    const std::string line = answer_line(std::unexpected{error});
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    EXPECT_EQ(read_answer(line).error(), error);
  }
  EXPECT_TRUE(read_answer("{\"ok\": true, \"more\": 1}").has_value());
  EXPECT_EQ(read_answer("{\"ok\": false, \"code\": \"of the future\", \"message\": \"m\"}").error(),
            (Error{ErrorCode::invalid, "m"}));
  for (const char* garbage : {"", "x", "{}", "[]", "{\"ok\": 1}"}) {
    EXPECT_EQ(read_answer(garbage).error().code, ErrorCode::store_unavailable) << garbage;
  }
}

}  // namespace
}  // namespace reprise::runtime
