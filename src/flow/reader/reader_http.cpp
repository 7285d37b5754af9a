// `http:` – a request, and what counts as a good answer.
#include <algorithm>

#include "flow/reader/reading.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

constexpr int status_min = 100;
constexpr int status_max = 599;

std::optional<std::pair<int, int>> parse_status(std::string_view text) {
  if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5') {
    const int hundreds = (text[0] - '0') * 100;
    return std::pair{hundreds, hundreds + 99};
  }
  const std::size_t dash = text.find('-');
  const auto low = text::whole_number(text.substr(0, dash));
  const auto high = dash == std::string_view::npos ? low : text::whole_number(text.substr(dash + 1));
  if (!low || !high || *low < status_min || *high > status_max || *low > *high) return std::nullopt;
  return std::pair{static_cast<int>(*low), static_cast<int>(*high)};
}

void read_status(const Field& field, HttpCall& call, Reading& reading) {
  call.expect_status.clear();
  const bool is_list = field.node->type == NodeType::sequence && !field.node->items.empty();
  const std::vector<const Node*> entries = is_list ? field.node->items : std::vector{field.node};
  for (const Node* entry : entries) {
    const auto range = entry->is_scalar() ? parse_status(entry->text) : std::nullopt;
    if (range) {
      call.expect_status.push_back(*range);
    } else {
      reading.report.error(*entry, "status: expected a status, found " + text::describe(*entry),
                           "such as 200, 2xx, 200-204 or a list of them");
    }
  }
}

void read_expect(const Field& field, HttpCall& call, Reading& reading) {
  text::Fields fields{*field.node, "expect", reading.report};
  if (!fields.is_map()) return;
  if (const auto status = fields.find("status")) read_status(*status, call, reading);
  if (const auto schema = fields.find("schema"))
    call.expect_schema = read_plain_text(*schema, "the file of a JSON Schema", reading).value_or("");
  fields.finish();
}

void read_headers(const Field& field, HttpCall& call, Reading& reading) {
  text::Fields fields{*field.node, "headers", reading.report};
  for (const auto& [key, value] : field.node->members) {
    if (reading.report.is_full()) return;
    const bool token = !key->text.empty() && std::ranges::all_of(key->text, [](char c) {
      return c > ' ' && c < 0x7F && std::string_view{"\"(),/:;<=>?@[\\]{}"}.find(c) == std::string_view::npos;
    });
    if (!token) {
      reading.report.error(*key, "headers: " + quoted(key->text) + " cannot be the name of a header");
      continue;
    }
    if (auto text = read_scalar_template({key->text, value}, reading))
      call.headers.emplace_back(key->text, *std::move(text));
  }
}

void read_url(const Field& field, HttpCall& call, Reading& reading) {
  auto url = read_template(field, reading);
  if (!url) return;
  const std::string& text = field.node->text;
  const bool known_scheme = text.starts_with("http://") || text.starts_with("https://") || text.starts_with("${");
  if (!known_scheme) {
    reading.report.error(*field.node, "url: expected http:// or https://, found " + text::describe(*field.node),
                         text.find("://") == std::string::npos ? "write https://" + text : "");
  }
  call.url = *std::move(url);
}

std::string write_body(const Node&) { return "write body; what is not text is sent as JSON"; }
std::string write_expect_status(const Node&) { return "write expect: {status: …}"; }
std::string write_step_timeout(const Node&) { return "write timeout beside http, on the step"; }
std::string write_headers(const Node&) { return "write headers: {Authorization: \"Bearer ${secrets.NAME}\"}"; }
std::string write_query(const Node&) { return "write it into the url; values are encoded there"; }
std::string write_step_retry(const Node&) { return "write retry: {max_attempts: …} beside http, on the step"; }

}  // namespace

std::optional<HttpCall> read_http(const Field& field, Reading& reading) {
  if (field.node->type == NodeType::string) {
    reading.report.error(*field.node, "http: expected a map, found " + text::describe(*field.node),
                         "write {url: \"" + field.node->text + "\"}");
    return std::nullopt;
  }
  HttpCall call;
  text::Fields fields{*field.node, "http", reading.report};
  if (!fields.is_map()) return std::nullopt;
  if (const auto method = fields.find("method")) {
    const auto word =
        text::read_word(*method, {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, reading.report);
    if (word) call.method = *word;
  }
  if (const auto url = fields.find("url")) {
    read_url(*url, call, reading);
  } else {
    reading.report.error(*field.node, "http: url is missing", "such as {url: \"https://api.example.org/${item.id}\"}");
  }
  if (const auto headers = fields.find("headers")) read_headers(*headers, call, reading);
  if (const auto body = fields.find("body")) call.body = read_json_template(*body->node, reading);
  if (const auto expect = fields.find("expect")) read_expect(*expect, call, reading);
  if (const auto async = fields.find("async"))
    call.is_async = text::read_boolean(*async, reading.report).value_or(false);
  if (!reading.flow.first_request) reading.flow.first_request = place_of(*field.node);
  fields.finish({{"json", write_body},
                 {"data", write_body},
                 {"payload", write_body},
                 {"status", write_expect_status},
                 {"expected_status", write_expect_status},
                 {"timeout", write_step_timeout},
                 {"auth", write_headers},
                 {"token", write_headers},
                 {"query", write_query},
                 {"params", write_query},
                 {"retry", write_step_retry},
                 {"retries", write_step_retry}});
  return call;
}

}  // namespace reprise::flow
