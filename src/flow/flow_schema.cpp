// JSON Schema of flow documents, for editors. tests/flow/flow_schema_test.cpp holds it against the reader.
//
// What a schema cannot say is left to the reader: names that must exist, circles, expressions, and which keys go together. A verb of the
// user's own is a key with text, so an unknown key with text on a step is accepted here and refused there.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include <reprise/dialect.hpp>

#include "flow/reader/reader.hpp"
#include "text/value.hpp"

namespace reprise::flow {
namespace {

// Texts with expressions may stand wherever a scalar is read as text.
constexpr const char* schema_text = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Reprise flow",
  "description": "Steps that need each other, and how each of them is retried.",
  "oneOf": [{"$ref": "#/definitions/native_document"}, {"$ref": "#/definitions/mapreduce_document"}],
  "definitions": {
    "text": {"type": "string", "minLength": 1},
    "plain_text": {"type": "string", "minLength": 1, "not": {"pattern": "\\$\\{"}},
    "scalar": {"type": ["string", "number", "boolean"]},
    "description": {"description": "For people only.", "type": ["string", "number", "boolean"]},
    "name": {"type": "string", "pattern": "^[A-Za-z0-9_.-]+$"},
    "step_id": {"description": "Letters, digits, _, . and -.", "type": ["string", "number", "boolean"], "pattern": "^[A-Za-z0-9_.-]+$"},
    "step_ids": {"oneOf": [{"$ref": "#/definitions/step_id"}, {"type": "array", "uniqueItems": true, "items": {"$ref": "#/definitions/step_id"}}]},
    "positive_duration": {
      "description": "A number and a unit, such as 500ms, 2s or 1h30m.",
      "type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d|w))+$", "not": {"pattern": "^([0.]+[a-z]+)+$"}
    },
    "count": {"type": "integer", "minimum": 1, "maximum": 1000000},
    "variables": {
      "type": "object", "maxProperties": 1000,
      "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
      "additionalProperties": {"$ref": "#/definitions/scalar"}
    },
    "failure_class": {"type": "string", "enum": ["transient", "deterministic", "budget_exhausted", "contract_failure", "test_failure", "canceled"]},
    "circuit_breaker": {
      "description": "The same failure this often stops the step.",
      "type": "object", "additionalProperties": false,
      "properties": {
        "limit": {"$ref": "#/definitions/count"},
        "tracked_classes": {"type": "array", "items": {"$ref": "#/definitions/failure_class"}}
      }
    },
    "policy_or_name": {"oneOf": [{"type": "string", "minLength": 1}, {"$ref": "#/definitions/policy"}]},
    "azolla_policy": {"type": "object"},
    "argyll_policy": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "max_retries": {"type": "integer", "minimum": -1}, "backoff": {"type": "integer", "minimum": 0},
        "init_backoff": {"type": "integer", "minimum": 0}, "max_backoff": {"type": "integer", "minimum": 0},
        "backoff_type": {"type": "string", "enum": ["fixed", "linear", "exponential"]}, "parallelism": {"$ref": "#/definitions/count"}
      }
    },
    "rh_agents_policy": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "max_attempts": {"type": "integer", "minimum": 1},
        "backoff_strategy": {"type": "string", "enum": ["constant", "linear", "exponential", "fibonacci"]},
        "initial_delay": {"type": "number", "minimum": 0}, "max_delay": {"type": "number", "minimum": 0},
        "backoff_multiplier": {"type": "number", "minimum": 1}, "jitter": {"type": "boolean"},
        "retry_on_exceptions": {"type": ["array", "null"], "items": {"type": "string"}},
        "exclude_exceptions": {"type": ["array", "null"], "items": {"type": "string"}},
        "retry_timeout": {"type": ["number", "null"], "minimum": 0}, "enabled": {"type": "boolean"}
      }
    },
    "prodigy_policy": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "attempts": {"type": "integer", "minimum": 1}, "max_attempts": {"type": "integer", "minimum": 1},
        "backoff": {"type": ["string", "object"]}, "initial_delay": {"type": "string"}, "max_delay": {"type": "string"},
        "jitter": {"type": "boolean"}, "jitter_factor": {"type": "number", "minimum": 0, "maximum": 1},
        "retry_budget": {"type": "string"}, "retry_on": {"type": "array"}
      }
    },
    "retry_config": {"anyOf": [{"$ref": "#/definitions/rh_agents_policy"}, {"$ref": "#/definitions/prodigy_policy"}]},
    "item_policy": {"description": "Each item brings its policy along; null: it has none.", "type": "string", "pattern": "^\\$\\{.*\\}$"},
    "argv": {"type": "array", "minItems": 1, "maxItems": 10000, "items": {"$ref": "#/definitions/scalar"}},
    "status": {"type": ["string", "integer"], "pattern": "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$", "minimum": 100, "maximum": 599},
    "http": {
      "description": "A request.",
      "type": "object", "additionalProperties": false, "required": ["url"],
      "properties": {
        "method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]},
        "url": {"type": "string", "pattern": "^(https?://|\\$\\{)"},
        "headers": {"type": "object", "propertyNames": {"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"}, "additionalProperties": {"$ref": "#/definitions/scalar"}},
        "body": {"description": "Text is sent as it is, everything else as JSON."},
        "expect": {
          "type": "object", "additionalProperties": false,
          "properties": {
            "status": {"oneOf": [{"$ref": "#/definitions/status"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/status"}}]},
            "schema": {"$ref": "#/definitions/plain_text"}
          }
        },
        "async": {"description": "A 2xx means accepted; a webhook brings the result.", "type": "boolean"}
      }
    },
    "command": {
      "description": "Exactly one of run, argv, http or the name of an agent.",
      "type": "object", "minProperties": 1, "maxProperties": 3,
      "properties": {
        "run": {"$ref": "#/definitions/text"}, "argv": {"$ref": "#/definitions/argv"}, "http": {"$ref": "#/definitions/http"},
        "shell": {"$ref": "#/definitions/interpreter"}, "stdin": {"$ref": "#/definitions/standard_input"}
      },
      "additionalProperties": {"$ref": "#/definitions/text"}
    },
    "interpreter": {
      "description": "What reads the script of run: a program with its options; {} stands for the script's file, else it is the last argument.",
      "oneOf": [{"$ref": "#/definitions/plain_text"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/plain_text"}}]
    },
    "standard_input": {"description": "What the command reads: text as it is, everything else as JSON."},
    "item_source": {
      "oneOf": [
        {"description": "An expression.", "type": "string", "pattern": "^\\$\\{"},
        {"type": "array"},
        {
          "type": "object", "additionalProperties": false, "required": ["file"],
          "properties": {"file": {"$ref": "#/definitions/text"}, "path": {"$ref": "#/definitions/plain_text"}}
        },
        {
          "type": "object", "additionalProperties": false, "required": ["command"],
          "properties": {
            "command": {"oneOf": [{"$ref": "#/definitions/text"}, {"$ref": "#/definitions/argv"}, {"$ref": "#/definitions/command"}]},
            "path": {"$ref": "#/definitions/plain_text"}
          }
        }
      ]
    },
    "on_failure": {
      "oneOf": [
        {"type": "string", "enum": ["fail", "skip", "continue", "dead_letter"]},
        {"type": "object", "additionalProperties": false, "required": ["goto"], "properties": {"goto": {"$ref": "#/definitions/name"}}},
        {"allOf": [{"$ref": "#/definitions/command"}, {"not": {"required": ["goto"]}}]}
      ]
    },
    "step": {
      "type": "object", "required": ["id"],
      "properties": {
        "id": {"$ref": "#/definitions/step_id"},
        "description": {"$ref": "#/definitions/description"},
        "needs": {"description": "It starts when these are done.", "$ref": "#/definitions/step_ids"},
        "if": {"description": "The step is skipped unless this is true.", "type": ["string", "number", "boolean", "null"], "minLength": 1},
        "for_each": {"description": "One work item for each element.", "$ref": "#/definitions/item_source"},
        "late": {"description": "Of async http: an earlier attempt's success, reported late, does not count.", "type": "string", "enum": ["refuse"]},
        "max_parallel": {"$ref": "#/definitions/count"},
        "tolerate": {
          "description": "So many failed items do not fail the step.",
          "oneOf": [{"type": "integer", "minimum": 0, "maximum": 4294967295}, {"type": "string", "pattern": "^[0-9]+(\\.[0-9]*)?%$"}]
        },
        "run": {"description": "A line for sh.", "$ref": "#/definitions/text"},
        "argv": {"description": "A program and its arguments, no shell.", "$ref": "#/definitions/argv"},
        "shell": {"$ref": "#/definitions/interpreter"},
        "stdin": {"$ref": "#/definitions/standard_input"},
        "label": {"description": "What people see beside the index of an item.", "$ref": "#/definitions/text"},
        "http": {"$ref": "#/definitions/http"},
        "wait": {
          "description": "A duration, or a time such as 2026-11-16T03:00:00Z.",
          "oneOf": [
            {"$ref": "#/definitions/duration"},
            {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"}
          ]
        },
        "signal": {"description": "Waits until this comes.", "$ref": "#/definitions/plain_text"},
        "flow": {"description": "The file of another flow.", "$ref": "#/definitions/text"},
        "params": {"description": "For flow.", "type": "object"},
        "call": {"description": "A handler of the program that embeds the engine.", "$ref": "#/definitions/plain_text"},
        "retry": {"anyOf": [{"$ref": "#/definitions/policy_or_name"}, {"$ref": "#/definitions/item_policy"}]},
        "retry_policy": {"anyOf": [{"$ref": "#/definitions/azolla_policy"}, {"$ref": "#/definitions/item_policy"}]},
        "retry_config": {"anyOf": [{"$ref": "#/definitions/retry_config"}, {"$ref": "#/definitions/item_policy"}]},
        "work_config": {"$ref": "#/definitions/argyll_policy"},
        "timeout": {"description": "Each attempt is stopped after this.", "$ref": "#/definitions/positive_duration"},
        "on_failure": {"$ref": "#/definitions/on_failure"},
        "max_visits": {"$ref": "#/definitions/count"},
        "require": {"description": "Runs once, before the first attempt.", "$ref": "#/definitions/command"},
        "check": {
          "description": "What a good result must pass.",
          "type": "object", "minProperties": 1, "maxProperties": 4,
          "properties": {
            "shell": {"$ref": "#/definitions/interpreter"}, "stdin": {"$ref": "#/definitions/standard_input"},
            "schema": {"$ref": "#/definitions/plain_text"}, "run": {"$ref": "#/definitions/text"},
            "argv": {"$ref": "#/definitions/argv"}, "http": {"$ref": "#/definitions/http"}
          },
          "additionalProperties": {"$ref": "#/definitions/text"}
        },
        "fix": {"description": "Runs before each retry after a test_failure.", "$ref": "#/definitions/command"},
        "fallback": {
          "type": "object", "minProperties": 1, "maxProperties": 4,
          "properties": {
            "shell": {"$ref": "#/definitions/interpreter"}, "stdin": {"$ref": "#/definitions/standard_input"},
            "when": {"type": "string", "enum": ["budget_exhausted", "gave_up"]}, "run": {"$ref": "#/definitions/text"},
            "argv": {"$ref": "#/definitions/argv"}, "http": {"$ref": "#/definitions/http"}
          },
          "additionalProperties": {"$ref": "#/definitions/text"}
        },
        "kind": {"type": "string", "enum": ["test"]},
        "type": {"description": "Actor type: tool, llm, agent or your own.", "$ref": "#/definitions/plain_text"},
        "output": {"type": "string", "enum": ["text", "json", "lines"]},
        "env": {"$ref": "#/definitions/variables"},
        "directory": {"$ref": "#/definitions/plain_text"},
        "stall_timeout": {"description": "No output for this long stops the attempt; 0 = off.", "$ref": "#/definitions/duration"},
        "circuit_breaker": {"$ref": "#/definitions/circuit_breaker"},
        "effect": {
          "description": "at_most_once: what was lost, interrupted or out of time is not made again, but kept as a dead letter.",
          "type": "string", "enum": ["keyed", "idempotent", "at_most_once"]
        }
      },
      "additionalProperties": {"description": "The prompt of an agent.", "$ref": "#/definitions/text"},
      "allOf": [
        {
          "oneOf": [
            {"required": ["run"]}, {"required": ["argv"]}, {"required": ["http"]}, {"required": ["wait"]}, {"required": ["signal"]},
            {"required": ["flow"]}, {"required": ["call"]},
            {"not": {"anyOf": [
              {"required": ["run"]}, {"required": ["argv"]}, {"required": ["http"]}, {"required": ["wait"]}, {"required": ["signal"]},
              {"required": ["flow"]}, {"required": ["call"]}]}}
          ]
        },
        {"not": {"required": ["retry", "retry_policy"]}}, {"not": {"required": ["retry", "retry_config"]}},
        {"not": {"required": ["retry", "work_config"]}}, {"not": {"required": ["retry_policy", "retry_config"]}},
        {"not": {"required": ["retry_policy", "work_config"]}}, {"not": {"required": ["retry_config", "work_config"]}}
      ],
      "dependencies": {"max_parallel": ["for_each"], "tolerate": ["for_each"], "label": ["for_each"], "params": ["flow"], "shell": ["run"]}
    },
    "steps": {"type": "array", "maxItems": 10000, "items": {"$ref": "#/definitions/step"}},
    "parameter": {
      "anyOf": [
        {"type": ["string", "number", "boolean", "null", "array"]},
        {
          "type": "object", "additionalProperties": false,
          "properties": {
            "type": {"type": "string", "enum": ["any", "text", "integer", "number", "boolean", "list", "map"]},
            "default": {}, "required": {"type": "boolean"}, "description": {"$ref": "#/definitions/description"}
          }
        }
      ]
    },
    "parameters": {
      "type": "object", "maxProperties": 1000,
      "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "additionalProperties": {"$ref": "#/definitions/parameter"}
    },
    "secrets": {
      "type": "object", "maxProperties": 1000,
      "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
      "additionalProperties": {
        "type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
        "properties": {"env": {"$ref": "#/definitions/plain_text"}, "file": {"$ref": "#/definitions/plain_text"}}
      }
    },
    "policies": {
      "type": "object", "maxProperties": 1000,
      "propertyNames": {"pattern": "^[A-Za-z0-9_.-]+$", "not": {"enum": ["none", "standard", "aggressive", "patient"]}},
      "additionalProperties": {"$ref": "#/definitions/policy_or_name"}
    },
    "defaults": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "retry": {"$ref": "#/definitions/policy_or_name"},
        "retry_policy": {"$ref": "#/definitions/azolla_policy"},
        "by_type": {"type": "object", "additionalProperties": {"$ref": "#/definitions/policy_or_name"}}
      }
    },
    "classify": {
      "type": "array", "maxItems": 256,
      "items": {
        "type": "object", "additionalProperties": false, "required": ["when", "class"],
        "properties": {"when": {"$ref": "#/definitions/rule"}, "class": {"$ref": "#/definitions/failure_class"}}
      }
    },
    "runtime": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "max_parallel": {"description": "Attempts of the run at a time.", "$ref": "#/definitions/count"},
        "deadline": {"description": "Of the run.", "$ref": "#/definitions/positive_duration"},
        "stall_timeout": {"$ref": "#/definitions/duration"},
        "max_visits": {"$ref": "#/definitions/count"},
        "limits": {
          "description": "For every step whose policy does not say it itself.",
          "type": "object", "additionalProperties": false,
          "properties": {"worker_lost": {"type": "integer", "minimum": 0, "maximum": 4294967295}}
        },
        "circuit_breaker": {"$ref": "#/definitions/circuit_breaker"}
      }
    },
    "agents": {
      "description": "Verbs of your own.",
      "type": "object", "maxProperties": 100,
      "propertyNames": {"pattern": "^[A-Za-z0-9_.-]+$"},
      "additionalProperties": {
        "type": "object", "additionalProperties": false,
        "properties": {
          "argv": {"$ref": "#/definitions/argv"}, "run": {"$ref": "#/definitions/text"}, "type": {"$ref": "#/definitions/plain_text"},
          "env": {"$ref": "#/definitions/variables"}, "timeout": {"$ref": "#/definitions/positive_duration"},
          "description": {"$ref": "#/definitions/description"}
        },
        "oneOf": [{"required": ["argv"]}, {"required": ["run"]}]
      }
    },
    "types": {
      "description": "Error types of your own and what they are special cases of.",
      "type": "object", "maxProperties": 1000,
      "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
      "additionalProperties": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}
    },
    "dialect": {"type": "string", "enum": ["native", "azolla", "rh_agents", "wave", "argyll", "prodigy"]},
    "native_document": {
      "type": "object", "additionalProperties": false, "required": ["steps"],
      "properties": {
        "version": {"type": "integer", "enum": [1]},
        "dialect": {"$ref": "#/definitions/dialect"},
        "name": {"$ref": "#/definitions/plain_text"}, "description": {"$ref": "#/definitions/description"},
        "types": {"$ref": "#/definitions/types"}, "params": {"$ref": "#/definitions/parameters"},
        "secrets": {"$ref": "#/definitions/secrets"}, "env": {"$ref": "#/definitions/variables"},
        "classify": {"$ref": "#/definitions/classify"}, "policies": {"$ref": "#/definitions/policies"},
        "defaults": {"$ref": "#/definitions/defaults"},
        "default_retry_config": {"$ref": "#/definitions/rh_agents_policy"},
        "retry_policy": {"description": "Of every step that has none.", "$ref": "#/definitions/azolla_policy"},
        "retry_config_by_actor_type": {"type": "object", "additionalProperties": {"$ref": "#/definitions/rh_agents_policy"}},
        "runtime": {"$ref": "#/definitions/runtime"}, "agents": {"$ref": "#/definitions/agents"},
        "steps": {"allOf": [{"$ref": "#/definitions/steps"}, {"minItems": 1}]},
        "goals": {"oneOf": [{"$ref": "#/definitions/step_id"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/step_id"}}]},
        "finally": {"$ref": "#/definitions/steps"}
      }
    },
    "phase_command": {
      "type": "object", "minProperties": 1,
      "properties": {
        "shell": {"$ref": "#/definitions/text"},
        "on_failure": {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"$ref": "#/definitions/text"}},
        "timeout": {"type": ["string", "number"], "minimum": 0},
        "retry_config": {"$ref": "#/definitions/prodigy_policy"}
      },
      "additionalProperties": {"$ref": "#/definitions/text"}
    },
    "template_command": {
      "type": "object", "minProperties": 1, "maxProperties": 2,
      "properties": {
        "shell": {"$ref": "#/definitions/text"},
        "on_failure": {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"$ref": "#/definitions/text"}}
      },
      "additionalProperties": {"$ref": "#/definitions/text"}
    },
    "phase": {
      "oneOf": [
        {"type": "array", "items": {"$ref": "#/definitions/phase_command"}},
        {
          "type": "object", "additionalProperties": false, "required": ["commands"],
          "properties": {"commands": {"type": "array", "items": {"$ref": "#/definitions/phase_command"}}}
        }
      ]
    },
    "agent_template": {
      "oneOf": [
        {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/template_command"}},
        {
          "type": "object", "additionalProperties": false, "required": ["commands"],
          "properties": {"commands": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/template_command"}}}
        }
      ]
    },
    "error_policy": {
      "type": "object", "additionalProperties": false,
      "properties": {
        "retry_config": {"$ref": "#/definitions/prodigy_policy"},
        "on_item_failure": {"type": "string", "enum": ["dlq", "retry", "skip", "stop"]},
        "continue_on_failure": {"type": "boolean"},
        "max_failures": {"type": "integer", "minimum": 0, "maximum": 4294967295},
        "failure_threshold": {"type": "number", "minimum": 0, "maximum": 1},
        "circuit_breaker": {"oneOf": [
          {"$ref": "#/definitions/circuit_breaker"},
          {
            "type": "object", "additionalProperties": false, "required": ["failure_threshold"],
            "properties": {"failure_threshold": {"$ref": "#/definitions/count"}}
          }
        ]}
      }
    },
    "mapreduce_document": {
      "type": "object", "additionalProperties": false, "required": ["mode", "map"],
      "properties": {
        "mode": {"type": "string", "enum": ["mapreduce"]},
        "version": {"type": "integer", "enum": [1]},
        "dialect": {"type": "string", "enum": ["prodigy"]},
        "name": {"$ref": "#/definitions/plain_text"}, "description": {"$ref": "#/definitions/description"},
        "types": {"$ref": "#/definitions/types"}, "params": {"$ref": "#/definitions/parameters"},
        "secrets": {"$ref": "#/definitions/secrets"}, "env": {"$ref": "#/definitions/variables"},
        "classify": {"$ref": "#/definitions/classify"}, "runtime": {"$ref": "#/definitions/runtime"},
        "agents": {"$ref": "#/definitions/agents"}, "defaults": {"$ref": "#/definitions/defaults"},
        "setup": {"$ref": "#/definitions/phase"},
        "map": {
          "type": "object", "additionalProperties": false, "required": ["input", "agent_template"],
          "properties": {
            "input": {"$ref": "#/definitions/text"}, "json_path": {"$ref": "#/definitions/plain_text"},
            "agent_template": {"$ref": "#/definitions/agent_template"},
            "max_parallel": {"$ref": "#/definitions/count"},
            "error_policy": {"$ref": "#/definitions/error_policy"},
            "agent_timeout_secs": {"type": "integer", "minimum": 1, "maximum": 2147483647}
          }
        },
        "reduce": {"$ref": "#/definitions/phase"},
        "error_policy": {"$ref": "#/definitions/error_policy"},
        "finally": {"$ref": "#/definitions/steps"}
      }
    }
  }
})json";

// A Wave document says `retry` with Wave's words.
constexpr const char* wave_policy_text = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "policy": {"type": "string", "enum": ["none", "standard", "aggressive", "patient"]},
    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 4294967296},
    "backoff": {"type": "string", "enum": ["fixed", "linear", "exponential"]},
    "base_delay": {"type": ["string", "integer"]}, "max_delay": {"type": ["string", "integer"]}, "factor": {"type": "number", "minimum": 1}
  }
})json";

text::Value as_value(const boost::json::value& json) {
  if (json.is_bool()) return json.get_bool();
  if (json.is_int64()) return json.get_int64();
  if (json.is_double()) return json.get_double();
  if (json.is_string()) return std::string{json.get_string()};
  if (json.is_array()) {
    text::Value list = text::Value::list();
    for (const auto& item : json.get_array()) list.add(as_value(item));
    return list;
  }
  if (!json.is_object()) return {};
  text::Value map = text::Value::map();
  for (const auto& [key, value] : json.get_object()) map.set(std::string{key}, as_value(value));
  return map;
}

}  // namespace

std::string flow_schema() {
  boost::json::value schema = boost::json::parse(schema_text);
  const boost::json::value policy = boost::json::parse(policy_schema());
  boost::json::object& definitions = schema.at("definitions").as_object();
  for (const auto& [name, definition] : policy.at("definitions").as_object()) definitions[name] = definition;
  // Here a policy may also build on one that the document names.
  definitions["policy_name"] = boost::json::parse(
      R"({"description": "none, standard, aggressive, patient, or one of policies.", "type": "string"})");
  definitions["native_policy"] = policy.at("oneOf").at(1);
  definitions["wave_policy"] = boost::json::parse(wave_policy_text);
  definitions["policy"] = boost::json::parse(
      R"({"anyOf": [{"$ref": "#/definitions/native_policy"}, {"$ref": "#/definitions/wave_policy"}]})");
  definitions["rule"] = definitions["rules"].at("items");
  return text::to_json(as_value(schema), 2) + "\n";
}

}  // namespace reprise::flow
