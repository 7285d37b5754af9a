#include "runtime/control_line.hpp"

#include <optional>

#include <reprise/codec.hpp>

#include "text/utf8.hpp"

namespace reprise::runtime {
namespace {

struct AnswerFields {
  std::optional<bool> ok = {};  // what is no answer has none
  std::string code = {};
  std::string message = {};
  std::string run = {};
};
REPRISE_FIELDS(AnswerFields, ok, code, message, run)

struct DoneFields {
  bool ok = true;
  std::string run = {};
};
REPRISE_FIELDS(DoneFields, ok, run)

struct RefusedFields {
  bool ok = false;
  std::string code = {};
  std::string message = {};
};
REPRISE_FIELDS(RefusedFields, ok, code, message)

ErrorCode code_of(std::string_view name) {
  for (auto number = 0; number <= static_cast<int>(ErrorCode::store_behind); ++number) {
    const auto code = static_cast<ErrorCode>(number);
    if (name_of(code) == name) return code;
  }
  return ErrorCode::invalid;  // of a newer version; its message still says what happened
}

std::unexpected<Error> not_understood(std::string why) {
  return std::unexpected{Error{ErrorCode::invalid, "The request was not understood: " + std::move(why)}};
}

}  // namespace

REPRISE_FIELDS(ControlTask, handler, flow, input, items, key, delay_ms, priority, deadline_ms, labels, queue, tenant,
               traceparent, max_tokens, max_micros)
REPRISE_FIELDS(ControlRequest, operation, run, text, payload, request, by, why, task)

std::string request_line(const ControlRequest& request) { return Codec<ControlRequest>::encode(request) + "\n"; }

std::string answer_line(const ControlAnswer& answer) {
  if (answer && answer->run.empty()) return "{\"ok\":true}\n";
  if (answer) return Codec<DoneFields>::encode({true, answer->run}) + "\n";
  const Error& error = answer.error();
  return Codec<RefusedFields>::encode({false, std::string{name_of(error.code)}, error.message}) + "\n";
}

std::expected<ControlRequest, Error> read_request(std::string_view line) {
  if (!text::is_utf8(line)) return not_understood("it is no UTF-8.");
  auto request = Codec<ControlRequest>::decode(line);
  if (!request)
    return not_understood("a line with one JSON object was expected, whose texts are texts: " + request.error());
  if (request->operation.empty()) return not_understood("it names no operation.");
  return *std::move(request);
}

ControlAnswer read_answer(std::string_view line) {
  auto answer = Codec<AnswerFields>::decode(line);
  if (!answer || !answer->ok) {
    return std::unexpected{
        Error{ErrorCode::store_unavailable,
              "The owner of the store answered something that is not understood. Is it another version?"}};
  }
  if (*answer->ok) return ControlDone{std::move(answer->run)};
  return std::unexpected{Error{code_of(answer->code), std::move(answer->message)}};
}

}  // namespace reprise::runtime
