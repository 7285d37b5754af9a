// JSON Schema (draft-07) of an event as to_json() writes it, for programs that read `--progress json` and `reprise events --format json`.
#pragma once

#include <string>

namespace reprise::event {

std::string event_schema();

}  // namespace reprise::event
