// The webhook listener: what reaches the handler, what is refused before, and clients that mean no good.
#include "exec/http/webhook_listener.hpp"
#include "base/encoding.hpp"

#include <cctype>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "exec/http/http_client.hpp"
#include "support/loopback.hpp"

namespace reprise::exec {
namespace {

using namespace std::chrono_literals;
using testing_support::LoopbackSocket;

// Keeps what it was called with, and answers as it is told.
class Recorder {
 public:
  WebhookListener::Handler handler() {
    return [this](const WebhookCall& call, const WebhookReply& reply) {
      const std::scoped_lock lock{mutex_};
      calls_.push_back(call);
      reply(answer_(calls_));
    };
  }
  std::vector<WebhookCall> calls() const {
    const std::scoped_lock lock{mutex_};
    return calls_;
  }
  void answer(std::function<WebhookAnswer(const std::vector<WebhookCall>&)> answer) { answer_ = std::move(answer); }

 private:
  mutable std::mutex mutex_;
  std::vector<WebhookCall> calls_;
  std::function<WebhookAnswer(const std::vector<WebhookCall>&)> answer_ = [](const std::vector<WebhookCall>&) {
    return WebhookAnswer{200, "thank you"};
  };
};

std::uint16_t port_of(const WebhookListener& listener) { return listener.address().port; }

HttpEnd post(HttpClient& client, const std::string& url, HttpRequest request) {
  request.url = url;
  request.timeout = 60s;
  std::promise<HttpEnd> promise;
  client.start(std::move(request), [&](HttpEnd&& end) { promise.set_value(std::move(end)); });
  return promise.get_future().get();
}

HttpRequest report(const std::string& token, const std::string& body) {
  return {.method = "POST", .url = {}, .headers = {{"Authorization", "Bearer " + token}}, .body = body};
}

// Everything the listener says to these bytes until it closes; the client closes first when `finish` is set.
std::string talk(const WebhookListener& listener, std::string_view bytes, bool finish = true) {
  const LoopbackSocket socket = LoopbackSocket::connected_to(port_of(listener));
  socket.send(bytes);
  if (finish) socket.finish_sending();
  return socket.receive_all();
}

std::string head(const std::string& rest) { return "POST /v1/callbacks/a HTTP/1.1\r\nHost: localhost\r\n" + rest; }

struct ExecWebhook : testing::Test {
  Recorder recorder;
  WebhookListener listener{{}, recorder.handler()};
  HttpClient client;
};

TEST_F(ExecWebhook, ACallReachesTheHandlerAndItsAnswerTheCaller) {
  EXPECT_TRUE(listener.url().starts_with("http://127.0.0.1:"));
  EXPECT_TRUE(listener.url().ends_with("/v1/callbacks/"));
  recorder.answer([](const auto&) { return WebhookAnswer{202, "thank \"you\""}; });
  const HttpEnd end = post(client, listener.url() + "run-1.fetch:7", report("run-1.fetch:7", R"({"success":true})"));
  EXPECT_EQ(end.status, 202) << end.message;
  EXPECT_EQ(end.body, R"({"message":"thank \"you\""})");
  EXPECT_EQ(*end.header("content-type"), "application/json");
  ASSERT_EQ(recorder.calls().size(), 1U);
  EXPECT_EQ(recorder.calls()[0].token, "run-1.fetch:7");
  EXPECT_EQ(recorder.calls()[0].body, R"({"success":true})");
}

TEST_F(ExecWebhook, TheTokenMayComeInAHeaderToo) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  for (const Headers& headers :
       {Headers{}, Headers{{"Authorization", "Bearer abc"}}, Headers{{"authorization", "bEARER   abc"}},
        Headers{{"x-reprise-webhook-token", "abc"}}, Headers{{"Authorization", "Basic eDp5"}}})
    EXPECT_EQ(post(client, listener.url() + "abc", {.method = "POST", .url = {}, .headers = headers}).status, 200);
  ASSERT_EQ(recorder.calls().size(), 5U);
  for (const WebhookCall& call : recorder.calls()) EXPECT_EQ(call.token, "abc");
  EXPECT_EQ(post(client, listener.url() + "abc", report("another", "{}")).status, 403);
  EXPECT_EQ(recorder.calls().size(), 5U) << "one of both is a mistake";
}

// A wrong token, the same report twice and one that comes late are the handler's to judge: it must hear of each.
TEST_F(ExecWebhook, WrongTokensDuplicatesAndLateOnesAreTheHandlersToJudge) {
  recorder.answer([](const std::vector<WebhookCall>& calls) {
    if (calls.back().token == "wrong") return WebhookAnswer{403, "not that token"};
    if (calls.back().token == "gone") return WebhookAnswer{410, "too late"};
    return WebhookAnswer{200, calls.size() > 2 ? "known" : "new"};
  });
  EXPECT_EQ(post(client, listener.url() + "wrong", report("wrong", "{}")).status, 403);
  EXPECT_EQ(post(client, listener.url() + "a", report("a", "{}")).body, R"({"message":"new"})");
  EXPECT_EQ(post(client, listener.url() + "a", report("a", "{}")).body, R"({"message":"known"})");
  EXPECT_EQ(post(client, listener.url() + "gone", report("gone", "{}")).status, 410);
  EXPECT_EQ(recorder.calls().size(), 4U);
}

TEST_F(ExecWebhook, AnAnswerMayComeFromAnotherThreadOrNever) {
  std::vector<WebhookReply> replies;
  std::mutex mutex;
  std::condition_variable asked;
  const WebhookListener patient{{.patience = 200ms}, [&](const WebhookCall&, const WebhookReply& reply) {
                                  const std::scoped_lock lock{mutex};
                                  replies.push_back(reply);
                                  asked.notify_all();
                                }};
  const HttpEnd unanswered = post(client, patient.url() + "a", report("a", "{}"));
  EXPECT_EQ(unanswered.status, 503);
  EXPECT_EQ(*unanswered.header("retry-after"), "1");
  std::thread later{[&] {
    std::unique_lock lock{mutex};
    asked.wait(lock, [&] { return replies.size() == 2; });
    replies[0]({200, "of the first: too late"});
    replies[1]({202, "of the second"});
  }};
  EXPECT_EQ(post(client, patient.url() + "a", report("a", "{}")).status, 202);
  later.join();
}

TEST(ExecWebhookLimits, AnAnswerThatWasGivenIsSentBeforeItEnds) {
  for (int count = 0; count < 20; ++count) {
    std::optional<WebhookListener> listener;
    std::promise<void> answered;
    listener.emplace(WebhookSettings{}, [&](const WebhookCall&, const WebhookReply& reply) {
      reply({202, "recorded"});
      answered.set_value();
    });
    const LoopbackSocket socket = LoopbackSocket::connected_to(port_of(*listener));
    socket.send(head("Content-Length: 2\r\n\r\n{}"));
    answered.get_future().get();
    listener.reset();
    EXPECT_TRUE(socket.receive_all().starts_with("HTTP/1.1 202 "));
  }
}

TEST(ExecWebhookLimits, AReplyMayOutliveTheListener) {
  WebhookReply kept;
  std::promise<void> asked;
  {
    const WebhookListener listener{{}, [&](const WebhookCall&, const WebhookReply& reply) {
                                     kept = reply;
                                     asked.set_value();
                                   }};
    const LoopbackSocket socket = LoopbackSocket::connected_to(port_of(listener));
    socket.send(head("Content-Length: 2\r\n\r\n{}"));
    asked.get_future().get();
  }
  kept({202, "to nobody"});
}

TEST_F(ExecWebhook, BehindAProxyThePathMayBeLongerAndTheHostAnother) {
  const WebhookListener proxied{{.url = "https://ci.example.org/reprise"}, recorder.handler()};
  EXPECT_EQ(proxied.url(), "https://ci.example.org/reprise/v1/callbacks/");
  const std::string root = "http://127.0.0.1:" + std::to_string(port_of(proxied));
  EXPECT_EQ(post(client, root + "/reprise/v1/callbacks/abc",
                 {.method = "POST", .url = {}, .headers = {{"Host", "ci.example.org"}}, .body = "{}"})
                .status,
            200);
  ASSERT_EQ(recorder.calls().size(), 1U);
  EXPECT_EQ(recorder.calls()[0].token, "abc");
}

TEST_F(ExecWebhook, EverythingElseIsRefusedBeforeTheHandler) {
  const std::string root = listener.url().substr(0, listener.url().size() - std::string_view{"/v1/callbacks/"}.size());
  for (const char* path : {"/", "/v1/callbacks", "/v1/callbacks/", "/v1/callbacks/a/b", "/v1/callbacks/a?token=x",
                           "/v1/callbacks/%61", "/other/a", "/v1/callbacks/../a", "/webhook/a"})
    EXPECT_EQ(post(client, root + path, report("a", "{}")).status, 404) << path;
  EXPECT_EQ(post(client, listener.url() + std::string(257, 'a'), report("a", "{}")).status, 404);
  for (const char* method : {"GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PURGE"}) {
    const HttpEnd end =
        post(client, listener.url() + "a", {.method = method, .url = {}, .headers = {{"Authorization", "Bearer a"}}});
    EXPECT_EQ(end.status, 405) << method << end.message;
    EXPECT_EQ(*end.header("allow"), "POST");
  }
  for (const char* host :
       {"example.org", "127.0.0.1.example.org", "localhost.example.org:80", "10.0.0.1", "127.0.0.1:1:2", ":80", ""}) {
    EXPECT_EQ(post(client, listener.url() + "a",
                   {.method = "POST", .url = {}, .headers = {{"Host", host}, {"Authorization", "Bearer a"}}})
                  .status,
              403)
        << host;
  }
  EXPECT_TRUE(recorder.calls().empty());
  for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "[::1]", "[::1]:80"}) {
    EXPECT_EQ(post(client, listener.url() + "a",
                   {.method = "POST", .url = {}, .headers = {{"Host", host}, {"Authorization", "Bearer a"}}})
                  .status,
              200)
        << host;
  }
}

TEST_F(ExecWebhook, BodiesHaveALimit) {
  const std::string largest(1U << 20U, 'b');
  EXPECT_EQ(post(client, listener.url() + "a", report("a", largest)).status, 200);
  EXPECT_EQ(post(client, listener.url() + "a", report("a", largest + "b")).status, 413);
  ASSERT_EQ(recorder.calls().size(), 1U);
  EXPECT_EQ(recorder.calls()[0].body.size(), largest.size());

  std::string chunks = head("Authorization: Bearer a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int count = 0; count < 20; ++count) chunks += "10000\r\n" + std::string(65536, 'c') + "\r\n";
  EXPECT_TRUE(talk(listener, chunks + "0\r\n\r\n").starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(recorder.calls().size(), 1U);
}

TEST_F(ExecWebhook, ChunkedBodiesAndContinueAreUnderstood) {
  const std::string said = talk(listener,
                                head("Authorization: Bearer a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
                                     "Connection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
                                false);
  EXPECT_TRUE(said.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")) << said;
  ASSERT_EQ(recorder.calls().size(), 1U);
  EXPECT_EQ(recorder.calls()[0].body, "{}");
}

TEST_F(ExecWebhook, HeadersHaveALimit) {
  EXPECT_EQ(post(client, listener.url() + "a",
                 {.method = "POST", .url = {}, .headers = {{"Authorization", "Bearer " + std::string(17'000, 't')}}})
                .status,
            431);
  EXPECT_TRUE(recorder.calls().empty());
}

TEST_F(ExecWebhook, GarbageIsToldSo) {
  for (const std::string& garbage : std::vector<std::string>{
           "garbage\r\n\r\n", std::string(100, '\0'), "\x16\x03\x01\x02", "POST /v1/callbacks/a HTTP/9.9\r\n\r\n",
           head("Content-Length: -1\r\n\r\n"), head("Content-Length: 5x\r\n\r\n"),
           head("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), head("Bad Header\r\n\r\n")}) {
    EXPECT_TRUE(talk(listener, garbage).starts_with("HTTP/1.1 400 ")) << garbage;
  }
  EXPECT_EQ(talk(listener, ""), "");
  EXPECT_EQ(talk(listener, "POST /v1/c"), "") << "nobody is there any more";
  EXPECT_EQ(talk(listener, head("Authorization: Bearer a\r\nContent-Length: 9\r\n\r\n{}")), "")
      << "a body that was cut off is none";
  EXPECT_TRUE(recorder.calls().empty());
  EXPECT_EQ(post(client, listener.url() + "a", report("a", "{}")).status, 200) << "and it goes on";
}

TEST_F(ExecWebhook, OneConnectionCarriesManyReports) {
  const std::string one = head("Authorization: Bearer a\r\nContent-Length: 2\r\n\r\n{}");
  const std::string said = talk(
      listener, one + one + head("Authorization: Bearer a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), false);
  std::size_t answers = 0;
  for (std::size_t at = said.find("HTTP/1.1 200"); at != std::string::npos; at = said.find("HTTP/1.1 200", at + 1))
    ++answers;
  EXPECT_EQ(answers, 3U) << said;
  EXPECT_EQ(recorder.calls().size(), 3U);
}

TEST_F(ExecWebhook, WhatGoesWrongInTheHandlerIsOurFault) {
  recorder.answer([](const auto&) -> WebhookAnswer { throw std::runtime_error{"secret detail"}; });
  const HttpEnd end = post(client, listener.url() + "a", report("a", "{}"));
  EXPECT_EQ(end.status, 500);
  EXPECT_EQ(end.body.find("secret"), std::string::npos);
  recorder.answer([](const auto&) -> WebhookAnswer { throw 7; });
  EXPECT_EQ(post(client, listener.url() + "a", report("a", "{}")).status, 500);
  for (const int status : {0, -1, 100, 999, 100'000}) {
    recorder.answer([status](const auto&) { return WebhookAnswer{status, ""}; });
    EXPECT_EQ(post(client, listener.url() + "a", report("a", "{}")).status, 500) << status;
  }
}

TEST_F(ExecWebhook, APortInUseIsAnError) {
  try {
    const WebhookListener second{{.address = listener.address()}, recorder.handler()};
    FAIL() << "two listen on one port";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    EXPECT_NE(std::string{error.what()}.find("127.0.0.1:" + std::to_string(port_of(listener))), std::string::npos);
  }
}

TEST(ExecWebhookLimits, SlowClientsAreLetGo) {
  Recorder recorder;
  const WebhookListener listener{{.patience = 50ms}, recorder.handler()};
  EXPECT_EQ(talk(listener, "", false), "");
  EXPECT_EQ(talk(listener, "POST /v1/callbacks/a HT", false), "");
  EXPECT_EQ(talk(listener, head("Authorization: Bearer a\r\nContent-Length: 9\r\n\r\n{"), false), "");
  EXPECT_TRUE(recorder.calls().empty());
}

TEST(ExecWebhookLimits, AnAnswerThatNothingFollowsIsTheEnd) {
  Recorder recorder;
  const WebhookListener listener{{.patience = 1s}, recorder.handler()};
  const std::string kept = talk(listener, head("Authorization: Bearer a\r\nContent-Length: 0\r\n\r\n"), false);
  EXPECT_TRUE(kept.starts_with("HTTP/1.1 200 ")) << kept;
  EXPECT_TRUE(talk(listener, head("Authorization: Bearer b\r\n\r\n") + "x", false).starts_with("HTTP/1.1 403 "));
  EXPECT_EQ(recorder.calls().size(), 1U);
}

TEST(ExecWebhookLimits, ADripDoesNotBuyTime) {
  Recorder recorder;
  const WebhookListener listener{{.patience = 300ms}, recorder.handler()};
  const LoopbackSocket socket = LoopbackSocket::connected_to(port_of(listener));
  std::thread dripping{[&] {  // ten thousand bytes, one every 5 ms: it would take most of a minute
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock{mutex};
    for (int count = 0; count < 10'000 && socket.send("P"); ++count) never.wait_for(lock, 5ms);
  }};
  EXPECT_EQ(socket.receive_all(), "");
  dripping.join();
}

TEST(ExecWebhookLimits, MoreConnectionsThanAllowedWaitTheirTurn) {
  Recorder recorder;
  const WebhookListener listener{{}, recorder.handler()};
  std::vector<LoopbackSocket> idle;
  for (int count = 0; count < 64; ++count) idle.push_back(LoopbackSocket::connected_to(port_of(listener)));
  const LoopbackSocket waiting = LoopbackSocket::connected_to(port_of(listener));
  waiting.send(head("Authorization: Bearer a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  for (std::size_t count = 1; count <= 10; ++count) {  // the others are served meanwhile
    idle.front().send(head("Authorization: Bearer a\r\nContent-Length: 0\r\n\r\n"));
    std::string said;
    while (said.find("thank you") == std::string::npos) ASSERT_TRUE(idle.front().receive(said));
    ASSERT_EQ(recorder.calls().size(), count);
  }
  idle.pop_back();
  EXPECT_TRUE(waiting.receive_all().starts_with("HTTP/1.1 200 "));
}

TEST(ExecWebhookLimits, ItEndsWhileClientsAreConnected) {
  for (int count = 0; count < 20; ++count) {
    std::vector<LoopbackSocket> clients;
    Recorder recorder;
    {
      const WebhookListener listener{{}, recorder.handler()};
      for (int number = 0; number < 5; ++number) {
        clients.push_back(LoopbackSocket::connected_to(port_of(listener)));
        clients.back().send(head("Authorization: Bearer a\r\nContent-Length: 9\r\n\r\n{"));
      }
    }
    for (const LoopbackSocket& socket : clients) EXPECT_EQ(socket.receive_all(), "");
  }
}

RC_GTEST_PROP(ExecWebhookToken, ComparesAsTextDoes, (const std::string& left, const std::string& right)) {
  RC_ASSERT(base::same_secret(left, right) == (left == right));
  RC_ASSERT(base::same_secret(left, std::string{left}));
  for (std::size_t at = 0; at < left.size(); ++at) {
    std::string other = left;
    other[at] = static_cast<char>(other[at] ^ 1);
    RC_ASSERT(!base::same_secret(left, other));
  }
}

}  // namespace
}  // namespace reprise::exec
