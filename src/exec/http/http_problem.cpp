#include "exec/http/http_problem.hpp"

#include <cerrno>
#include <system_error>

#include "exec/http/curl_library.hpp"
#include "text/duration.hpp"

namespace reprise::exec {
namespace {

std::string bytes_of_answer(const HttpFacts& facts) {
  std::string words = std::to_string(facts.received);
  if (facts.announced.has_value()) words += " of " + std::to_string(*facts.announced);
  return words + " bytes";
}

HttpDiagnosis no_connection(const HttpFacts& facts) {
  const std::string place{facts.place};
  if (facts.system_error == ECONNREFUSED) return {HttpProblem::refused, "connection refused by " + place};
  std::string message = "no connection to " + place;
  if (facts.system_error != 0) message += ": " + std::error_code{facts.system_error, std::generic_category()}.message();
  return {HttpProblem::refused, std::move(message)};
}

HttpDiagnosis out_of_time(const HttpFacts& facts) {
  const std::string place{facts.place};
  const bool connecting_is_shorter = facts.timeout <= Duration{0} || facts.connect_timeout < facts.timeout;
  const Duration limit = !facts.connected && facts.connect_timeout > Duration{0} && connecting_is_shorter
                             ? facts.connect_timeout
                             : facts.timeout;
  const std::string within = " within " + text::format_duration(limit);
  if (!facts.connected) return {HttpProblem::timed_out, "no connection to " + place + within};
  if (facts.status == 0) return {HttpProblem::timed_out, "no answer from " + place + within};
  return {HttpProblem::timed_out,
          "the answer of " + place + " was not complete" + within + ": " + bytes_of_answer(facts) + " came"};
}

HttpDiagnosis too_large(const HttpFacts& facts) {
  std::string message = "the answer of " + std::string{facts.place};
  if (facts.status != 0) message += " (status " + std::to_string(facts.status) + ")";
  message += facts.overrun == HttpOverrun::body
                 ? " is larger than the " + std::to_string(facts.body_max) + " bytes allowed"
                 : " has more headers than the 65536 bytes allowed";
  return {HttpProblem::too_large, std::move(message)};
}

HttpDiagnosis cut_off(const HttpFacts& facts) {
  const std::string place{facts.place};
  if (facts.status == 0) return {HttpProblem::reset, place + " closed the connection without an answer"};
  if (!facts.headers_complete)
    return {HttpProblem::reset, "the answer of " + place + " ended in the middle of its headers"};
  return {HttpProblem::reset, "the answer of " + place + " ended after " + bytes_of_answer(facts)};
}

HttpDiagnosis garbage(const HttpFacts& facts) {
  const std::string place{facts.place};
  if (facts.status == 0) return {HttpProblem::garbage, place + " did not answer with HTTP"};
  return {HttpProblem::garbage, "the answer of " + place + " breaks the rules of HTTP"};
}

// A peer that goes away during the handshake says nothing about certificates: that may work the next time.
HttpDiagnosis no_secure_connection(const HttpFacts& facts) {
  const std::string place{facts.place};
  for (const std::string_view gone : {"SSL_ERROR_SYSCALL", "Connection reset by peer", "unexpected eof"}) {
    if (facts.detail.find(gone) != std::string_view::npos)
      return {HttpProblem::reset, place + " closed the connection while it was being secured"};
  }
  return {HttpProblem::tls, "no secure connection to " + place + ": " + std::string{facts.detail}};
}

HttpDiagnosis broken_reception(const HttpFacts& facts) {
  // libcurl has one code for a connection that breaks and for chunks that are none; only its words differ.
  if (facts.detail.find("chunked-encoding") != std::string_view::npos) return garbage(facts);
  return {HttpProblem::reset, "the connection was reset by " + std::string{facts.place} +
                                  (facts.headers_complete ? " after " + bytes_of_answer(facts) + " of the answer"
                                                          : std::string{" before it answered"})};
}

bool is_about_tls(CURLcode code) {
  switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_USE_SSL_FAILED:
      return true;
    default:
      return false;
  }
}

}  // namespace

HttpDiagnosis diagnose(const HttpFacts& facts) {
  const std::string place{facts.place};
  // A single line of headers that does not end overruns libcurl before it overruns us, and that is what it calls it.
  const bool endless_line = facts.code == CURLE_OUT_OF_MEMORY && facts.connected && !facts.headers_complete;
  if (facts.overrun != HttpOverrun::none || endless_line) return too_large(facts);
  if (is_about_tls(facts.code)) return no_secure_connection(facts);
  switch (facts.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {HttpProblem::dns, "the name of " + place + " is not known (DNS)"};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {HttpProblem::dns, "the name of the proxy for " + place + " is not known (DNS)"};
    case CURLE_COULDNT_CONNECT:
      return no_connection(facts);
    case CURLE_OPERATION_TIMEDOUT:
      return out_of_time(facts);
    case CURLE_OK:                   // closed, and libcurl does not mind that the headers have no end
    case CURLE_ABORTED_BY_CALLBACK:  // closed, and a request that must not be sent twice was about to be
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2_STREAM:
    case CURLE_PARTIAL_FILE:
      return cut_off(facts);
    case CURLE_SEND_ERROR:
      return {HttpProblem::reset, "the connection to " + place + " broke while the request was sent"};
    case CURLE_RECV_ERROR:
      return broken_reception(facts);
    case CURLE_UNSUPPORTED_PROTOCOL:  // "HTTP/0.9", which is what anything without a status line looks like
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP2:
      return garbage(facts);
    default:
      return {HttpProblem::other, "the request to " + place + " failed: " + curl().easy_strerror(facts.code)};
  }
}

}  // namespace reprise::exec
