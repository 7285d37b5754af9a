// The lines that go over the control socket: requests and answers as JSON.
//
// Members that are unknown are passed over, so that an older end understands a newer one. Thread safety: pure functions.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <reprise/error.hpp>

#include "runtime/control.hpp"

namespace reprise::runtime {

// With the line end.
std::string request_line(const ControlRequest& request);
std::string answer_line(const ControlAnswer& answer);

// Without the line end.
std::expected<ControlRequest, Error> read_request(std::string_view line);
ControlAnswer read_answer(std::string_view line);

}  // namespace reprise::runtime
