// What a command records with a run beside its work: the labels it was given, the caller's trace, and that it came from the command line.
//
// Thread safety: reads the environment.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include <reprise/event.hpp>

namespace reprise::cli {

inline constexpr const char* origin_of_commands = "cli";

// `labels`: NAME=VALUE. The error is a sentence. A TRACEPARENT in the environment that is none is passed over, as its specification wants.
std::expected<RunAttributes, std::string> attributes_here(const std::vector<std::string>& labels);

}  // namespace reprise::cli
