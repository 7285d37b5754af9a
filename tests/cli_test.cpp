// The command as people and scripts meet it: exit codes, stdout and stderr, and its answers to bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <boost/json.hpp>

#include "support/run_program.hpp"

namespace reprise {
namespace {

namespace json = boost::json;
using testing_support::Outcome;
using testing_support::run_program;
using testing_support::Setting;
using testing_support::TemporaryDirectory;

Outcome run(std::vector<std::string> arguments, std::string_view input = {},
            const std::vector<Setting>& settings = {}) {
  arguments.insert(arguments.begin(), REPRISE_COMMAND);
  return run_program(arguments, input, settings);
}

bool has_place(const std::string& text) {
  return std::regex_search(text, std::regex{"(^|\n)[^\n]+:[0-9]+:[0-9]+: error: "});
}

const std::vector<std::vector<std::string>> commands{{},
                                                     {"policy"},
                                                     {"policy", "check"},
                                                     {"policy", "show"},
                                                     {"policy", "schedule"},
                                                     {"policy", "decide"},
                                                     {"classify"},
                                                     {"schema"},
                                                     {"completion"},
                                                     {"man"},
                                                     {"version"},
                                                     {"dead-letters"}};

std::vector<std::string> with(std::vector<std::string> words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

// ---- what a start loads ----

// Each shared library costs every start of the command; thirty of them were libcurl's.
TEST(Startup, loads_no_library_for_requests_before_there_is_one) {
  const Outcome outcome = run({"version"}, {}, {{"LD_TRACE_LOADED_OBJECTS", "1"}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("libc.so"), std::string::npos) << outcome.out;
  for (const char* library : {"libcurl", "libssl", "libcrypto", "libsqlite", "libyaml", "libre2", "libfmt", "boost"})
    EXPECT_EQ(outcome.out.find(library), std::string::npos) << library << "\n" << outcome.out;
}

class WithoutLibcurl : public testing::Test {
 protected:
  const TemporaryDirectory folder;
  const std::string flow = folder.write(
      "flow.yaml",
      "steps:\n  - {id: a, run: touch a.txt}\n  - {id: b, needs: [a], http: {url: \"http://127.0.0.1:9/\"}}\n");
  const std::vector<Setting> settings{{"REPRISE_LIBCURL", folder.path() + "/libcurl.so.4"},
                                      {"REPRISE_STORE", "sqlite:" + folder.path() + "/store/reprise.db"}};
};

TEST_F(WithoutLibcurl, validate_warns_at_the_first_request_and_says_what_to_install) {
  const Outcome outcome = run({"validate", flow}, {}, settings);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("flow.yaml:3:31: warning: HTTP requests need libcurl"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("apt install libcurl4"), std::string::npos) << outcome.err;
}

TEST_F(WithoutLibcurl, run_refuses_before_anything_has_started) {
  const Outcome outcome = run({"run", flow}, {}, settings);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("error: HTTP requests need libcurl"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/a.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/store"));
}

TEST_F(WithoutLibcurl, doctor_finds_it_and_other_flows_do_not_miss_it) {
  const Outcome outcome = run({"doctor"}, {}, settings);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex{"http +TROUBLE +HTTP requests need libcurl"})) << outcome.out;
  const std::string commands_only = folder.write("commands.yaml", "steps: [{id: a, run: \"true\"}]\n");
  EXPECT_EQ(run({"run", commands_only}, {}, settings).exit_code, 0);
}

// ---- help, version, usage ----

TEST(Help, every_command_explains_itself_on_stdout) {
  for (const auto& command : commands) {
    for (const char* flag : {"--help", "-h"}) {
      const Outcome outcome = run(with(command, {flag}));
      EXPECT_EQ(outcome.exit_code, 0) << flag;
      EXPECT_EQ(outcome.err, "");
      EXPECT_NE(outcome.out.find("Usage: reprise"), std::string::npos) << outcome.out;
      for (const std::string& word : command) EXPECT_NE(outcome.out.find(word), std::string::npos);
      EXPECT_TRUE(outcome.out.ends_with('\n'));
    }
  }
}

TEST(Help, lists_the_commands_and_the_choices) {
  const std::string top = run({"--help"}).out;
  for (const char* word : {"policy", "classify", "schema", "completion", "--version", "Exit codes"})
    EXPECT_NE(top.find(word), std::string::npos) << word;
  const std::string policy = run({"policy", "--help"}).out;
  for (const char* word : {"check", "show", "schedule", "decide"})
    EXPECT_NE(policy.find(word), std::string::npos) << word;
  EXPECT_NE(run({"policy", "schedule", "--help"}).out.find("text|json|svg"), std::string::npos);
  EXPECT_NE(run({"policy", "check", "--help"}).out.find("native|azolla|rh_agents|wave|argyll|prodigy"),
            std::string::npos);
}

TEST(Help, begins_with_commands_by_group_and_ends_with_what_to_try) {
  const std::string top = run({"--help"}).out;
  std::size_t at = 0;
  for (const char* part :
       {"Usage: reprise [OPTIONS] COMMAND\n", "\nRun:\n  run ", "\nLook:\n  runs ", "\nWrite:\n  validate ",
        "\nOther:\n", "\nOptions:\n", "\nDocuments: ", "\nTry these first:\n  reprise exec "}) {
    const std::size_t next = top.find(part, at);
    ASSERT_NE(next, std::string::npos) << part << " in\n" << top;
    at = next;
  }
}

TEST(Help, the_version_is_one_line) {
  EXPECT_EQ(run({"version"}).out, run({"--version"}).out);
  const Outcome outcome = run({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(std::regex_match(outcome.out, std::regex{"reprise [0-9]+\\.[0-9]+\\.[0-9]+\n"})) << outcome.out;
}

TEST(Usage, mistakes_exit_with_2_and_suggest_what_was_meant) {
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{}, "Usage: reprise [OPTIONS] COMMAND"},
      {{"status"}, "did you mean show?"},
      {{"help"}, "did you mean --help?"},
      {{"show", "@last", "--html"}, "--html needs a value"},
      {{"polcy"}, "did you mean policy?"},
      {{"policy"}, "Try reprise policy --help."},
      {{"frob", "--help"}, "unknown command frob"},
      {{"policy", "frob", "-h"}, "reprise policy: unknown command frob"},
      {{"policy"}, "reprise policy: name a command"},
      {{"show", "@last", "--store", "a", "--store", "b"}, "--store is given more than once"},
      {{"policy", "chek", "x"}, "did you mean check?"},
      {{"policy", "shcedule", "x"}, "did you mean schedule?"},
      {{"policy", "check", "--form", "native", "x"}, "did you mean --from?"},
      {{"policy", "check", "--from", "natve", "-"}, "did you mean native?"},
      {{"policy", "check", "--from", "prodgy", "-"}, "did you mean prodigy?"},
      {{"policy", "show", "--to", "arygll", "-"}, "did you mean argyll?"},
      {{"policy", "check", "--format", "jsn", "-"}, "did you mean json?"},
      {{"policy", "check", "--from"}, "--from"},
      {{"policy", "check"}, "FILE"},
      {{"policy", "check", "a", "b"}, "unexpected argument b"},
      {{"policy", "show", "--format", "svg", "-"}, "expected yaml or json, found svg"},
      {{"policy", "schedule", "--failures", "0", "-"}, "--failures"},
      {{"policy", "schedule", "--failures", "-1", "-"}, "--failures"},
      {{"policy", "schedule", "--failures", "1000001", "-"}, "--failures"},
      {{"policy", "schedule", "--failures", "many", "-"}, "--failures"},
      {{"policy", "schedule", "--failures", "3.5", "-"}, "--failures"},
      {{"policy", "decide", "--seed", "x", "file"}, "--seed"},
      {{"policy", "decide", "--seed", "18446744073709551616", "file"}, "--seed"},
      {{"policy", "decide", "-"}, "standard input"},
      {{"classify", "--rules", "-"}, "standard input"},
      {{"classify", "--format", "svg"}, "expected text or json"},
      {{"schema", "task"}, "task"},
      {{"completion"}, "SHELL"},
      {{"completion", "tcsh"}, "tcsh"},
  };
  for (const auto& [arguments, words] : mistakes) {
    const Outcome outcome = run(arguments);
    std::string line;
    for (const std::string& argument : arguments) line += " " + argument;
    EXPECT_EQ(outcome.exit_code, 2) << line;
    EXPECT_EQ(outcome.out, "") << line;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << line << ": " << outcome.err;
  }
}

// ---- files ----

TEST(Files, that_cannot_be_read_are_bad_usage) {
  const TemporaryDirectory directory;
  for (const char* command : {"check", "show", "schedule", "decide"}) {
    for (const std::string& file : {directory.path() + "/missing", directory.path(), std::string{}}) {
      const Outcome outcome = run({"policy", command, file}, "{\"attempt\": 1}");
      EXPECT_EQ(outcome.exit_code, 2) << command << " " << file;
      EXPECT_EQ(outcome.out, "");
      EXPECT_FALSE(outcome.err.empty());
    }
  }
  EXPECT_NE(run({"policy", "check", directory.path()}).err.find("Is a directory"), std::string::npos);
  EXPECT_NE(run({"policy", "check", "/no/such/file"}).err.find("No such file"), std::string::npos);
  EXPECT_EQ(run({"classify", "--rules", "/no/such/file"}, "{\"exit_code\": 1}").exit_code, 2);
}

TEST(Files, a_dash_is_standard_input) {
  const TemporaryDirectory directory;
  const std::string text = "max_attempts: 7\n";
  const Outcome from_file = run({"policy", "show", "--format", "json", directory.write("p.yaml", text)});
  const Outcome from_input = run({"policy", "show", "--format", "json", "-"}, text);
  EXPECT_EQ(from_file.exit_code, 0);
  EXPECT_EQ(from_file.out, from_input.out);
  EXPECT_NE(run({"policy", "check", "-"}, "x: 1").err.find("<stdin>:1:1: error: "), std::string::npos);
}

TEST(Files, a_full_disk_is_noticed) {
  const Outcome outcome = run_program({"/bin/sh", "-c", std::string{REPRISE_COMMAND} + " schema > /dev/full"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
}

// ---- check ----

TEST(Check, a_valid_policy_exits_with_0_and_leaves_stdout_to_data) {
  const Outcome outcome = run({"policy", "check", "-"}, "standard");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err.find("error"), std::string::npos);
}

TEST(Check, warnings_go_to_stderr_and_do_not_change_the_exit_code) {
  const Outcome outcome = run({"policy", "check", "-"}, "max_attempts: unlimited\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("<stdin>:1:15: warning: unlimited attempts and no deadline"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.out.find("warning: "), std::string::npos);
}

TEST(Check, mistakes_go_to_stderr_with_their_place) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("retry.yaml", "max_attempts: 3\nfacter: 2\n");
  const Outcome outcome = run({"policy", "check", file});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with(
      file + ":2:1: error: unknown key \"facter\"\n  2 | facter: 2\n    | ^~~~~~\n  = did you mean factor? "))
      << outcome.err;
}

TEST(Check, json_names_each_mistake) {
  const Outcome invalid = run({"policy", "check", "--format", "json", "-"}, "facter: 2\ninitial: 5\n");
  EXPECT_EQ(invalid.exit_code, 3);
  EXPECT_EQ(invalid.err, "");
  const json::value answer = json::parse(invalid.out);
  EXPECT_FALSE(answer.at("valid").as_bool());
  ASSERT_EQ(answer.at("diagnostics").as_array().size(), 2U);
  const json::object& first = answer.at("diagnostics").at(0).as_object();
  EXPECT_EQ(first.at("severity"), "error");
  EXPECT_EQ(first.at("file"), "<stdin>");
  EXPECT_EQ(first.at("line"), 1);
  EXPECT_EQ(first.at("column"), 1);
  EXPECT_EQ(first.at("message"), "unknown key \"facter\"");
  const Outcome valid = run({"policy", "check", "--format", "json", "-"}, "max_attempts: unlimited");
  EXPECT_EQ(valid.exit_code, 0);
  EXPECT_EQ(valid.err, "");
  EXPECT_TRUE(json::parse(valid.out).at("valid").as_bool());
  EXPECT_EQ(json::parse(valid.out).at("diagnostics").at(0).at("severity"), "warning");
}

// ---- show ----

TEST(Show, words_and_the_native_form) {
  const Outcome outcome = run({"policy", "show", "-"}, "max_attempts: 4\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "# runs at most 4 times, that is 3 retries\n"
            "# waits 1s 2s 4s, each anywhere between 0 and that\n"
            "# gives up on failures that another attempt cannot mend (deterministic, budget_exhausted)\n"
            "max_attempts: 4\nbackoff: exponential\ninitial: 1s\nfactor: 2\nmax: 30s\njitter: full\n");
  EXPECT_EQ(run({"policy", "check", "-"}, outcome.out).exit_code, 0) << "what is shown can be read";
}

TEST(Show, another_dialect_when_it_can_say_everything) {
  const Outcome outcome = run({"policy", "show", "--to", "wave", "-"}, "jitter: none");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out, "max_attempts: 3\nbackoff: exponential\nbase_delay: 1s\nmax_delay: 30s\nfactor: 2\n");
  const Outcome as_json = run({"policy", "show", "--to", "wave", "--format", "json", "-"}, "jitter: none");
  EXPECT_EQ(json::parse(as_json.out).at("base_delay"), "1s");
}

TEST(Show, losses_are_an_error_unless_lossy) {
  const Outcome strict = run({"policy", "show", "--to", "wave", "-"}, "standard");
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_EQ(strict.out, "");
  EXPECT_NE(strict.err.find("the wave dialect cannot say:\n  - full jitter"), std::string::npos) << strict.err;
  EXPECT_NE(strict.err.find("--lossy"), std::string::npos);
  const Outcome lossy = run({"policy", "show", "--to", "wave", "--lossy", "-"}, "standard");
  EXPECT_EQ(lossy.exit_code, 0);
  EXPECT_NE(lossy.err.find("full jitter"), std::string::npos) << "still listed";
  EXPECT_EQ(lossy.out, "max_attempts: 3\nbackoff: exponential\nbase_delay: 1s\nmax_delay: 30s\nfactor: 2\n");
}

TEST(Show, every_pair_of_dialects_writes_what_the_target_reads) {
  const char* const dialects[] = {"native", "azolla", "rh_agents", "wave", "argyll", "prodigy"};
  for (const char* from : dialects) {
    for (const char* to : dialects) {
      const Outcome written = run({"policy", "show", "--from", from, "--to", to, "--lossy", "-"}, "{}");
      ASSERT_EQ(written.exit_code, 0) << from << " to " << to << ": " << written.err;
      const Outcome checked = run({"policy", "check", "--from", to, "-"}, written.out);
      EXPECT_EQ(checked.exit_code, 0) << from << " to " << to << ":\n" << written.out << checked.err;
      EXPECT_TRUE(std::string_view{from} != to || written.err.empty()) << from << " cannot say what it said itself";
    }
  }
}

// ---- schedule ----

TEST(ScheduleText, in_ascii) {
  const Outcome outcome = run({"policy", "schedule", "-"}, "max_attempts: 4\njitter: equal\n", {{"LC_ALL", "C"}});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "retry       wait                between\n"
            "    1         1s           500ms and 1s  #####.....\n"
            "    2         2s              1s and 2s  ##########..........\n"
            "    3         4s              2s and 4s  ####################....................\n"
            "waits between 3.5s and 7s in all; stops after attempt 4: attempts\n");
}

TEST(ScheduleText, in_utf_8) {
  const Outcome outcome = run({"policy", "schedule", "--failures", "2", "-"}, "max_attempts: 4\njitter: none\n",
                              {{"LC_ALL", "de_CH.UTF-8"}});
  EXPECT_EQ(outcome.out,
            "retry       wait                between\n"
            "    1         1s                exactly  ████████████████████\n"
            "    2         2s                exactly  ████████████████████████████████████████\n"
            "waits 3s in all; goes on after 2 failures\n");
}

TEST(ScheduleText, the_locale_decides_about_the_letters) {
  const auto is_ascii = [](const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  const std::string text = "max_attempts: 60\njitter: full\n";
  const std::vector<std::string> arguments{"policy", "schedule", "--failures", "60", "-"};
  EXPECT_TRUE(is_ascii(run(arguments, text).out)) << "no locale, no UTF-8";
  EXPECT_TRUE(is_ascii(run(arguments, text, {{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}}).out)) << "LC_ALL wins";
  EXPECT_FALSE(is_ascii(run(arguments, text, {{"LANG", "en_US.UTF-8"}}).out));
  EXPECT_FALSE(is_ascii(run(arguments, text, {{"LC_ALL", ""}, {"LC_CTYPE", "C.utf8"}}).out))
      << "an empty LC_ALL is not set";
}

TEST(ScheduleText, has_no_escape_codes_and_no_carriage_returns) {
  const std::string out =
      run({"policy", "schedule", "-"}, "{}", {{"TERM", "xterm-256color"}, {"LC_ALL", "C.UTF-8"}}).out;
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_EQ(out.find('\r'), std::string::npos);
}

TEST(ScheduleText, says_when_nothing_is_retried) {
  EXPECT_EQ(run({"policy", "schedule", "-"}, "none").out, "stops after attempt 1: attempts\n");
  EXPECT_EQ(run({"policy", "schedule", "-"}, "only_on: []").out, "stops after attempt 1: not_listed\n");
}

TEST(ScheduleJson, fractions_of_a_millisecond_are_kept) {
  const Outcome outcome =
      run({"policy", "schedule", "--format", "json", "-"}, "max_attempts: 3\nbackoff: [1500us, 1ns]\njitter: none\n");
  EXPECT_EQ(outcome.out,
            "{\"retries\":[{\"retry\":1,\"nominal_ms\":1.5,\"min_ms\":1.5,\"max_ms\":1.5},{\"retry\":2,\"nominal_ms\":"
            "0.000001,\"min_ms\":0.000001,\"max_ms\":0.000001}],"
            "\"stop\":{\"reason\":\"attempts\",\"after_attempt\":3}}\n");
  EXPECT_EQ(json::parse(run({"policy", "schedule", "--failures", "1", "--format", "json", "-"}, "{}").out).at("stop"),
            nullptr);
}

// Well-formed enough: each element that opens closes, attributes are quoted, and no loose & or < stands in a text.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  const std::regex tag{R"re(<(/?)([a-z]+)((?:\s+[A-Za-z:_-]+="[^"<&]*")*)\s*(/?)>)re"};
  std::size_t at = 0;
  for (auto found = std::sregex_iterator{xml.begin(), xml.end(), tag}; found != std::sregex_iterator{}; ++found) {
    const std::string between = xml.substr(at, static_cast<std::size_t>(found->position()) - at);
    EXPECT_EQ(between.find_first_of("<>&"), std::string::npos) << between;
    at = static_cast<std::size_t>(found->position() + found->length());
    if ((*found)[4] == "/") continue;
    if ((*found)[1] == "/") {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*found)[2]);
      open.pop_back();
    } else {
      open.push_back((*found)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(xml.substr(at), "\n");
}

TEST(ScheduleSvg, is_a_picture) {
  for (const char* policy : {"standard", "none", "{max_attempts: 1000, jitter: 25%}", "{initial: 0, max_attempts: 4}",
                             "{max: null, initial: 9223372036854775807ns}"}) {
    const Outcome outcome = run({"policy", "schedule", "--format", "svg", "--failures", "100", "-"}, policy);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(outcome.out.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << policy;
    expect_well_formed(outcome.out);
    EXPECT_EQ(outcome.out.find("width=\"-"), std::string::npos) << policy;
    EXPECT_EQ(outcome.out.find("nan"), std::string::npos) << policy;
  }
}

// ---- decide ----

class Decide : public ::testing::Test {
 protected:
  json::value decide(const std::string& policy, const std::string& question, std::vector<std::string> flags = {}) {
    std::vector<std::string> arguments{"policy", "decide", "--format", "json", directory_.write("policy", policy)};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = run(arguments, question);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json::parse(outcome.out);
  }
  TemporaryDirectory directory_;
};

TEST_F(Decide, the_same_seed_draws_the_same_delay) {
  const std::string question = R"({"attempt": 2, "failure": {"http_status": 503}})";
  const json::value first = decide("{}", question, {"--seed", "42"});
  EXPECT_EQ(first.at("decision"), "retry");
  EXPECT_EQ(first, decide("{}", question, {"--seed", "42"}));
  std::set<std::string> delays;
  for (const char* seed : {"0", "1", "2", "3", "18446744073709551615"})
    delays.insert(json::serialize(decide("{}", question, {"--seed", seed}).at("delay_ms")));
  EXPECT_EQ(delays.size(), 5U) << "other seeds, other draws";
  std::set<std::string> without_seed;
  for (int time = 0; time < 4; ++time) without_seed.insert(json::serialize(decide("{}", question).at("delay_ms")));
  EXPECT_GT(without_seed.size(), 1U);
}

TEST_F(Decide, either_answer_exits_with_0) {
  EXPECT_EQ(decide("{}", R"({"attempt": 1})").at("decision"), "retry");
  const json::value stop = decide("{}", R"({"attempt": 3})");
  EXPECT_EQ(stop.at("decision"), "stop");
  EXPECT_EQ(stop.at("reason"), "attempts");
  EXPECT_EQ(decide("{}", R"({"attempt": 1, "canceled": true})").at("reason"), "canceled");
  EXPECT_EQ(decide("{}", R"({"attempt": 1, "circuit_open": true})").at("reason"), "circuit_open");
  EXPECT_EQ(decide("{}", R"({"attempt": 1, "failure": {"code": 404}})").at("reason"), "permanent");
  EXPECT_EQ(decide("{}", R"({"attempt": 1, "failure": {"code": 75}})").at("decision"), "retry");
}

TEST_F(Decide, in_words) {
  const std::string file = directory_.write("policy", "jitter: none");
  EXPECT_EQ(run({"policy", "decide", file}, R"({"attempt": 1})").out.substr(0, 11), "retry in 1s");
  EXPECT_EQ(run({"policy", "decide", file}, R"({"attempt": 3})").out, "stop: attempts (3 of 3 attempts are used)\n");
}

TEST_F(Decide, a_question_with_mistakes_exits_with_3) {
  const std::string file = directory_.write("policy", "{}");
  for (const char* question :
       {"", "{}", "[]", "{\"attempt\": 0}", "{\"attempt\": 1.5}", "{\"attempt\": \"1\"}",
        "{\"attempt\": 1, \"failur\": {}}", "{\"attempt\": 1, \"elapsed_ms\": -1}",
        "{\"attempt\": 1, \"failure\": {\"class\": \"transiet\"}}",
        "{\"attempt\": 1, \"failure\": {\"exit_code\": 256}}", "{\"attempt\": 1, \"failure\": {\"signal\": \"NOPE\"}}",
        "{\"attempt\": 1, \"failure\": {\"http_status\": 42}}",
        "{\"attempt\": 1, \"failure\": {\"code\": 503, \"http_status\": 500}}", "{\"attempt\": 1",
        "{\"attempt\": 1, \"failure\": 3}", "{\"attempt\": 4294967297}"}) {
    const Outcome outcome = run({"policy", "decide", "--format", "json", file}, question);
    EXPECT_EQ(outcome.exit_code, 3) << question;
    EXPECT_EQ(outcome.out, "") << question;
    EXPECT_TRUE(has_place(outcome.err)) << question << ": " << outcome.err;
  }
}

// ---- classify ----

TEST(Classify, evidence_in_and_a_class_out) {
  const Outcome outcome = run({"classify", "--format", "json"}, R"({"http_status": 503, "retry_after": "120"})");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out,
            "{\"class\":\"transient\",\"kind\":\"throttled\",\"retryable\":true,\"rule\":\"http "
            "503\",\"retry_after_ms\":120000}\n");
  EXPECT_EQ(run({"classify"}, R"({"exit_code": 127})").out, "deterministic (not_found): not retryable, by exit 127\n");
  EXPECT_EQ(run({"classify"}, R"({"exit_code": 0})").out, "not a failure\n");
}

TEST(Classify, rules_of_the_users_own) {
  const TemporaryDirectory directory;
  const std::string rules = directory.write("rules.yaml", "classify:\n  - {when: \"exit:3\", class: deterministic}\n");
  const json::value answer =
      json::parse(run({"classify", "--format", "json", "--rules", rules}, R"({"exit_code": 3})").out);
  EXPECT_EQ(answer.at("class"), "deterministic");
  EXPECT_EQ(answer.at("rule"), "rule 1: exit:3");
  const Outcome broken =
      run({"classify", "--rules", directory.write("broken.yaml", "- {when: \"exit:0\", class: x}\n")},
          R"({"exit_code": 3})");
  EXPECT_EQ(broken.exit_code, 3);
  EXPECT_EQ(broken.out, "");
  EXPECT_TRUE(has_place(broken.err)) << broken.err;
}

TEST(Classify, mistakes_exit_with_3) {
  for (const char* evidence :
       {"", "{}", "3", "{\"exit_cod\": 1}", "{\"exit_code\": true}", "{\"timed_out\": 1}", "{\"class\": \"nope\"}",
        "{\"retry_after\": []}", "{\"message\": 3}", "{\"message\": \"x\""}) {
    const Outcome outcome = run({"classify", "--format", "json"}, evidence);
    EXPECT_EQ(outcome.exit_code, 3) << evidence;
    EXPECT_EQ(outcome.out, "") << evidence;
    EXPECT_TRUE(has_place(outcome.err)) << evidence << ": " << outcome.err;
  }
}

// ---- bad inputs ----

TEST(BadInput, is_refused_with_a_place_and_nothing_on_stdout) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 10; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    laughs += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + before;
    for (int time = 0; time < 9; ++time) laughs += ", " + before;
    laughs += "]\n";
  }
  std::string many_keys;
  for (int key = 0; key < 20'000; ++key) many_keys += "key" + std::to_string(key) + ": 1\n";
  const std::map<std::string, std::string> inputs{
      {"10 MB", "max_attempts: 3 #" + std::string(10 * 1024 * 1024, 'x')},
      {"10 MB of a string", "policy: \"" + std::string(10 * 1024 * 1024, 'x') + "\""},
      {"billion laughs", laughs},
      {"deep list", std::string(100'000, '[')},
      {"deep map",
       [] {
         std::string text;
         for (int depth = 0; depth < 50'000; ++depth) text += "{\"a\":";
         return text;
       }()},
      {"deep block",
       [] {
         std::string text;
         for (std::size_t depth = 0; depth < 1000; ++depth) text += std::string(depth, ' ') + "a:\n";
         return text;
       }()},
      {"invalid UTF-8", "max_attempts: 3\npolicy: \xff\xfe\n"},
      {"NUL", std::string{"max_attempts: 3\0\n", 17}},
      {"UTF-16", std::string{"\xff\xfe{\0}\0", 6}},
      {"a binary file", std::string{"\x7f"
                                    "ELF\x02\x01\x01\0\0\0",
                                    10}},
      {"2^63 attempts", "max_attempts: 9223372036854775808"},
      {"2^64 attempts", "max_attempts: 18446744073709551616"},
      {"a huge number", "max_attempts: " + std::string(100'000, '9')},
      {"2^63 ns", "initial: 9223372036854775808ns"},
      {"2^63 s", "initial: 9223372036854775808s"},
      {"minus 2^63", "max_attempts: -9223372036854775808"},
      {"a factor beyond any", "factor: 1e999"},
      {"not a number", "factor: .nan"},
      {"20000 unknown keys", many_keys},
      {"two documents", "{}\n---\n{}\n"},
      {"an alias to itself", "&a {policy: *a}"},
      {"a tag", "!!python/object/apply:os.system [\"true\"]"},
      {"a merge key", "<<: {max_attempts: 3}"},
      {"nothing", ""},
  };
  for (const auto& [what, text] : inputs) {
    for (const char* command : {"check", "show", "schedule"}) {
      const Outcome outcome = run({"policy", command, "-"}, text);
      EXPECT_EQ(outcome.exit_code, 3) << what;
      EXPECT_EQ(outcome.out, "") << what;
      EXPECT_TRUE(has_place(outcome.err)) << what << ": " << outcome.err.substr(0, 500);
      EXPECT_LT(outcome.err.size(), 40'000U) << what << ": a page, not a book";
    }
  }
}

TEST(BadInput, no_dialect_is_crashed_by_it) {
  const std::string inputs[] = {std::string(70, '['),
                                "\"",
                                "{a: *b}",
                                "- - - -",
                                "? ?",
                                ": :",
                                "{\"a\":1,\"a\":2}",
                                "~",
                                "true",
                                "3",
                                "[]",
                                "''",
                                "!",
                                "&",
                                "*",
                                "|",
                                ">",
                                "%",
                                "@",
                                "`",
                                "\t",
                                "\xEF\xBB\xBF"};
  for (const char* dialect : {"native", "azolla", "rh_agents", "wave", "argyll", "prodigy"}) {
    for (const std::string& text : inputs) {
      const Outcome outcome = run({"policy", "check", "--from", dialect, "-"}, text);
      EXPECT_EQ(outcome.exit_code, 3) << dialect << ": " << text << outcome.err;
      EXPECT_TRUE(has_place(outcome.err)) << dialect << ": " << text << ": " << outcome.err;
    }
  }
}

// ---- manual pages ----

TEST(Man, prints_the_page_of_a_command) {
  const Outcome page = run({"man", "dead-letters", "list"});
  EXPECT_EQ(page.exit_code, 0);
  EXPECT_EQ(page.err, "");
  EXPECT_TRUE(page.out.starts_with(".TH REPRISE\\-DEAD\\-LETTERS\\-LIST 1 ")) << page.out;
  EXPECT_TRUE(run({"man"}).out.starts_with(".TH REPRISE 1 "));
}

TEST(Man, mistakes_are_bad_usage) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"man", "rnu"}, "did you mean run?"},
      {{"man", "run", "more"}, "reprise run has no command more"},
      {{"man", "run", "--all", directory.path()}, "not both"},
      {{"man", "--all", file}, "cannot"},
      {{"man", "--all", file + "/below"}, "cannot make"},
  };
  for (const auto& [arguments, words] : mistakes) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << ": " << outcome.err;
  }
}

TEST(Man, all_pages_are_clean_roff) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/man1";
  ASSERT_EQ(run({"man", "--all", folder}).exit_code, 0);
  const Outcome list = run_program({"ls", folder});
  for (const char* page :
       {"reprise.1\n", "reprise-run.1\n", "reprise-policy-check.1\n", "reprise-dead-letters-drop.1\n"})
    EXPECT_NE(list.out.find(page), std::string::npos) << page;
  const Outcome checked = run_program({"sh", "-c", "mandoc -T lint -W style " + folder + "/*.1"});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_EQ(checked.out + checked.err, "");
  const Outcome shown = run_program({"sh", "-c", "mandoc -T ascii " + folder + "/reprise-exec.1 | sed 's/.\b//g'"});
  for (const char* words :
       {"       reprise exec --max-attempts 5 --backoff exponential:1s..30s -- ./upload.sh\n",
        "       --only-on LIST\n", "       REPRISE_IDEMPOTENCY_KEY\n", "       125    Bad usage.\n"})
    EXPECT_NE(shown.out.find(words), std::string::npos) << words << " in\n" << shown.out;
}

// ---- completion ----

TEST(Completion, scripts_go_to_stdout) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = run({"completion", shell});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* word : {"check", "schedule", "classify", "schema", "rh_agents"})
      EXPECT_NE(outcome.out.find(word), std::string::npos) << shell << " " << word;
  }
  EXPECT_TRUE(run({"completion", "zsh"}).out.starts_with("#compdef reprise\n"));
}

class BashCompletion : public ::testing::Test {
 protected:
  void SetUp() override { script_ = directory_.write("reprise.bash", run({"completion", "bash"}).out); }

  // What bash would offer after these words; the last one is being typed.
  std::set<std::string> offers(const std::vector<std::string>& words) {
    std::string line = "source " + script_ + "; COMP_WORDS=(reprise";
    for (const std::string& word : words) line += " '" + word + "'";
    line += "); COMP_CWORD=" + std::to_string(words.size()) + "; _reprise; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const Outcome outcome = run_program({"bash", "-c", "cd " + directory_.path() + " && " + line});
    EXPECT_EQ(outcome.err, "");
    std::set<std::string> offered;
    std::istringstream lines{outcome.out};
    for (std::string word; std::getline(lines, word);) {
      if (!word.empty()) offered.insert(word);
    }
    return offered;
  }

  TemporaryDirectory directory_;
  std::string script_;
};

TEST_F(BashCompletion, is_valid_bash) {
  const Outcome outcome = run_program({"bash", "-n", script_});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(BashCompletion, offers_commands_options_and_choices) {
  using Words = std::set<std::string>;
  const auto contains = [](const Words& offered, const Words& wanted) {
    return std::ranges::includes(offered, wanted);
  };
  EXPECT_TRUE(contains(offers({""}), {"policy", "classify", "schema", "completion", "--help", "--version"}));
  EXPECT_EQ(offers({"po"}), (Words{"policy"}));
  EXPECT_TRUE(contains(offers({"policy", ""}), {"check", "show", "schedule", "decide"}));
  EXPECT_EQ(offers({"policy", "sh"}), (Words{"show"}));
  EXPECT_EQ(offers({"policy", "check", "--from", ""}),
            (Words{"native", "azolla", "rh_agents", "wave", "argyll", "prodigy"}));
  EXPECT_EQ(offers({"policy", "schedule", "--format", ""}), (Words{"text", "json", "svg"}));
  EXPECT_TRUE(contains(offers({"policy", "show", "--"}), {"--from", "--to", "--format", "--lossy"}));
  EXPECT_EQ(offers({"completion", ""}).count("fish"), 1U);
  EXPECT_EQ(offers({"schema", "p"}), (Words{"policy"}));
  EXPECT_TRUE(contains(offers({"policy", "check", "re"}), {"reprise.bash"})) << "files, where a file is wanted";
  EXPECT_TRUE(contains(offers({"policy", "check", "--from", "wave", "--"}), {"--format"}))
      << "after an option and its value too";
}

}  // namespace
}  // namespace reprise
