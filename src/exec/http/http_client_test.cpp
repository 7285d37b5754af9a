// The HTTP client against a server that does as it is told: answers, bad manners, limits, and many at once. Only 127.0.0.1 is contacted.
#include "exec/http/http_client.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <semaphore>
#include <thread>

#include <gtest/gtest.h>

#include "support/loopback.hpp"
#include "support/scripted_server.hpp"

namespace reprise::exec {
namespace {

using namespace std::chrono_literals;
using testing_support::LoopbackSocket;
using testing_support::RecordedRequest;
using testing_support::ScriptedServer;

constexpr auto patience = 60s;  // so that a mistake ends the test instead of stopping it

std::future<HttpEnd> begin(HttpClient& client, HttpRequest request, HttpClient::Ticket* ticket = nullptr) {
  auto promise = std::make_shared<std::promise<HttpEnd>>();
  std::future<HttpEnd> future = promise->get_future();
  const HttpClient::Ticket given =
      client.start(std::move(request), [promise](HttpEnd&& end) { promise->set_value(std::move(end)); });
  if (ticket != nullptr) *ticket = given;
  return future;
}

HttpEnd wait_for(std::future<HttpEnd>& future) {
  if (future.wait_for(patience) != std::future_status::ready) {
    ADD_FAILURE() << "the request has not ended";
    std::abort();
  }
  return future.get();
}

HttpEnd fetch(HttpClient& client, HttpRequest request) {
  std::future<HttpEnd> future = begin(client, std::move(request));
  return wait_for(future);
}

HttpEnd fetch(const std::string& url, Duration timeout = patience) {
  HttpClient client;
  return fetch(client, {.url = url, .timeout = timeout});
}

// What came instead of an answer: nothing of one is shown.
void expect_problem(const HttpEnd& end, HttpProblem problem, const std::string& message) {
  EXPECT_EQ(end.problem, problem);
  EXPECT_EQ(end.message, message);
  EXPECT_EQ(end.status, 0);
  EXPECT_TRUE(end.body.empty());
  EXPECT_TRUE(end.headers.empty());
}

// ---- answers -----------------------------------------------------------------------------------------------------------------

TEST(ExecHttpClient, BringsStatusHeadersAndBody) {
  ScriptedServer server;
  server.on("/items/7").answer(200, {{"Content-Type", "application/json"}, {"X-Note", "  two  words "}}, R"({"a":1})");
  const HttpEnd end = fetch(server.url("/items/7"));
  EXPECT_EQ(end.problem, HttpProblem::none) << end.message;
  EXPECT_EQ(end.message, "");
  EXPECT_EQ(end.status, 200);
  EXPECT_EQ(end.body, R"({"a":1})");
  ASSERT_NE(end.header("content-type"), nullptr);
  EXPECT_EQ(*end.header("content-type"), "application/json");
  EXPECT_EQ(*end.header("x-note"), "two  words");
  EXPECT_EQ(end.header("x-none"), nullptr);
  EXPECT_GT(end.took, Duration{0});
}

TEST(ExecHttpClient, EveryStatusIsAnAnswer) {
  ScriptedServer server;
  for (const int status : {204, 301, 304, 400, 404, 429, 500, 503})
    server.on("/" + std::to_string(status))
        .answer(status, {{"Retry-After", "1"}, {"Location", server.url("/elsewhere")}});
  HttpClient client;
  for (const int status : {204, 301, 304, 400, 404, 429, 500, 503}) {
    const HttpEnd end = fetch(client, {.url = server.url("/" + std::to_string(status))});
    EXPECT_EQ(end.problem, HttpProblem::none) << end.message;
    EXPECT_EQ(end.status, status);
    EXPECT_EQ(*end.header("retry-after"), "1");
  }
  for (const RecordedRequest& request : server.requests())
    EXPECT_NE(request.target, "/elsewhere") << "redirects are not followed";
}

TEST(ExecHttpClient, AScriptAnswersOneAfterTheOther) {
  ScriptedServer server;
  server.on("/items/7").answer(503, {{"Retry-After", "1"}}).then(200, "{}");
  HttpClient client;
  EXPECT_EQ(fetch(client, {.url = server.url("/items/7")}).status, 503);
  EXPECT_EQ(fetch(client, {.url = server.url("/items/7")}).body, "{}");
  EXPECT_EQ(fetch(client, {.url = server.url("/items/7?again")}).body, "{}");
  EXPECT_EQ(fetch(client, {.url = server.url("/other")}).status, 404);
}

TEST(ExecHttpClient, SendsMethodHeadersAndBodyAsTheyAre) {
  ScriptedServer server;
  server.on("*").answer(200);
  HttpClient client;
  const std::string body{"{\"zero\":\"\0\"}", 12};
  ASSERT_EQ(
      fetch(client,
            {.method = "POST",
             .url = server.url("/in?q=1"),
             .headers = {{"X-Key", "k 1"}, {"X-Empty", ""}, {"X-Blank", "  "}, {"Content-Type", "application/json"}},
             .body = body})
          .status,
      200);
  const RecordedRequest request = server.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/in?q=1");
  EXPECT_EQ(request.body, body);
  EXPECT_EQ(request.header("x-key"), "k 1");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("content-length"), "12");
  EXPECT_EQ(request.header("host"), server.place());
  EXPECT_EQ(request.header("user-agent"), "reprise");
  EXPECT_EQ(request.header("expect"), "");
  for (const std::string_view empty : {"x-empty", "x-blank"})
    EXPECT_EQ(std::ranges::count(request.headers, empty, [](const auto& each) { return each.first; }), 1) << empty;
}

TEST(ExecHttpClient, EveryMethodCanBeSent) {
  ScriptedServer server;
  server.on("*").answer(200, "body");
  HttpClient client;
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"}) {
    for (const char* body : {"", "some"}) {
      const HttpEnd end = fetch(client, {.method = method, .url = server.url("/"), .body = body, .timeout = patience});
      ASSERT_EQ(end.problem, HttpProblem::none) << method << ": " << end.message;
      EXPECT_EQ(end.body, std::string{method} == "HEAD" ? "" : "body") << method;
      const RecordedRequest request = server.requests().back();
      EXPECT_EQ(request.method, method);
      EXPECT_EQ(request.body, std::string{method} == "HEAD" ? "" : body) << method;
      EXPECT_EQ(request.header("content-type"), "") << method;
    }
  }
}

TEST(ExecHttpClient, ContinuesAndTrailersAndFoldedHeadersAreUnderstood) {
  ScriptedServer server;
  server.on("/").send(
      "HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 200 OK\r\nX-Long: one\r\n  two\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: late\r\n\r\n");
  const HttpEnd end = fetch(server.url());
  EXPECT_EQ(end.problem, HttpProblem::none) << end.message;
  EXPECT_EQ(end.status, 200);
  EXPECT_EQ(end.body, "abc");
  EXPECT_EQ(end.header("x-early"), nullptr);
  EXPECT_EQ(end.header("x-trailer"), nullptr);
  EXPECT_EQ(*end.header("x-long"), "one two");
}

TEST(ExecHttpClient, ABodyWithoutLengthEndsWithTheConnection) {
  ScriptedServer server;
  server.on("/").send("HTTP/1.0 200 OK\r\n\r\nuntil the end");
  EXPECT_EQ(fetch(server.url()).body, "until the end");
}

TEST(ExecHttpClient, ConnectionsAreUsedAgain) {
  ScriptedServer server;
  server.on("*").answer(200, "x");
  HttpClient client;
  for (int count = 0; count < 5; ++count)
    EXPECT_EQ(fetch(client, {.method = "POST", .url = server.url("/")}).status, 200);
  for (const RecordedRequest& request : server.requests()) EXPECT_EQ(request.connection, 1);
}

TEST(ExecHttpClient, ProxiesOfTheEnvironmentAreNotAskedForThisMachine) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ScriptedServer server;
  server.on("/").answer(200);
  const HttpEnd end = fetch(server.url());
  ::unsetenv("http_proxy");
  EXPECT_EQ(end.status, 200) << end.message;
}

// ---- bad manners -------------------------------------------------------------------------------------------------------------

TEST(ExecHttpClient, NobodyListens) {
  const std::string port = std::to_string(testing_support::closed_port());
  expect_problem(fetch("http://user:secret@127.0.0.1:" + port + "/x?token=secret"), HttpProblem::refused,
                 "connection refused by 127.0.0.1:" + port);
}

TEST(ExecHttpClient, ANameThatCannotExist) {
  const std::string name = std::string(64, 'a') + ".invalid";  // too long for DNS: no server is asked
  expect_problem(fetch("http://" + name + "/"), HttpProblem::dns, "the name of " + name + ":80 is not known (DNS)");
}

TEST(ExecHttpClient, NoAnswerInTime) {
  ScriptedServer server;
  server.on("/").never_answer();
  expect_problem(fetch(server.url(), 250ms), HttpProblem::timed_out,
                 "no answer from " + server.place() + " within 250ms");
}

TEST(ExecHttpClient, HalfAnAnswerInTime) {
  ScriptedServer server;
  server.on("/body").send_then_stall("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + std::string(512, 'x'));
  server.on("/drip").drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
  expect_problem(fetch(server.url("/body"), 1s), HttpProblem::timed_out,
                 "the answer of " + server.place() + " was not complete within 1s: 512 of 1000 bytes came");
  EXPECT_EQ(fetch(server.url("/drip"), 1s).problem, HttpProblem::timed_out);
}

// The client's thread is held up by a callback, as the whole process is by a SIGSTOP, while the answer comes and the time passes.
TEST(ExecHttpClient, AnAnswerThatCameInTimeCountsHoweverLateItIsRead) {
  ScriptedServer server;
  server.on("/held").when_released().answer(200, std::string(100'000, 'x'));
  server.on("/").answer(200);
  HttpClient client;
  std::future<HttpEnd> held = begin(client, {.url = server.url("/held"), .timeout = 1s});
  const auto over = std::chrono::steady_clock::now() + 1s;
  ASSERT_TRUE(server.wait_for_requests(1));
  std::binary_semaphore busy{0};
  std::binary_semaphore let_go{0};
  client.start({.url = server.url("/")}, [&](HttpEnd&&) {
    busy.release();
    EXPECT_TRUE(let_go.try_acquire_for(patience));
  });
  ASSERT_TRUE(busy.try_acquire_for(patience));
  server.release();
  std::this_thread::sleep_until(over + 50ms);
  let_go.release();
  const HttpEnd end = wait_for(held);
  EXPECT_EQ(end.problem, HttpProblem::none) << end.message;
  EXPECT_EQ(end.body.size(), 100'000U);
}

TEST(ExecHttpClient, NoConnectionInTime) {
  const LoopbackSocket silent = LoopbackSocket::listening();  // accepts in the kernel, and never says a word of TLS
  HttpClient client;
  const std::string place = "127.0.0.1:" + std::to_string(silent.port());
  expect_problem(fetch(client, {.url = "https://" + place + "/", .timeout = patience, .connect_timeout = 50ms}),
                 HttpProblem::timed_out, "no connection to " + place + " within 50ms");
  expect_problem(fetch(client, {.url = "https://" + place + "/", .timeout = 40ms, .connect_timeout = patience}),
                 HttpProblem::timed_out, "no connection to " + place + " within 40ms");
}

TEST(ExecHttpClient, ClosedWithoutAnAnswer) {
  ScriptedServer server;
  server.on("/").hang_up();
  expect_problem(fetch(server.url()), HttpProblem::reset, server.place() + " closed the connection without an answer");
}

TEST(ExecHttpClient, ResetWithoutAnAnswer) {
  ScriptedServer server;
  server.on("/").reset();
  expect_problem(fetch(server.url()), HttpProblem::reset,
                 "the connection was reset by " + server.place() + " before it answered");
}

TEST(ExecHttpClient, ClosedInTheMiddle) {
  ScriptedServer server;
  server.on("/length").cut_off(1000, 512);
  server.on("/chunks").send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  server.on("/line").send("HTTP/1.1 200 OK\r\nContent-Ty");
  server.on("/blank").send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
  server.on("/continue").send("HTTP/1.1 100 Continue\r\n\r\n");
  const std::string answer = "the answer of " + server.place() + " ended ";
  expect_problem(fetch(server.url("/length")), HttpProblem::reset, answer + "after 512 of 1000 bytes");
  expect_problem(fetch(server.url("/chunks")), HttpProblem::reset, answer + "after 3 bytes");
  expect_problem(fetch(server.url("/line")), HttpProblem::reset, answer + "in the middle of its headers");
  expect_problem(fetch(server.url("/blank")), HttpProblem::reset, answer + "in the middle of its headers");
  expect_problem(fetch(server.url("/continue")), HttpProblem::reset, answer + "in the middle of its headers");
}

TEST(ExecHttpClient, Garbage) {
  ScriptedServer server;
  const std::vector<std::string> garbage{"SSH-2.0-OpenSSH_9.2\r\n",      "garbage",
                                         std::string(100'000, '\0'),     "\r\n\r\n",
                                         "HTTP/9.9 200 OK\r\n\r\n",      "HTTP/1.1 abc OK\r\n\r\n",
                                         "HTTP/1.1 99999 OK\r\n\r\nabc", "ICY 200 OK\r\n\r\n"};
  for (std::size_t at = 0; at < garbage.size(); ++at) server.on("/" + std::to_string(at)).send(garbage[at]);
  for (std::size_t at = 0; at < garbage.size(); ++at) {
    expect_problem(fetch(server.url("/" + std::to_string(at))), HttpProblem::garbage,
                   server.place() + " did not answer with HTTP");
  }
}

TEST(ExecHttpClient, GarbageInsideAnAnswer) {
  ScriptedServer server;
  server.on("/chunks").send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n");
  server.on("/nul").send(std::string{"HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n", 29});
  server.on("/length").send("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n");
  for (const char* path : {"/chunks", "/nul", "/length"}) {
    expect_problem(fetch(server.url(path)), HttpProblem::garbage,
                   "the answer of " + server.place() + " breaks the rules of HTTP");
  }
}

TEST(ExecHttpClient, TlsIsNotSpokenThere) {
  const LoopbackSocket listener = LoopbackSocket::listening();
  std::thread plain{[&] {
    const LoopbackSocket peer = listener.accept();
    std::string hello;
    peer.receive(hello);
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
  }};
  const std::string place = "127.0.0.1:" + std::to_string(listener.port());
  const HttpEnd end = fetch("https://" + place + "/?secret");
  plain.join();
  EXPECT_EQ(end.problem, HttpProblem::tls);
  EXPECT_TRUE(end.message.starts_with("no secure connection to " + place + ": ")) << end.message;
  EXPECT_EQ(end.message.find("secret"), std::string::npos);
}

TEST(ExecHttpClient, ClosedDuringTheHandshakeIsAReset) {
  const LoopbackSocket listener = LoopbackSocket::listening();
  std::thread rude{[&] {
    const LoopbackSocket peer = listener.accept();
    std::string hello;
    peer.receive(hello);
  }};
  const std::string place = "127.0.0.1:" + std::to_string(listener.port());
  const HttpEnd end = fetch("https://" + place + "/");
  rude.join();
  expect_problem(end, HttpProblem::reset, place + " closed the connection while it was being secured");
}

TEST(ExecHttpClient, WhatMustNotBeSentTwiceIsNot) {
  ScriptedServer server;
  server.on("/").answer(200).hang_up();
  HttpClient client;
  ASSERT_EQ(fetch(client, {.method = "POST", .url = server.url()}).status, 200);
  expect_problem(fetch(client, {.method = "POST", .url = server.url()}), HttpProblem::reset,
                 server.place() + " closed the connection without an answer");
  EXPECT_EQ(server.requests().size(), 2U);
}

// ---- limits ------------------------------------------------------------------------------------------------------------------

TEST(ExecHttpClient, ABodyAtTheLimitIsFineAndOneByteMoreIsNot) {
  ScriptedServer server;
  server.on("/length").answer(200, std::string(1000, 'x'));
  server.on("/close").send("HTTP/1.0 503 Busy\r\n\r\n" + std::string(1000, 'x'));
  HttpClient client;
  for (const char* path : {"/length", "/close"}) {
    EXPECT_EQ(fetch(client, {.url = server.url(path), .body_max = 1000}).body.size(), 1000U);
    const HttpEnd end = fetch(client, {.url = server.url(path), .body_max = 999});
    expect_problem(end, HttpProblem::too_large,
                   "the answer of " + server.place() +
                       (std::string{path} == "/close" ? " (status 503)" : " (status 200)") +
                       " is larger than the 999 bytes allowed");
  }
  EXPECT_EQ(fetch(client, {.url = server.url("/length"), .body_max = 0}).problem, HttpProblem::too_large);
  EXPECT_EQ(fetch(client, {.method = "HEAD", .url = server.url("/length"), .body_max = 0}).status, 200);
}

TEST(ExecHttpClient, AGigabyteIsNotRead) {
  ScriptedServer server;
  server.on("/announced").generate(1U << 30U);
  server.on("/endless").generate_endlessly();
  for (const char* path : {"/announced", "/endless"}) {
    expect_problem(fetch(server.url(path)), HttpProblem::too_large,
                   "the answer of " + server.place() + " (status 200) is larger than the 16777216 bytes allowed");
  }
}

TEST(ExecHttpClient, SixteenMegabytesAreRead) {
  ScriptedServer server;
  server.on("/").generate(16U << 20U);
  EXPECT_EQ(fetch(server.url()).body.size(), 16U << 20U);
}

TEST(ExecHttpClient, HeadersHaveALimit) {
  ScriptedServer server;
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int count = 0; count < 2000; ++count)
    many += "X-" + std::to_string(count) + ": " + std::string(40, 'h') + "\r\n";
  std::string continues;
  for (int count = 0; count < 10'000; ++count) continues += "HTTP/1.1 100 Continue\r\n\r\n";
  server.on("/many").send(many + "\r\n");
  server.on("/one").send("HTTP/1.1 200 OK\r\nX-One: " + std::string(70'000, 'h') + "\r\n\r\n");
  server.on("/endless-line").send("HTTP/1.1 200 OK\r\nX-One: " + std::string(5'000'000, 'h'));
  server.on("/continues").send(continues);
  server.on("/fine").send("HTTP/1.1 200 OK\r\nX-One: " + std::string(60'000, 'h') + "\r\n\r\n");
  for (const char* path : {"/many", "/one", "/endless-line", "/continues"}) {
    const HttpEnd end = fetch(server.url(path));
    EXPECT_EQ(end.problem, HttpProblem::too_large) << path << ": " << end.message;
    EXPECT_NE(end.message.find("headers"), std::string::npos) << end.message;
  }
  EXPECT_EQ(fetch(server.url("/fine")).header("x-one")->size(), 60'000U);
}

// ---- requests that are refused -----------------------------------------------------------------------------------------------

TEST(ExecHttpClient, UrlsThatCannotBeSent) {
  for (const std::string& url : std::vector<std::string>{
           "", "secret", "/secret", "http://", "http:///secret", "ftp://127.0.0.1/secret", "file:///etc/secret",
           "gopher://127.0.0.1/secret", "http://127.0.0.1:99999/secret", "http://127.0.0.1:x/secret",
           "http://127.0.0.1/a secret", "http://127.0.0.1/\r\nX-Secret: 1", std::string{"http://a/\0secret", 16},
           "http://[::1/secret", "http://a/" + std::string(100'000, 's')}) {
    const HttpEnd end = fetch(url);
    EXPECT_EQ(end.problem, HttpProblem::bad_request) << url;
    EXPECT_TRUE(end.message.starts_with("the URL ")) << end.message;
    EXPECT_EQ(end.message.find("secret"), std::string::npos) << end.message;
  }
}

TEST(ExecHttpClient, HeadersThatWouldInjectAreRefused) {
  ScriptedServer server;
  server.on("*").answer(200);
  HttpClient client;
  const std::vector<std::pair<std::string, std::string>> bad{{"X-A", "1\r\nX-Secret: 2"},
                                                             {"X-A", "1\nsecret"},
                                                             {"X-A", "secret\r"},
                                                             {"X-A", std::string{"a\0secret", 8}},
                                                             {"X-A\r\nX-B", "secret"},
                                                             {"X A", "secret"},
                                                             {"", "secret"},
                                                             {"X-A:", "secret"},
                                                             {"X-A;", "secret"},
                                                             {"Content-Length", "7"},
                                                             {"transfer-ENCODING", "chunked"}};
  for (const auto& header : bad) {
    const HttpEnd end = fetch(client, {.url = server.url(), .headers = {header}});
    EXPECT_EQ(end.problem, HttpProblem::bad_request) << header.first;
    EXPECT_NE(end.message.find("header"), std::string::npos) << end.message;
    EXPECT_EQ(end.message.find("ecret"), std::string::npos) << end.message;
  }
  EXPECT_EQ(fetch(client, {.url = server.url(), .headers = {{"X-A", std::string(70'000, 'a')}}}).problem,
            HttpProblem::bad_request);
  for (const char* method : {"", "GET /x HTTP/1.1\r\nX:", "G E T", "CONNECT"}) {
    EXPECT_EQ(fetch(client, {.method = method, .url = server.url()}).problem, HttpProblem::bad_request) << method;
  }
  EXPECT_TRUE(server.requests().empty());
}

// ---- many, and the end -------------------------------------------------------------------------------------------------------

TEST(ExecHttpClient, CancelEndsARequestWithItsCallback) {
  ScriptedServer server;
  server.on("/").never_answer();
  HttpClient client;
  HttpClient::Ticket ticket = 0;
  std::future<HttpEnd> end = begin(client, {.url = server.url()}, &ticket);
  ASSERT_TRUE(server.wait_for_requests(1));
  client.cancel(ticket);
  expect_problem(wait_for(end), HttpProblem::canceled, "the request to " + server.place() + " was canceled");
  client.cancel(ticket);      // it has ended
  client.cancel(ticket + 9);  // it never was
}

TEST(ExecHttpClient, CancelBeforeAnythingWasSent) {
  ScriptedServer server;
  server.on("/").never_answer();
  HttpClient client;
  for (int count = 0; count < 200; ++count) {
    HttpClient::Ticket ticket = 0;
    std::future<HttpEnd> end = begin(client, {.url = server.url()}, &ticket);
    client.cancel(ticket);
    ASSERT_EQ(wait_for(end).problem, HttpProblem::canceled);
  }
}

TEST(ExecHttpClient, ManyAtATimeEachAnsweredOnce) {
  ScriptedServer server;
  server.on("*").when_released().answer(200, "x").when_released().then(200, "x");
  HttpClient client;
  constexpr std::size_t count = 100;
  std::vector<std::future<HttpEnd>> ends;
  for (std::size_t index = 0; index < count; ++index)
    ends.push_back(begin(client, {.url = server.url("/" + std::to_string(index))}));
  ASSERT_TRUE(server.wait_for_requests(count)) << "they should all be under way at the same time";
  server.release();
  for (std::future<HttpEnd>& end : ends) EXPECT_EQ(wait_for(end).status, 200);
}

TEST(ExecHttpClient, CallbacksMayStartAndCancel) {
  ScriptedServer server;
  server.on("/hang").never_answer();
  server.on("/").answer(200, "x");
  HttpClient client;
  std::promise<int> rounds;
  HttpClient::Ticket hanging = 0;
  std::future<HttpEnd> canceled = begin(client, {.url = server.url("/hang")}, &hanging);
  std::function<void(int)> again = [&](int round) {
    client.start({.url = server.url()}, [&, round](HttpEnd&& end) {
      if (round == 50) client.cancel(hanging);
      if (round == 100 || end.status != 200) return rounds.set_value(round);
      again(round + 1);
    });
  };
  again(1);
  EXPECT_EQ(rounds.get_future().get(), 100);
  EXPECT_EQ(wait_for(canceled).problem, HttpProblem::canceled);
}

TEST(ExecHttpClient, ThreadsShareAClient) {
  ScriptedServer server;
  server.on("/").answer(200, "x");
  HttpClient client;
  std::atomic<int> answered = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int count = 0; count < 25; ++count) {
        HttpClient::Ticket ticket = 0;
        std::future<HttpEnd> end = begin(client, {.url = server.url()}, &ticket);
        if (count % 5 == 0) client.cancel(ticket);
        const HttpProblem problem = wait_for(end).problem;
        if (problem == HttpProblem::none || problem == HttpProblem::canceled) ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 100);
}

TEST(ExecHttpClient, ItsEndGivesUpWhatIsUnderWay) {
  ScriptedServer server;
  server.on("/").never_answer();
  std::atomic<int> told = 0;
  {
    HttpClient client;
    for (int count = 0; count < 10; ++count) client.start({.url = server.url()}, [&](HttpEnd&&) { ++told; });
    ASSERT_TRUE(server.wait_for_requests(10));
    client.start({.url = "not a URL"}, {});
  }
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace reprise::exec
