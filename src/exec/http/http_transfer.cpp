#include "exec/http/http_transfer.hpp"

#include <algorithm>
#include <new>

#include "text/ascii.hpp"
#include "text/duration.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t answer_header_bytes_max = 64U << 10U;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

// libcurl counts milliseconds, and 0 means none: what is shorter becomes one.
long milliseconds_of(Duration duration) {
  using std::chrono::milliseconds;
  constexpr milliseconds longest = std::chrono::hours{24 * 20};  // libcurl adds it up in 32 bits on some platforms
  return static_cast<long>(std::clamp(std::chrono::ceil<milliseconds>(duration), milliseconds{1}, longest).count());
}

// RFC 9110, 9.2.2: only these may be sent again by a client that does not know what became of the first.
bool may_be_sent_twice(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" || method == "OPTIONS";
}

}  // namespace

const std::string* HttpEnd::header(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find(headers, name, [](const auto& header) { return std::string_view{header.first}; });
  return found == headers.end() ? nullptr : &found->second;
}

HttpTransfer::HttpTransfer(HttpClient::Ticket ticket, HttpRequest request, HttpTarget target, HttpClient::Done done)
    : ticket_{ticket},
      request_{std::move(request)},
      target_{std::move(target)},
      done_{std::move(done)},
      handle_{curl().easy_init()} {
  if (handle_ == nullptr) throw std::bad_alloc{};
  prepare();
}

HttpTransfer& HttpTransfer::of(CURL* handle) {
  char* self = nullptr;
  curl().easy_getinfo(handle, CURLINFO_PRIVATE, &self);
  return *reinterpret_cast<HttpTransfer*>(self);
}

template <class Value>
void HttpTransfer::set(CURLoption option, Value value) {
  const CURLcode code = curl().easy_setopt(handle(), option, value);
  if (prepared_ == CURLE_OK) prepared_ = code;
}

void HttpTransfer::prepare() {
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, detail_.data());
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);  // the path that was asked for, dots and all
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // giving up while a name is looked up must not hold up all the others
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_USERAGENT, "reprise");
  if (target_.loopback) set(CURLOPT_PROXY, "");  // a proxy's loopback would be another machine
  set_connect_timeout();
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_PREREQFUNCTION, &on_send);
  set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  prepare_method();
  prepare_headers();
}

// The time of the whole request is the client's to judge, because libcurl looks at the clock before it looks at what has come. Until the
// request is sent nothing can have come, and libcurl divides the time among the addresses of the host: there it needs the limit.
void HttpTransfer::set_connect_timeout() {
  Duration limit = request_.connect_timeout;
  if (limit == Duration{0} || (request_.timeout != Duration{0} && request_.timeout < limit)) limit = request_.timeout;
  if (limit != Duration{0}) set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds_of(limit));
}

void HttpTransfer::prepare_method() {
  const std::string& method = request_.method;
  const bool tells_length = method == "POST" || method == "PUT" || method == "PATCH";  // also when it is 0
  if (method == "HEAD") set(CURLOPT_NOBODY, 1L);
  if (method != "HEAD" && (tells_length || !request_.body.empty())) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(CURLOPT_POSTFIELDS, request_.body.data());
  }
  set(CURLOPT_CUSTOMREQUEST, method.c_str());
}

void HttpTransfer::prepare_headers() {
  for (const auto& [name, value] : request_.headers) {
    const std::string_view content = trimmed(value);
    add_header(content.empty() ? name + ";" : name + ": " + std::string{content});
  }
  // What libcurl would add by itself: a form's content type, and a question whose answer it would wait a second for.
  if (!has_header("content-type")) add_header("Content-Type:");
  if (!has_header("expect")) add_header("Expect:");
  set(CURLOPT_HTTPHEADER, header_lines_.get());
}

void HttpTransfer::add_header(const std::string& line) {
  curl_slist* longer = curl().slist_append(header_lines_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc{};
  if (header_lines_ == nullptr) header_lines_.reset(longer);  // appending leaves the head where it is
}

bool HttpTransfer::has_header(std::string_view name_in_lower_case) const {
  return std::ranges::any_of(request_.headers,
                             [&](const auto& header) { return text::lowered(header.first) == name_in_lower_case; });
}

std::size_t HttpTransfer::on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  HttpTransfer& transfer = *static_cast<HttpTransfer*>(self);
  transfer.last_byte = system_env().now();
  return transfer.take_header({bytes, size * count}) ? size * count : 0;
}

std::size_t HttpTransfer::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  HttpTransfer& transfer = *static_cast<HttpTransfer*>(self);
  transfer.last_byte = system_env().now();
  // A different number tells libcurl to stop; 0 could be the number itself.
  return transfer.take_body({bytes, size * count}) ? size * count : size * count + 1;
}

// Called whenever the request is about to be sent. libcurl does that by itself a second time when a connection that was kept open
// turns out to be dead, and cannot know whether the request has arrived there before.
int HttpTransfer::on_send(void* self, char*, char*, int, int) {
  HttpTransfer& transfer = *static_cast<HttpTransfer*>(self);
  ++transfer.sent_;
  const bool allowed = transfer.sent_ == 1 || may_be_sent_twice(transfer.request_.method);
  return allowed ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

bool HttpTransfer::take_header(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > answer_header_bytes_max) {
    overrun_ = HttpOverrun::headers;
    return false;
  }
  if (headers_complete_) return true;  // trailers: counted, not kept
  if (line.starts_with("HTTP/")) {     // the answer, after any number of "100 Continue" before it
    end_.headers.clear();
    long status = 0;
    curl().easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
    end_.status = static_cast<int>(status);
    return true;
  }
  if (trimmed(line).empty()) {
    headers_complete_ = end_.status >= 200;
    return true;
  }
  const bool continued = line.front() == ' ' || line.front() == '\t';  // RFC 9112, 5.2
  const std::size_t colon = line.find(':');
  if (continued && !end_.headers.empty()) {
    end_.headers.back().second.append(" ").append(trimmed(line));
  } else if (colon != std::string_view::npos) {
    end_.headers.emplace_back(text::lowered(trimmed(line.substr(0, colon))), trimmed(line.substr(colon + 1)));
  }
  return true;
}

bool HttpTransfer::take_body(std::string_view bytes) {
  const curl_off_t announced = number(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
  const bool will_be_too_large = announced > 0 && static_cast<std::uint64_t>(announced) > request_.body_max;
  if (will_be_too_large || bytes.size() > request_.body_max - end_.body.size()) {
    overrun_ = HttpOverrun::body;
    return false;
  }
  end_.body.append(bytes);
  return true;
}

curl_off_t HttpTransfer::number(CURLINFO info) const {
  curl_off_t value = 0;
  curl().easy_getinfo(handle(), info, &value);
  return value;
}

HttpFacts HttpTransfer::facts_about(CURLcode code) const {
  long system_error = 0;
  curl().easy_getinfo(handle(), CURLINFO_OS_ERRNO, &system_error);
  const curl_off_t announced = number(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
  HttpFacts facts{.code = code, .place = target_.place};
  facts.detail = detail_.data();
  facts.system_error = static_cast<int>(system_error);
  facts.connected = sent_ > 0;
  facts.status = end_.status;
  facts.headers_complete = headers_complete_;
  facts.received = end_.body.size();
  if (announced >= 0 && headers_complete_) facts.announced = static_cast<std::uint64_t>(announced);
  facts.overrun = overrun_;
  facts.body_max = request_.body_max;
  facts.timeout = request_.timeout;
  facts.connect_timeout = request_.connect_timeout;
  return facts;
}

HttpEnd HttpTransfer::conclude(CURLcode code) {
  end_.took = std::chrono::microseconds{number(CURLINFO_TOTAL_TIME_T)};
  if (code == CURLE_OK && headers_complete_) return std::move(end_);
  HttpDiagnosis diagnosis = diagnose(facts_about(code));
  return {.problem = diagnosis.problem, .message = std::move(diagnosis.message), .took = end_.took};
}

HttpEnd HttpTransfer::conclude_canceled() const {
  return {.problem = HttpProblem::canceled,
          .message = "the request to " + target_.place + " was canceled",
          .took = std::chrono::microseconds{number(CURLINFO_TOTAL_TIME_T)}};
}

HttpEnd HttpTransfer::conclude_stalled() const {
  return {
      .problem = HttpProblem::stalled,
      .message = "stalled: nothing came from " + target_.place + " for " + text::rough_duration(request_.stall_timeout),
      .took = std::chrono::microseconds{number(CURLINFO_TOTAL_TIME_T)}};
}

}  // namespace reprise::exec
