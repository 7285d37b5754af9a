#include "event/event_schema.hpp"

#include <cstdint>

#include <reprise/event.hpp>

namespace reprise::event {
namespace {

constexpr const char* beginning = R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "An event of a run of Reprise",
  "description": "One object a line. Fields are added over time and never renamed: ignore those you do not know.",
  "type": "object",
  "required": ["type", "sequence", "time", "run"],
  "properties": {
    "type": {"description": "What happened. More may come: ignore those you do not know.", "type": "string", "examples": [)json";

constexpr const char* rest = R"json(]},
    "type_number": {"description": "Of a type that a newer version wrote; its `type` is unknown.", "$ref": "#/definitions/count"},
    "sequence": {"description": "1, 2, 3 … within its run, without gaps.", "type": "integer", "minimum": 1},
    "time": {"$ref": "#/definitions/time"},
    "run": {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    "step": {"description": "Absent when the event concerns the whole run.", "type": "string"},
    "item": {"description": "Which of the step's items, from 0.", "$ref": "#/definitions/count"},
    "attempt": {"description": "From 1; absent when the event concerns none.", "type": "integer", "minimum": 1},
    "key": {"type": "string"},
    "due_at": {"$ref": "#/definitions/time"},
    "input": {"type": "string"},
    "input_hash": {"$ref": "#/definitions/hash"},
    "input_size": {"$ref": "#/definitions/count"},
    "items": {"$ref": "#/definitions/count"},
    "origin": {"description": "submitted: how the run came; cli from the command line.", "type": "string"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "queue": {"type": "string"},
    "tenant": {"type": "string"},
    "max_cost": {
      "type": "object",
      "properties": {"tokens": {"$ref": "#/definitions/count"}, "micros": {"$ref": "#/definitions/count"}}
    },
    "traceparent": {"type": "string"},
    "is_retry": {"description": "With every `attempt`: is it not the first?", "type": "boolean"},
    "actor_type": {"description": "With `attempt`: tool, llm, agent, or a type of the flow's own.", "type": "string"},
    "replayed": {"description": "Told once more by `reprise replay`: nothing ran.", "enum": [true]},
    "original_error": {"description": "The failure that made this attempt a retry.", "$ref": "#/definitions/error"},
    "retry_delay_ms": {"$ref": "#/definitions/duration"},
    "output": {"type": "string"},
    "output_hash": {"$ref": "#/definitions/hash"},
    "output_size": {"$ref": "#/definitions/count"},
    "whole_output": {"description": "Of `exec`, when the output is more than the record holds: length and SHA-256 of the file that has all.", "type": "string"},
    "total_attempts": {"$ref": "#/definitions/count"},
    "total_elapsed_ms": {"$ref": "#/definitions/duration"},
    "will_retry": {"type": "boolean"},
    "phase": {"enum": ["precondition"]},
    "lost": {"description": "The engine died during the attempt.", "enum": [true]},
    "cut": {"description": "A limit of the work item itself ended the attempt.", "enum": ["deadline"]},
    "class": {"description": "Of an attempt or a wait that was interrupted.", "enum": ["canceled"]},
    "attempts_used": {"description": "Of the attempts so far, those that count towards max_attempts.", "$ref": "#/definitions/count"},
    "attempts_interrupted": {"$ref": "#/definitions/count"},
    "attempts_lost": {"$ref": "#/definitions/count"},
    "error": {"$ref": "#/definitions/error"},
    "rule": {"description": "The entry of never_on or only_on that decided, from 0.", "$ref": "#/definitions/count"},
    "reason": {"description": "failed: why there is no further attempt. retrying: the class of the failure, lost, or not_completed.", "type": "string"},
    "stop_reason": {"$ref": "#/definitions/stop_reason"},
    "next_attempt": {"type": "integer", "minimum": 1},
    "delay_ms": {"$ref": "#/definitions/duration"},
    "nominal_ms": {"$ref": "#/definitions/duration"},
    "min_ms": {"$ref": "#/definitions/duration"},
    "max_ms": {"$ref": "#/definitions/duration"},
    "floored": {"description": "Retry-After lifted the wait.", "enum": [true]},
    "text": {"type": "string"},
    "why": {"type": "string"},
    "name": {"type": "string"},
    "by": {"description": "fallback: fallback or on_failure. Of what was asked for: who asked.", "type": "string"},
    "request": {"description": "With what was asked for: the id of the request.", "type": "string"},
    "operation": {"description": "called: what a durable function has begun.", "enum": ["call", "sleep", "signal", "run", "child", "promise", "undo", "mark"]},
    "path": {"description": "called, continued: which operation of the function.", "type": "string"},
    "place": {"description": "called: the file and line that began it.", "type": "string"},
    "turn": {"description": "continued: which one begins.", "$ref": "#/definitions/count"},
    "state": {"description": "continued, published: as the function gave it.", "type": "string"},
    "state_hash": {"$ref": "#/definitions/hash"},
    "state_size": {"$ref": "#/definitions/count"},
    "only_step": {"type": "string"},
    "only": {"description": "reopened: several items or steps, the steps by number: 0[17,20-30] 3", "type": "string"},
    "resumes": {"description": "reopened: what was stopped goes on, and nothing that had failed.", "enum": [true]},
    "only_item": {"$ref": "#/definitions/count"},
    "on_request": {"description": "revisited: what the step needs was tried again with success, or somebody asked for it.", "enum": [true]},
    "only_this": {"description": "reopened, revisited: the steps that need it keep what they have.", "enum": [true]},
    "to_run": {"description": "handed_over: the run that does the work of this attempt.", "type": "string"},
    "withdrawn": {"description": "reserved: it will not begin, and the work item is as if nothing had been.", "enum": [true]},
    "status": {"enum": ["running", "paused", "succeeded", "failed", "canceled"]}
  },
  "allOf": [
    {"if": {"properties": {"type": {"const": "prepared"}}}, "then": {"required": ["step", "items"]}},
    {"if": {"properties": {"type": {"const": "reserved"}}}, "then": {"required": ["step", "item", "attempt"]}},
    {"if": {"properties": {"type": {"const": "started"}}}, "then": {"required": ["step", "item", "attempt", "is_retry"]}},
    {"if": {"properties": {"type": {"const": "completed"}}}, "then": {"required": ["step", "item", "total_attempts", "total_elapsed_ms"]}},
    {"if": {"properties": {"type": {"const": "failed"}}}, "then": {"required": ["step", "item", "will_retry", "error"]}},
    {"if": {"properties": {"type": {"const": "failed"}, "will_retry": {"const": false}}},
     "then": {"required": ["reason", "total_attempts", "total_elapsed_ms"]}},
    {"if": {"properties": {"type": {"const": "retrying"}}},
     "then": {"required": ["step", "item", "next_attempt", "delay_ms", "due_at", "nominal_ms", "min_ms", "max_ms"]}},
    {"if": {"properties": {"type": {"const": "signaled"}}}, "then": {"required": ["name"]}},
    {"if": {"properties": {"type": {"const": "ended"}}}, "then": {"required": ["status", "total_elapsed_ms"]}}
  ],
  "definitions": {
    "count": {"type": "integer", "minimum": 0},
    "duration": {"description": "Milliseconds; a fraction is kept as decimals.", "type": "number", "minimum": 0},
    "time": {"description": "RFC 3339, UTC.", "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.]([0-9]{3}){1,3})?Z$"},
    "hash": {"description": "SHA-256 of a payload over 4 KiB.", "type": "string", "pattern": "^[0-9a-f]{64}$"},
    "stop_reason": {
      "enum": ["canceled", "permanent", "not_listed", "no_verdict", "circuit_open", "attempts", "deadline", "budget", "max_visits", "lost", "unclear"]
    },
    "error": {
      "description": "What is not known is left out.",
      "type": "object",
      "properties": {
        "type": {"type": "string"},
        "message": {"type": "string"},
        "class": {"enum": ["transient", "deterministic", "budget_exhausted", "contract_failure", "test_failure", "canceled"]},
        "kind": {"enum": ["timeout", "throttled", "stalled", "worker_lost", "crashed", "not_found", "auth", "invalid_input"]},
        "exit_code": {"type": "integer"},
        "http_status": {"type": "integer"},
        "signal": {"type": ["string", "integer"]},
        "retry_after_ms": {"$ref": "#/definitions/duration"},
        "permanent": {"type": "boolean"},
        "command": {"description": "Which of the commands of the attempt it was, from 1.", "type": "integer", "minimum": 1},
        "details": {"type": "string"},
        "mistakes": {"description": "All that a check of the result found, at most 20.", "type": "array", "items": {"type": "string"}},
        "failing": {"description": "The lines that name which tests failed, at most 20.", "type": "array", "items": {"type": "string"}},
        "stdout": {"description": "The last 4 KiB, whole lines; of an HTTP step, of the body.", "type": "string"},
        "stderr": {"description": "The last 4 KiB, whole lines.", "type": "string"},
        "evidence_hash": {"description": "In place of the four above where only the store has them.", "type": "string"},
        "evidence_size": {"type": "integer"}
      }
    }
  }
}
)json";

}  // namespace

std::string event_schema() {
  std::string names;
  for (std::uint8_t number = 1; number <= static_cast<std::uint8_t>(EventType::circuit_closed); ++number) {
    const std::string_view name = name_of(static_cast<EventType>(number));
    if (!event_type_named(name)) continue;
    names += (names.empty() ? "\"" : ", \"") + std::string{name} + "\"";
  }
  return beginning + names + rest;
}

}  // namespace reprise::event
