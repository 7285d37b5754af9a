// One request on its way: what libcurl is told about it, what it has brought so far, and how it ended.
//
// Thread safety: none; a transfer lives on its client's thread.
#pragma once

#include <array>
#include <memory>

#include "exec/http/curl_library.hpp"
#include "exec/http/http_client.hpp"
#include "exec/http/http_problem.hpp"
#include "exec/http/http_target.hpp"

namespace reprise::exec {

class HttpTransfer {
 public:
  HttpTransfer(HttpClient::Ticket ticket, HttpRequest request, HttpTarget target, HttpClient::Done done);
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  static HttpTransfer& of(CURL* handle);

  CURL* handle() const noexcept { return handle_.get(); }
  HttpClient::Ticket ticket() const noexcept { return ticket_; }
  HttpClient::Done& done() noexcept { return done_; }
  CURLcode prepared() const noexcept { return prepared_; }  // anything but CURLE_OK: it cannot be sent

  Duration timeout() const noexcept { return request_.timeout; }
  Duration stall_timeout() const noexcept { return request_.stall_timeout; }

  HttpEnd conclude(CURLcode code);  // once
  HttpEnd conclude_canceled() const;
  HttpEnd conclude_stalled() const;

  // The client's, which has the clock.
  Env::TimePoint ends = Env::TimePoint::max();  // when its time is over
  Env::TimePoint last_byte = {};                // when something came last, or it began
  Env::TimePoint due = Env::TimePoint::max();   // the timer that is set for it

 private:
  struct HandleDeleter {
    void operator()(CURL* handle) const noexcept { curl().easy_cleanup(handle); }
  };
  struct ListDeleter {
    void operator()(curl_slist* list) const noexcept { curl().slist_free_all(list); }
  };

  template <class Value>
  void set(CURLoption option, Value value);
  void prepare();
  void set_connect_timeout();
  void prepare_method();
  void prepare_headers();
  void add_header(const std::string& line);
  bool has_header(std::string_view name_in_lower_case) const;

  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);
  static int on_send(void* self, char* peer, char* own, int peer_port, int own_port);
  bool take_header(std::string_view line);
  bool take_body(std::string_view bytes);
  HttpFacts facts_about(CURLcode code) const;
  curl_off_t number(CURLINFO info) const;

  const HttpClient::Ticket ticket_;
  const HttpRequest request_;
  const HttpTarget target_;
  HttpClient::Done done_;

  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::unique_ptr<curl_slist, ListDeleter> header_lines_;
  std::unique_ptr<CURL, HandleDeleter> handle_;  // after what it points to
  CURLcode prepared_ = CURLE_OK;

  int sent_ = 0;  // how often the request went out
  std::size_t header_bytes_ = 0;
  bool headers_complete_ = false;
  HttpOverrun overrun_ = HttpOverrun::none;
  HttpEnd end_;
};

}  // namespace reprise::exec
