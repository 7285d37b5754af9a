#include "runtime/control_line.hpp"

#include <optional>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace reprise::runtime {
namespace {

namespace boost_json = boost::json;

std::optional<boost_json::object> object_in(std::string_view line) {
  boost_json::error_code error;
  boost_json::value value = boost_json::parse(line, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

// False: it is there and no text.
bool read_text(const boost_json::object& object, std::string_view name, std::string& out) {
  const boost_json::value* const value = object.if_contains(name);
  if (value == nullptr) return true;
  if (!value->is_string()) return false;
  out = std::string_view{value->get_string()};
  return true;
}

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

std::string request_line(const ControlRequest& request) {
  const boost_json::object object{
      {"operation", request.operation}, {"run", request.run}, {"text", request.text}, {"payload", request.payload}};
  return boost_json::serialize(object) + "\n";
}

std::string answer_line(const ControlAnswer& answer) {
  boost_json::object object{{"ok", answer.has_value()}};
  if (!answer) {
    object["code"] = name_of(answer.error().code);
    object["message"] = answer.error().message;
  }
  return boost_json::serialize(object) + "\n";
}

std::expected<ControlRequest, Error> read_request(std::string_view line) {
  const auto object = object_in(line);
  if (!object) return not_understood("a line with one JSON object was expected.");
  ControlRequest request;
  const bool is_text = read_text(*object, "operation", request.operation) && read_text(*object, "run", request.run) &&
                       read_text(*object, "text", request.text) && read_text(*object, "payload", request.payload);
  if (!is_text) return not_understood("operation, run, text and payload are texts.");
  if (request.operation.empty()) return not_understood("it names no operation.");
  return request;
}

ControlAnswer read_answer(std::string_view line) {
  const auto object = object_in(line);
  const boost_json::value* const ok = object ? object->if_contains("ok") : nullptr;
  if (ok == nullptr || !ok->is_bool()) {
    return std::unexpected{
        Error{ErrorCode::store_unavailable,
              "The owner of the store answered something that is not understood. Is it another version?"}};
  }
  if (ok->get_bool()) return {};
  std::string code;
  Error error;
  read_text(*object, "code", code);
  read_text(*object, "message", error.message);
  error.code = code_of(code);
  return std::unexpected{std::move(error)};
}

}  // namespace reprise::runtime
