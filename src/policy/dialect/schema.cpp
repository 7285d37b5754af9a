// JSON Schema of the native policy, for editors. tests/schema_test.cpp holds it against the reader.
#include <reprise/dialect.hpp>

namespace reprise {

std::string policy_schema() {
  return R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Reprise retry policy",
  "description": "How often, how long and on what a piece of work is retried. A name alone stands for {policy: name}.",
  "definitions": {
    "duration": {
      "description": "A number and a unit, such as 500ms, 2s or 1h30m; only 0 may stand bare.",
      "oneOf": [
        {"type": "string", "pattern": "^(0|([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d|w))+)$"},
        {"type": "integer", "enum": [0]}
      ]
    },
    "optional_duration": {"oneOf": [{"$ref": "#/definitions/duration"}, {"type": "null"}]},
    "policy_name": {"type": "string", "enum": ["none", "standard", "aggressive", "patient"]},
    "rules": {
      "type": "array",
      "maxItems": 256,
      "items": {
        "type": "string",
        "description": "A class, a kind, an error type, exit:75, exit:64-74, signal:KILL, http:503, http:5xx or /a pattern/.",
        "pattern": "^(/.+/|exit:[0-9]+(-[0-9]+)?|http:([1-5]xx|[1-5][0-9][0-9])|signal:[A-Z0-9]+|[A-Za-z_][A-Za-z0-9_.]*)$"
      }
    }
  },
  "oneOf": [
    {"$ref": "#/definitions/policy_name"},
    {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "policy": {"$ref": "#/definitions/policy_name"},
        "max_attempts": {
          "description": "Total runs, the first included. unlimited or null: no cap.",
          "oneOf": [{"type": "integer", "minimum": 1, "maximum": 4294967296}, {"type": "string", "enum": ["unlimited"]}, {"type": "null"}]
        },
        "max_elapsed": {"description": "Give up this long after the work was created.", "$ref": "#/definitions/optional_duration"},
        "attempt_timeout": {"description": "Each attempt is stopped after this.", "$ref": "#/definitions/optional_duration"},
        "limits": {
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "worker_lost": {
              "description": "So many losses in a row (the engine or the worker died during the attempt) are made again; 3 when absent.",
              "type": "integer",
              "minimum": 0,
              "maximum": 4294967295
            }
          }
        },
        "backoff": {
          "oneOf": [
            {"type": "string", "enum": ["constant", "linear", "exponential", "fibonacci", "decorrelated"]},
            {"type": "array", "items": {"$ref": "#/definitions/duration"}}
          ]
        },
        "initial": {"description": "The first delay.", "$ref": "#/definitions/duration"},
        "increment": {"description": "Linear backoff only; the initial delay when absent.", "$ref": "#/definitions/duration"},
        "factor": {"description": "Exponential backoff only.", "type": "number", "minimum": 1},
        "max": {"description": "Cap on the delay before jitter.", "$ref": "#/definitions/optional_duration"},
        "jitter": {
          "oneOf": [
            {"type": "string", "enum": ["none", "full", "equal"]},
            {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?%$"}
          ]
        },
        "only_on": {"description": "Retry on these alone; an empty list retries on nothing.", "$ref": "#/definitions/rules"},
        "never_on": {"description": "Never retry on these; wins over only_on.", "$ref": "#/definitions/rules"},
        "honor_retry_after": {"description": "Wait at least as long as the server asks for.", "type": "boolean"}
      }
    }
  ]
}
)json";
}

}  // namespace reprise
