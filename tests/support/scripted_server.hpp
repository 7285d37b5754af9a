// An HTTP server on 127.0.0.1 that does as it is told, good or bad, and remembers what it was asked.
//
//   ScriptedServer server;
//   server.on("/items/7").answer(503, {{"Retry-After", "1"}}).then(200, "{}");   // the last answer is given ever after
//   server.on("/silent").never_answer();
//   … server.url("/items/7") …
//   EXPECT_EQ(server.requests().size(), 2U);
//
// A path without a script is answered with 404. Connections stay open after a whole answer, as HTTP/1.1 has it.
// Thread safety: write the scripts before the first request; everything else from any thread. Bounds: none, tests are trusted.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::testing_support {

using HeaderLines = std::vector<std::pair<std::string, std::string>>;

struct RecordedRequest {
  std::string method;
  std::string target;   // with its query
  HeaderLines headers;  // names in lower case
  std::string body;
  int connection = 0;  // 1, 2, …: the same number means the same connection

  std::string header(std::string_view name_in_lower_case) const;  // "" = absent
};

// What happens to one request after the other on a path.
class Script {
 public:
  template <std::convertible_to<std::string> Body>
  Script& answer(int status, Body&& body) {
    return answer(status, HeaderLines{}, std::string{std::forward<Body>(body)});
  }
  Script& answer(int status, HeaderLines headers = {}, std::string body = {});
  // The same, for reading aloud.
  template <class... Arguments>
  Script& then(int status, Arguments&&... arguments) {
    return answer(status, std::forward<Arguments>(arguments)...);
  }
  Script& then(int status, HeaderLines headers, std::string body = {}) {
    return answer(status, std::move(headers), std::move(body));
  }

  Script& when_released();  // what comes next in the script waits until release()

  Script& never_answer();           // reads the request and keeps the connection open
  Script& hang_up();                // closes without an answer
  Script& reset();                  // the same, rudely
  Script& send(std::string bytes);  // these bytes, then closes
  Script& send_then_reset(std::string bytes);
  Script& send_then_stall(std::string bytes);                            // these bytes, and then nothing more
  Script& cut_off(std::size_t announced_bytes, std::size_t sent_bytes);  // promises a body, sends part of it, closes
  Script& generate(std::uint64_t body_bytes);                            // a body made on the fly, with Content-Length
  Script& generate_endlessly();                                          // chunks until the client has enough
  Script& drip(std::string bytes);                                       // one byte every 20 ms, then closes

 private:
  friend class ScriptedServer;
  enum class Kind : std::uint8_t { answer, bytes, bytes_reset, bytes_stall, generated, endless, drip };
  struct Move {
    Kind kind = Kind::answer;
    std::string bytes = {};
    std::uint64_t count = 0;
    bool held = false;
  };
  Script& add(Kind kind, std::string bytes = {}, std::uint64_t count = 0);

  std::vector<Move> moves_;
  std::size_t next_ = 0;
  bool hold_next_ = false;
};

class ScriptedServer {
 public:
  ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  Script& on(const std::string& path);  // without the query; "*" is for every path without a script of its own

  std::string url(std::string_view target = "/") const;  // http://127.0.0.1:PORT/…
  std::string place() const;                             // 127.0.0.1:PORT
  std::uint16_t port() const noexcept;

  std::vector<RecordedRequest> requests() const;
  // Waits until so many have come; false: they have not within a minute.
  bool wait_for_requests(std::size_t count) const;
  void release();  // what waits for it, now and later

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::testing_support
