// A run that does its worst with its secret: in each of these ways the secret reaches the work that needs it, and neither the store, nor a
// log, an event, the page, an explanation, nor the terminal.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "support/loopback.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

// The middle part is the same in every form but base64, so that looking for it finds them all, and pieces of them too.
const std::string core = "k9Zq7RvXw";
const std::string secret = "p\xC3\xA4 s'/%\"\\" + core + "$\xC3\xBC+z";

// ---- the same in other forms, written by somebody else than the product ----

std::string percent(std::string_view text, std::string_view digits = "0123456789ABCDEF") {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      out += c;
    } else {
      out += {'%', digits[byte / 16], digits[byte % 16]};
    }
  }
  return out;
}

std::string json(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::string json_in_ascii(std::string_view text) {
  return replaced(replaced(json(text), "\xC3\xA4", R"(\u00e4)"), "\xC3\xBC", R"(\u00FC)");
}

std::string base64(std::string_view text) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    bits = bits << 8U | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += alphabet[bits >> (count - 6) & 63U];
  }
  if (count > 0) out += alphabet[bits << (6 - count) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

const std::vector<std::pair<std::string, std::string>> forms = {
    {"plain", secret},
    {"percent", percent(secret)},
    {"small percent", percent(secret, "0123456789abcdef")},
    {"percent twice", percent(percent(secret))},
    {"form", replaced(percent(secret), "%20", "+")},
    {"json", json(secret)},
    {"json in ascii", json_in_ascii(secret)},
    {"json in json", json(json_in_ascii(secret))},
    {"shell", replaced(secret, "'", R"('\'')")},
    {"shell trace", replaced(secret, "'", R"('"'"')")},
    {"double quotes", replaced(json(secret), "$", "\\$")},
    {"base64", base64(secret)},
    {"basic", base64("user:" + secret)},
    {"bearer in json", json(R"({"authorization": "Basic )" + base64("me:" + secret) + "\"}")},
};

// What must not be found anywhere.
const std::vector<std::string> needles = {core, base64(secret).substr(4, 16), base64("1" + secret).substr(4, 16),
                                          base64("12" + secret).substr(4, 16)};

// ---- one folder in which a run misbehaves ----

class SecretFolder : public FlowFolder {
 public:
  SecretFolder() {
    set("TOKEN", secret);
    write("keep.sh", R"(printf '%s\n' "$V" >> got.txt)");
  }

  // One document after the other, told about in another way each time.
  void misbehave(const std::string& way, const std::string& steps, int exit_code,
                 const std::vector<std::string>& more = {}) {
    const std::vector<std::string> ways_to_tell = {"plain", "json", "tty", "quiet"};
    std::vector<std::string> arguments{"--progress", ways_to_tell[told_++ % ways_to_tell.size()]};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run("secrets: {T: {env: TOKEN}}\n" + steps, arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << way << ": " << outcome.err;
    expect_clean(way + ", terminal", outcome.out + outcome.err);
    look_at_all(way);
  }

  void expect_clean(const std::string& where, const std::string& text) const {
    for (const std::string& needle : needles) {
      const std::size_t at = text.find(needle);
      EXPECT_EQ(at, std::string::npos) << where << ": "
                                       << text.substr(at < 100 ? 0 : std::min(at, text.size()) - 100, 200);
    }
  }

  // Everything that shows what was recorded, of all runs, sub-flows too, that are new.
  void look_at_all(const std::string& way) {
    for (const std::string& needle : needles)
      EXPECT_EQ(files_with(needle, ".reprise"), std::vector<std::string>{}) << way << ": " << needle;
    std::vector<std::string> runs;
    std::istringstream listed{reprise({"runs", "--format", "json"}).out};
    for (std::string line; std::getline(listed, line);)
      runs.push_back(text_of(boost::json::parse(line).as_object(), "run"));
    for (std::size_t newest = 0; newest + looked_at_ < runs.size(); ++newest) {
      const std::string& run = runs[newest];
      for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
               {"events", run, "--format", "json"}, {"why", run}, {"logs", run}, {"show", run, "--html", "-"}}) {
        const Outcome outcome = reprise(command);
        expect_clean(way + ", " + command.front(), outcome.out + outcome.err);
      }
    }
    looked_at_ = runs.size();
  }

 private:
  std::size_t told_ = 0;
  std::size_t looked_at_ = 0;
};

const std::string keep = R"(run: 'sh keep.sh; echo "used $V"')";

// ---- what commands write ----

TEST(FlowRunsSecrets, no_form_that_a_command_prints_gets_through) {
  SecretFolder folder;
  std::string steps = "steps:\n";
  int number = 0;
  for (const auto& [name, form] : forms) {
    const std::string file = "form" + std::to_string(number++);
    folder.write(file, form + "\n");
    steps += "  - {id: " + file + ", run: 'cat " + file + "; cat " + file +
             " >&2; exit 1', retry: none, on_failure: continue}\n";
    steps += "  - {id: " + file + "_ok, run: 'cat " + file + "'}\n";
  }
  folder.misbehave("forms", steps, 0);
  EXPECT_EQ(text_of(folder.last("completed", "form0_ok"), "output"), "***");
}

TEST(FlowRunsSecrets, messages_about_commands_do_not_tell) {
  SecretFolder folder;
  folder.misbehave("no such command", "steps: [{id: a, argv: ['${secrets.T}'], retry: none}]", 1);
  folder.misbehave("no such file", "steps: [{id: a, argv: ['./${secrets.T}'], retry: none}]", 1);
  folder.misbehave("shell: no such command", "steps: [{id: a, run: '${secrets.T}', retry: none}]", 1);
  folder.misbehave("trace", "steps: [{id: a, run: 'set -x; echo ${secrets.T}; false', retry: none}]", 1);
  folder.misbehave("fallback and handler", R"(steps:
  - id: a
    run: 'echo ${secrets.T} >&2; false'
    retry: none
    fallback: {run: 'echo "$REPRISE_LAST_ERROR"; echo ${secrets.T}'}
  - id: b
    argv: ['${secrets.T}']
    retry: none
    on_failure: {run: 'echo "$REPRISE_LAST_ERROR ${last_error.message}"; exit 3'}
)",
                   1);
  folder.misbehave("require",
                   "steps: [{id: a, require: {run: 'echo ${secrets.T} >&2; false'}, run: 'true', retry: none}]", 1);
}

TEST(FlowRunsSecrets, a_key_that_is_printed_line_by_line_is_hidden_line_by_line) {
  SecretFolder folder;
  folder.write("key.pem", "-----BEGIN-----\n" + core + "first\n" + core + "second\n-----END-----\n");
  const Outcome outcome = folder.run(
      "secrets: {KEY: {file: key.pem}}\n"
      "steps: [{id: a, env: {KEY: '${secrets.KEY}'}, run: 'echo \"$KEY\" | sed \"s/^/> /\"; echo \"$KEY\" >&2; false', "
      "retry: none}]");
  EXPECT_EQ(outcome.exit_code, 1);
  folder.expect_clean("terminal", outcome.out + outcome.err);
  folder.look_at_all("key");
}

// ---- what is made of values ----

TEST(FlowRunsSecrets, items_reach_their_attempts_and_not_the_record) {
  SecretFolder folder;
  const std::string each = "max_parallel: 1, env: {V: '${item}'}, " + keep;
  folder.misbehave("list", "steps: [{id: a, for_each: ['${secrets.T}', 'x-${secrets.T}', plain], " + each + "}]", 0);
  folder.write("list.json", R"([")" + json_in_ascii(secret) + R"("])");
  folder.misbehave("list in a file", "steps: [{id: a, for_each: {file: list.json}, " + each + "}]", 0);
  folder.write("list.txt", secret + "\n");
  folder.misbehave("lines in a file", "steps: [{id: a, for_each: {file: list.txt}, " + each + "}]", 0);
  EXPECT_EQ(folder.read("got.txt"), secret + "\nx-" + secret + "\nplain\n" + secret + "\n" + secret + "\n");
  folder.misbehave(
      "dead letters",
      "steps: [{id: a, for_each: [{k: '${secrets.T}'}], run: 'false', retry: none, on_failure: dead_letter}]", 1);
  const Outcome letter = folder.reprise({"dead-letters", "show", "@last", "a[0]"});
  EXPECT_NE(letter.out.find(R"({"k":"***"})"), std::string::npos) << letter.out << letter.err;
  folder.expect_clean("dead letter", letter.out + letter.err);
}

TEST(FlowRunsSecrets, messages_about_values_do_not_tell) {
  SecretFolder folder;
  folder.misbehave("no list", "steps: [{id: a, for_each: '${secrets.T}', run: 'true', retry: none}]", 1);
  folder.misbehave("no list, cut",
                   "params: {pad: {default: '" + std::string(60, 'x') +
                       "'}}\nsteps: [{id: a, for_each: '${params.pad + secrets.T}', run: 'true', retry: none}]",
                   1);
  folder.misbehave("no such list", "steps: [{id: a, for_each: {file: '${secrets.T}'}, run: 'true', retry: none}]", 1);
  folder.misbehave("no such member",
                   "params: {map: {default: {a: 1}}}\n"
                   "steps: [{id: a, run: 'echo ${params.map[secrets.T]}', retry: none}]",
                   1);
  folder.misbehave("no JSON", "steps: [{id: a, if: 'json(secrets.T)', run: 'true', retry: none}]", 1);
  folder.write("schema.json", R"({"type": "object", "required": ["x"], "additionalProperties": false})");
  folder.misbehave("no match",
                   "steps: [{id: a, run: 'printf \"{\\\"%s\\\": 1}\" \"$V\"', env: {V: '${secrets.T}'}, "
                   "check: {schema: schema.json}, retry: none}]",
                   1);
  folder.misbehave("parameter", "params: {p: {type: text}}\nsteps: [{id: a, run: 'echo ${params.p}'}]", 0,
                   {"--set", "p=" + secret});
  folder.misbehave("parameter of a wrong type", "params: {p: {type: map}}\nsteps: [{id: a, run: 'true'}]", 2,
                   {"--input", R"({"p": [")" + json(secret) + R"("]})"});
}

// ---- flows inside of flows ----

TEST(FlowRunsSecrets, parameters_of_a_sub_flow_reach_it_and_not_the_record) {
  SecretFolder folder;
  folder.write("sub.yaml",
               "params: {token: {type: text}, more: {default: null}}\n"
               "steps: [{id: use, env: {V: '${params.token}'}, " +
                   keep + "}]");
  folder.misbehave("sub-flow",
                   "steps: [{id: a, flow: sub.yaml, params: {token: '${secrets.T}', more: {'${secrets.T}': 1}}}]", 0);
  folder.write(
      "middle.yaml",
      "params: {token: {type: text}}\nsteps: [{id: b, flow: sub.yaml, params: {token: 'Bearer ${params.token}'}}]");
  folder.misbehave("sub-flow of a sub-flow", "steps: [{id: a, flow: middle.yaml, params: {token: '${secrets.T}'}}]", 0);
  EXPECT_EQ(folder.read("got.txt"), secret + "\nBearer " + secret + "\n");

  folder.write("failing.yaml",
               "params: {token: {type: text}}\nsteps: [{id: c, run: 'echo ${params.token} >&2; false', retry: none}]");
  folder.misbehave("failing sub-flow",
                   "steps: [{id: a, flow: failing.yaml, params: {token: '${secrets.T}'}, retry: none}]", 1);
  folder.write("number.yaml", "params: {token: {type: integer}}\nsteps: [{id: c, run: 'true'}]");
  folder.misbehave(
      "sub-flow with a wrong parameter",
      "steps: [{id: a, flow: number.yaml, params: {token: 'xxxxxxxxxxxxxxxxxxxx${secrets.T}'}, retry: none}]", 1);
}

TEST(FlowRunsSecrets, names_of_sub_flows_do_not_tell) {
  SecretFolder folder;
  folder.misbehave("no such sub-flow", "steps: [{id: a, flow: '${secrets.T}.yaml', retry: none}]", 1);
  folder.write(secret + ".yaml", "steps: [{id: c, run: 'pwd; touch here'}]");
  folder.misbehave("sub-flow with that name", "steps: [{id: a, flow: '${secrets.T}.yaml'}]", 0);
  EXPECT_TRUE(folder.exists(secret.substr(0, secret.find('/')) + "/here"));
  folder.write("made.yaml", "steps:\n  - id: c\n    env: {V: \"" + json(secret) + "\"}\n    " + keep);
  folder.misbehave("sub-flow with it inside", "steps: [{id: a, flow: made.yaml}]", 0);
  EXPECT_EQ(folder.read("got.txt"), secret + "\n");
}

// The engine is killed while the command of a sub-flow runs: resumed, it gets the same again, and nothing is in the store meanwhile.
TEST(FlowRunsSecrets, a_killed_sub_flow_gets_its_secret_again) {
  SecretFolder folder;
  folder.write("token.txt", secret + "\n");
  folder.write("sub.yaml",
               "params: {token: {}}\n"
               "steps: [{id: use, for_each: ['${params.token.key}'], env: {V: '${item}'}, "
               "run: 'sh keep.sh; test -e go || sleep 60', retry: {max_attempts: 5, initial: 1ms}}]");
  folder.flow(
      "secrets: {T: {file: token.txt}}\n"
      "steps: [{id: a, flow: sub.yaml, params: {token: {key: 'key=${secrets.T}'}}}]");
  const auto running = folder.start({"run", "flow.yaml"});
  ASSERT_TRUE(folder.wait_for_file("got.txt", "z\n"));
  running->signal(SIGKILL);
  EXPECT_EQ(running->join(), 128 + SIGKILL);
  folder.look_at_all("killed");
  folder.write("go", "");
  std::string parent;
  std::istringstream listed{folder.reprise({"runs", "--format", "json"}).out};
  for (std::string line; std::getline(listed, line);) {
    const boost::json::object run = boost::json::parse(line).as_object();
    if (text_of(run, "flow") == "flow") parent = text_of(run, "run");
  }
  const Outcome resumed = folder.reprise({"resume", parent});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  folder.expect_clean("resume", resumed.out + resumed.err);
  EXPECT_EQ(folder.read("got.txt"), "key=" + secret + "\nkey=" + secret + "\n");
  folder.look_at_all("resumed");
}

// What is recorded has no secret in it, and is still known to be the same.
TEST(FlowRunsSecrets, the_same_id_with_the_same_secret_is_the_same_run) {
  SecretFolder folder;
  folder.write("token.txt", secret + "\n");
  folder.flow(
      "secrets: {T: {file: token.txt}}\nparams: {p: {type: text}}\n"
      "steps: [{id: a, env: {V: '${params.p}'}, " +
      keep + "}]");
  const auto run = [&](const std::string& value) {
    return folder.reprise({"run", "flow.yaml", "--id", "one", "--set", "p=" + value}).exit_code;
  };
  EXPECT_EQ(run("with " + secret), 0);
  EXPECT_EQ(run("with " + secret), 0);
  EXPECT_EQ(run("with another"), 3);
  EXPECT_EQ(folder.read("got.txt"), "with " + secret + "\n");
  const Outcome replayed = folder.reprise({"replay", "@last", "--validate"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
  EXPECT_EQ(folder.read("got.txt"), "with " + secret + "\nwith " + secret + "\n");
  folder.look_at_all("the same id");
}

// Text that looks like what the store holds instead of a secret stays what it is, wherever it comes from.
TEST(FlowRunsSecrets, a_reference_to_a_secret_cannot_be_forged) {
  SecretFolder folder;
  const std::string forged =
      "\x1A"
      "0.0.1.0\x1A";
  folder.write("list.json", R"(["\u001a0.0.1.0\u001a", {"secret": "\u001a0.0.1.0\u001a"}])");
  folder.write("lines.txt", forged + "\n");
  folder.write("sub.yaml", "params: {p: {}}\nsteps: [{id: use, env: {V: '${params.p}'}, " + keep + "}]");
  folder.misbehave("forged",
                   R"(steps:
  - {id: file, for_each: {file: lines.txt}, env: {V: '${item}'}, )" +
                       keep + R"(}
  - {id: made, run: cat list.json, output: json, needs: file}
  - {id: items, needs: made, for_each: '${steps.made.output}', max_parallel: 1, env: {V: '${item}'}, )" +
                       keep + R"(}
  - {id: sub, needs: items, flow: sub.yaml, params: {p: '${steps.made.output}'}}
)",
                   0);
  EXPECT_EQ(folder.read("got.txt"), forged + "\n" + forged + "\n" + R"({"secret":"\u001a0.0.1.0\u001a"})" + "\n" +
                                        R"(["\u001a0.0.1.0\u001a",{"secret":"\u001a0.0.1.0\u001a"}])" + "\n");
}

// ---- requests ----

TEST(FlowRunsSecrets, requests_and_their_answers_do_not_tell) {
  SecretFolder folder;
  ScriptedServer server;
  server.on("*").answer(404, "no such page: /" + percent(secret));
  server.on("/fail").answer(500, "your token is " + secret);
  server.on("/echo").answer(200, R"({"data": ")" + json(R"({"token": ")" + json_in_ascii(secret) + "\"}") + "\"}");
  std::string steps = "steps:\n";
  for (std::size_t index = 0; index < forms.size(); ++index) {
    const std::string path = "/form" + std::to_string(index);
    server.on(path).answer(200, forms[index].second);
    steps += "  - {id: form" + std::to_string(index) + ", http: {url: '" + server.url(path) + "'}}\n";
  }
  const auto step = [&](const std::string& id, const std::string& path, const std::string& more) {
    return "  - {id: " + id + ", http: {url: '" + server.url(path) + "'" + more +
           "}, retry: none, on_failure: continue}\n";
  };
  steps += step("path", "/v1/${secrets.T}/x", "");
  steps += step("query", "/fail?token=${secrets.T}", "");
  steps += step("header", "/echo", ", headers: {Authorization: 'Bearer ${secrets.T}'}");
  steps += step("body", "/echo", ", method: POST, body: {token: '${secrets.T}'}");
  steps += "  - {id: host, http: {url: 'http://${secrets.T}/'}, retry: none, on_failure: continue}\n";
  steps += "  - {id: closed, http: {url: 'http://127.0.0.1:" + std::to_string(closed_port()) +
           "/${secrets.T}'}, retry: none, on_failure: continue}\n";
  folder.misbehave("requests", steps, 0);
  bool has_come = false;
  for (const RecordedRequest& request : server.requests())
    has_come |= request.body == R"({"token":")" + json(secret) + "\"}";
  EXPECT_TRUE(has_come);
}

TEST(FlowRunsSecrets, what_a_webhook_brings_does_not_tell) {
  SecretFolder folder;
  ScriptedServer server;
  server.on("/work").answer(202);
  folder.flow("secrets: {T: {env: TOKEN}}\nsteps:\n  - {id: a, http: {method: POST, url: '" + server.url("/work") +
              "', async: true}, retry: {max_attempts: 3, initial: 1ms}}\n"
              "  - {id: b, needs: a, run: 'echo ${steps.a.output}'}\n");
  const auto running = folder.start({"run", "flow.yaml"});
  const std::vector<std::string> reports = {R"({"success": false, "error": ")" + json(secret) + "\"}",
                                            R"({"success": false, "error": {"url": ")" + percent(secret) + "\"}}",
                                            R"({"success": true, "output": [")" + json_in_ascii(secret) + "\"]}"};
  for (std::size_t index = 0; index < reports.size(); ++index) {
    ASSERT_TRUE(server.wait_for_requests(index + 1));
    const RecordedRequest request = server.requests()[index];
    EXPECT_EQ(post(request.header("x-reprise-webhook-url"),
                   "Authorization: Bearer " + request.header("x-reprise-webhook-token"), reports[index]),
              "HTTP/1.1 202 Accepted");
  }
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  folder.expect_clean("terminal", running->said() + folder.read("stderr.txt"));
  folder.look_at_all("webhook");
  EXPECT_EQ(text_of(folder.last("completed", "b"), "output"), "[\"***\"]");
}

// ---- secrets that are too short ----

TEST(FlowRunsSecrets, a_short_secret_is_masked_with_a_warning) {
  FlowFolder folder;
  folder.set("PIN", "47");
  folder.flow("secrets:\n  PIN: {env: PIN}\nsteps: [{id: a, run: 'echo ${secrets.PIN}, or 1479'}]");
  const Outcome run = folder.reprise({"run", "flow.yaml", "--progress", "plain"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("flow.yaml:2:3: warning: secret \"PIN\" is shorter than 4 characters"), std::string::npos)
      << run.err;
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "***, or 1***9");
  const Outcome checked = folder.reprise({"validate", "flow.yaml"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_NE(checked.err.find("warning: secret \"PIN\""), std::string::npos) << checked.err;
}

}  // namespace
}  // namespace reprise::testing_support
