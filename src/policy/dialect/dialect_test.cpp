// Reading and writing the six dialects: hints for newcomers, named policies, the JSON form, and conversion losses.
#include <reprise/dialect.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise {
namespace {

using namespace std::chrono_literals;

Policy read(const std::string& text, Dialect dialect = Dialect::native) {
  const auto result = read_policy(text, dialect);
  EXPECT_TRUE(result.has_value()) << text << (result ? "" : render(result.error()));
  return result ? result->policy : Policy{};
}

Diagnostic first_error(const std::string& text, Dialect dialect = Dialect::native) {
  const auto result = read_policy(text, dialect);
  EXPECT_FALSE(result.has_value()) << text;
  return result ? Diagnostic{} : result.error().front();
}

TEST(DialectNames, are_those_of_the_command_line) {
  for (const Dialect dialect : all_dialects) EXPECT_EQ(dialect_named(name_of(dialect)), dialect);
  EXPECT_EQ(dialect_named("Native"), std::nullopt);
  EXPECT_EQ(dialect_named(""), std::nullopt);
}

TEST(DialectNative, explicit_fields_override_the_base_one_by_one) {
  const Policy policy = read("policy: aggressive\nmax_attempts: 7\n");
  Policy expected = policy::aggressive;
  expected.max_attempts = 7;
  EXPECT_EQ(policy, expected);
  EXPECT_EQ(read("max_attempts: 7\npolicy: aggressive\n"), expected) << "whatever the order";
  EXPECT_EQ(read("aggressive"), policy::aggressive);
  EXPECT_EQ(read("\"patient\""), policy::patient);
}

TEST(DialectNative, policies_of_the_users_own_can_be_a_base) {
  NamedPolicies names;
  names["nightly"] = Policy{.max_attempts = 9, .initial = 1min};
  names["standard"] = Policy{.max_attempts = 4};
  const auto result = read_policy("policy: nightly\nmax: null\n", Dialect::native, "-", names);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->policy.max_attempts, 9U);
  EXPECT_EQ(result->policy.max, std::nullopt);
  EXPECT_EQ(read_policy("nightly", Dialect::native, "-", names)->policy, names["nightly"]);
  EXPECT_EQ(read_policy("standard", Dialect::native, "-", names)->policy.max_attempts, 4U)
      << "a user's name wins over a built-in one";
  const auto misspelt = read_policy("policy: nigthly", Dialect::native, "-", names);
  ASSERT_FALSE(misspelt.has_value());
  EXPECT_EQ(misspelt.error()[0].help, "did you mean nightly?");
}

TEST(DialectNative, words_of_other_tools_get_a_hint) {
  const std::pair<const char*, const char*> hints[] = {
      {"retries: 3", "write max_attempts: 4 (the first run counts)"},
      {"max_retries: 0", "write max_attempts: 1 (the first run counts)"},
      {"retries: many", "write max_attempts, which counts the first run too"},
      {"attempts: 3", "write max_attempts"},
      {"delay: 1s", "write initial"},
      {"base_delay: 1s", "write initial"},
      {"max_delay: 1s", "write max;"},
      {"multiplier: 2", "write factor"},
      {"on: [x]", "write only_on"},
      {"retry_on: [x]", "write only_on"},
      {"exclude_errors: []", "write never_on"},
      {"timeout: 1s", "write attempt_timeout"},
      {"deadline: 1s", "write max_elapsed"},
      {"retry: {}", "write what stands under retry: alone"},
  };
  for (const auto& [text, hint] : hints)
    EXPECT_TRUE(first_error(text).help.starts_with(hint)) << text << ": " << first_error(text).help;
  EXPECT_EQ(first_error("backoff: fixed").help, "did you mean constant?");
  EXPECT_EQ(first_error("jitter: 0.25").help, "write 25%");
}

TEST(DialectHints, words_of_other_tools_get_a_hint_in_every_dialect) {
  struct Case {
    Dialect dialect;
    const char* text;
    const char* hint;
  };
  const Case cases[] = {
      {Dialect::wave, "retries: 3", "write max_attempts: 4 (the first run counts)"},
      {Dialect::wave, "initial: 1s", "write base_delay"},
      {Dialect::wave, "max: 1s", "write max_delay"},
      {Dialect::rh_agents, "retries: 3", "write max_attempts: 4 (the first run counts)"},
      {Dialect::rh_agents, "backoff: linear", "write backoff_strategy"},
      {Dialect::prodigy, "retries: 3", "write attempts: 4 (the first run counts)"},
      {Dialect::prodigy, "base_delay: 1s", "write initial_delay"},
      {Dialect::argyll, "retries: 3", "write max_retries"},
      {Dialect::argyll, "max_attempts: 3", "write max_retries: 2 (the first run does not count)"},
      {Dialect::azolla, "stop: {retries: 3}", "write max_attempts: 4 (the first run counts)"},
      {Dialect::native, "base_delay: 1s", "write initial; or put dialect: wave at the top"},
  };
  for (const Case& each : cases) {
    const auto result = read_policy(each.text, each.dialect, "-");
    ASSERT_FALSE(result.has_value()) << each.text;
    EXPECT_TRUE(result.error()[0].help.starts_with(each.hint)) << each.text << ": " << result.error()[0].help;
  }
}

TEST(DialectNative, jitter_ratios_are_exact) {
  EXPECT_EQ(read("jitter: 25%").jitter_ratio, 0.25);
  EXPECT_EQ(read("jitter: 12.5%").jitter_ratio, 0.125);
  EXPECT_EQ(read("jitter: 30%").jitter_ratio, 0.3);
  EXPECT_EQ(read("jitter: 7%").jitter_ratio, 0.07);
  EXPECT_EQ(read("jitter: 0%").jitter, Jitter::ratio);
  EXPECT_EQ(read("jitter: 100%").jitter_ratio, 1);
  for (const char* text : {"jitter: 101%", "jitter: 100.0001%", "jitter: -5%", "jitter: '%'", "jitter: .5%",
                           "jitter: 5.%", "jitter: 1.2.3%", "jitter: 1e1%", "jitter: '25 %'", "jitter: 0.25",
                           "jitter: true", "jitter: null", "jitter: [full]", "jitter: Full"}) {
    EXPECT_TRUE(first_error(text).message.starts_with("jitter: expected none, full, equal or a ratio")) << text;
  }
}

TEST(DialectJson, has_the_fields_of_the_contract) {
  EXPECT_EQ(
      policy_json(policy::standard),
      R"({"max_attempts":3,"max_elapsed_ms":null,"attempt_timeout_ms":null,"backoff":"exponential","initial_ms":1000,"increment_ms":1000,"factor":2,)"
      R"("delays_ms":null,"max_ms":30000,"jitter":"full","jitter_ratio":null,"only_on":null,"never_on":null,"match":"tree","honor_retry_after":true,)"
      R"("retry_budget_ms":null,"limits":{"worker_lost":3},"parallelism":1})");
  EXPECT_EQ(
      policy_json(read("{max_attempts: null, backoff: [1500us, 0], max: null, jitter: 12.5%, only_on: [], never_on: "
                       "[TimeoutError, \"/a\\\"b/\"]}")),
      R"({"max_attempts":null,"max_elapsed_ms":null,"attempt_timeout_ms":null,"backoff":"list","initial_ms":1000,"increment_ms":1000,"factor":2,)"
      R"("delays_ms":[1.5,0],"max_ms":null,"jitter":"ratio","jitter_ratio":0.125,"only_on":[],"never_on":["TimeoutError","/a\"b/"],"match":"tree",)"
      R"("honor_retry_after":true,"retry_budget_ms":null,"limits":{"worker_lost":3},"parallelism":1})");
}

TEST(DialectWrite, native_as_a_person_would_write_it) {
  EXPECT_EQ(write_policy(policy::standard, Dialect::native).text,
            "max_attempts: 3\nbackoff: exponential\ninitial: 1s\nfactor: 2\nmax: 30s\njitter: full\n");
  EXPECT_EQ(write_policy(read("{max_attempts: unlimited, max_elapsed: 15m, backoff: [1s, 500ms], jitter: 12.5%, "
                              "only_on: [\"http:5xx\"], honor_retry_after: false}"),
                         Dialect::native)
                .text,
            "max_attempts: unlimited\nmax_elapsed: 15m\nbackoff: [1s, 500ms]\nmax: 30s\njitter: 12.5%\nonly_on: "
            "[\"http:5xx\"]\nhonor_retry_after: false\n");
  EXPECT_EQ(write_policy(policy::none, Dialect::native, TextFormat::json).text,
            "{\n  \"max_attempts\": 1,\n  \"backoff\": \"exponential\",\n  \"initial\": \"1s\",\n  \"factor\": 2,\n  "
            "\"max\": \"30s\",\n  \"jitter\": \"full\"\n}\n");
}

TEST(DialectWrite, the_other_dialects_in_their_own_words) {
  Policy policy = read("{}", Dialect::azolla);
  EXPECT_EQ(write_policy(policy, Dialect::azolla).text,
            "version: 1\nstop:\n  max_attempts: 5\nwait:\n  strategy: exponential_jitter\n  initial_delay: 1\n  "
            "multiplier: 2\n  max_delay: 300\nretry:\n"
            "  include_errors: [ValueError]\n");
  policy = read("{exclude_exceptions: [OSError], retry_timeout: 1.5}", Dialect::rh_agents);
  EXPECT_EQ(write_policy(policy, Dialect::rh_agents).text,
            "max_attempts: 3\nbackoff_strategy: exponential\ninitial_delay: 1\nmax_delay: 60\nbackoff_multiplier: "
            "2\njitter: true\nexclude_exceptions: [OSError]\n"
            "retry_timeout: 1.5\n");
  EXPECT_EQ(write_policy(read("policy: patient", Dialect::wave), Dialect::wave).text,
            "max_attempts: 3\nbackoff: exponential\nbase_delay: 5s\nmax_delay: 1m30s\nfactor: 3\n");
  EXPECT_EQ(write_policy(read("{max_retries: -1, parallelism: 3}", Dialect::argyll), Dialect::argyll).text,
            "max_retries: -1\nbackoff: 1000\nmax_backoff: 60000\nbackoff_type: exponential\nparallelism: 3\n");
  EXPECT_EQ(
      write_policy(read("{jitter: true, retry_on: [network, {pattern: \"a b\"}], retry_budget: 90s}", Dialect::prodigy),
                   Dialect::prodigy)
          .text,
      "attempts: 3\nbackoff:\n  exponential:\n    base: 2\ninitial_delay: 1s\nmax_delay: 30s\njitter: "
      "true\njitter_factor: 0.3\nretry_budget: 1m30s\nretry_on:\n"
      "  - network\n  -\n    pattern: \"a b\"\n");
}

bool loses(const Policy& policy, Dialect dialect, std::string_view what) {
  const auto losses = write_policy(policy, dialect).losses;
  return std::ranges::any_of(losses, [&](const std::string& loss) { return loss.find(what) != std::string::npos; });
}

TEST(DialectLosses, each_thing_a_dialect_cannot_say_is_named) {
  const std::pair<const char*, const char*> native_to_wave[] = {
      {"{}", "full jitter"},
      {"{jitter: none, only_on: [auth]}", "retrying only on: auth"},
      {"{jitter: none, never_on: [auth]}", "never retrying on: auth"},
      {"max_elapsed: 1h", "giving up 1h after"},
      {"attempt_timeout: 1s", "the limit of 1s for each attempt"},
      {"honor_retry_after: false", "Retry-After"},
      {"max_attempts: unlimited", "unlimited attempts"},
      {"backoff: fibonacci", "fibonacci backoff"},
      {"backoff: [1s]", "a list of delays"},
      {"{backoff: linear, increment: 3s}", "linear backoff by 3s"},
      {"backoff: decorrelated", "decorrelated backoff"},
  };
  for (const auto& [text, loss] : native_to_wave) EXPECT_TRUE(loses(read(text), Dialect::wave, loss)) << text;
  EXPECT_TRUE(write_policy(read("jitter: none"), Dialect::wave).losses.empty());
  EXPECT_TRUE(loses(read("{}", Dialect::argyll), Dialect::native, "handler itself"));
  EXPECT_TRUE(loses(read("{parallelism: 2}", Dialect::argyll), Dialect::native, "2 work items"));
  EXPECT_TRUE(loses(read("{retry_budget: 1m}", Dialect::prodigy), Dialect::native, "the budget of 1m"));
  EXPECT_TRUE(loses(read("{retry_on: [network]}", Dialect::prodigy), Dialect::native, "network in only_on"));
  EXPECT_TRUE(loses(read("{}", Dialect::azolla), Dialect::native, "exactly"));
  EXPECT_TRUE(loses(read("{}", Dialect::rh_agents), Dialect::azolla, "subtypes"));
  EXPECT_TRUE(loses(read("{}"), Dialect::azolla, "every kind of error"));
  EXPECT_TRUE(loses(read("{}"), Dialect::prodigy, "class is not retryable"));
  EXPECT_TRUE(loses(read("only_on: []"), Dialect::prodigy, "retrying on nothing"));
  EXPECT_TRUE(loses(read("only_on: [auth]"), Dialect::prodigy, "auth in only_on"));
  EXPECT_TRUE(loses(read("{}"), Dialect::rh_agents, "rh-agents never does"));
  EXPECT_TRUE(loses(read("jitter: 30%"), Dialect::rh_agents, "±30 % jitter"));
  EXPECT_TRUE(loses(read("{}"), Dialect::argyll, "deciding by class"));
  EXPECT_TRUE(loses(read("initial: 1500us"), Dialect::argyll, "fraction of a millisecond in the first delay"));
  EXPECT_TRUE(loses(read("{}", Dialect::prodigy), Dialect::wave, "every class"));
}

// A document that a lossy conversion writes is still a valid one.
TEST(DialectLosses, what_is_written_is_valid_all_the_same) {
  for (const char* text :
       {"{}", "none", "{max_attempts: unlimited, max: null, backoff: fibonacci}", "{backoff: [1s, 2s], max: null}",
        "{backoff: decorrelated, only_on: [auth, OSError]}", "{only_on: []}", "{initial: 1h, max: 1s}",
        "{initial: 1ns, jitter: 0.5%}", "{never_on: [\"/a b/\"], max_elapsed: 1ns, attempt_timeout: 1ns}"}) {
    for (const Dialect dialect : all_dialects) {
      for (const TextFormat format : {TextFormat::yaml, TextFormat::json}) {
        const WrittenPolicy written = write_policy(read(text), dialect, format);
        const auto back = read_policy(written.text, dialect);
        EXPECT_TRUE(back.has_value()) << text << " in " << name_of(dialect) << ":\n"
                                      << written.text << (back ? "" : render(back.error()));
      }
    }
  }
}

// Names that mean one thing here and another thing there: said to be lost, or written so that they keep their meaning.
TEST(DialectLosses, a_type_whose_name_is_a_native_word_does_not_change_its_meaning) {
  for (const char* name : {"timeout", "transient", "exit:3", "/x/", "http:503"}) {
    const Policy policy = read("{\"retry\": {\"include_errors\": [\"" + std::string{name} + "\"]}}", Dialect::azolla);
    const WrittenPolicy written = write_policy(policy, Dialect::native);
    if (!written.losses.empty()) continue;
    const auto back = read_policy(written.text, Dialect::native);
    ASSERT_TRUE(back.has_value()) << written.text;
    Random random{1};
    EXPECT_TRUE(decide(back->policy, {}, {.type = name, .message = "y"}, random).retry)
        << "nothing was reported as lost, but " << name << " is no longer retried";
  }
}

TEST(DialectLosses, a_type_that_native_cannot_name_is_lost_and_said_to_be) {
  for (const char* name : {"My-Error", "std::io::Error", "Erreur é", "3"}) {
    const Policy policy = read("{\"retry_on_exceptions\": [\"" + std::string{name} + "\"]}", Dialect::rh_agents);
    const WrittenPolicy written = write_policy(policy, Dialect::native);
    EXPECT_TRUE(!written.losses.empty() || read_policy(written.text, Dialect::native).has_value()) << name << "\n"
                                                                                                   << written.text;
  }
}

TEST(DialectLosses, an_empty_pattern_matches_everything_in_native_too) {
  const Policy policy = read("retry_on: [{pattern: \"\"}]", Dialect::prodigy);
  const WrittenPolicy written = write_policy(policy, Dialect::native);
  EXPECT_TRUE(!written.losses.empty() || read_policy(written.text, Dialect::native).has_value()) << written.text;
}

TEST(DialectRhAgents, statuses_and_exit_codes_may_stand_in_its_lists) {
  const Policy policy = read(R"({"retry_on_exceptions": ["http:5xx", "exit:75"], "exclude_exceptions": ["http:501"]})",
                             Dialect::rh_agents);
  Random random{1};
  EXPECT_TRUE(decide(policy, {}, {.http_status = 503}, random).retry);
  EXPECT_TRUE(decide(policy, {}, {.exit_code = 75}, random).retry);
  EXPECT_EQ(decide(policy, {}, {.http_status = 501}, random).reason, StopReason::permanent);
  EXPECT_EQ(decide(policy, {}, {.http_status = 404}, random).reason, StopReason::not_listed);
  EXPECT_TRUE(write_policy(policy, Dialect::rh_agents).losses.empty());
}

TEST(DialectRhAgents, entries_that_cannot_match_are_mistakes) {
  for (const char* entry : {"/reset/", "signal:KILL", "http:42", "http:6xx", "exit:0", "exit:300"}) {
    const auto result = read_policy("{\"retry_on_exceptions\": [\"" + std::string{entry} + "\"]}", Dialect::rh_agents);
    ASSERT_FALSE(result.has_value()) << entry;
    EXPECT_NE(result.error().front().message.find("cannot match anything"), std::string::npos);
  }
}

TEST(DialectRhAgents, what_is_built_in_has_its_own_lists) {
  const Policy tool = built_in_policy(Dialect::rh_agents, "TOOL_CALL");
  EXPECT_EQ(tool, built_in_policy(Dialect::rh_agents, "llm"));
  EXPECT_EQ(tool, read("{max_attempts: 3, initial_delay: 1.0, max_delay: 30.0}", Dialect::rh_agents));
  EXPECT_EQ(built_in_policy(Dialect::rh_agents, "agent").max_attempts, 1U);
  EXPECT_EQ(built_in_policy(Dialect::rh_agents, "human").max_attempts, 1U);
  EXPECT_EQ(built_in_policy(Dialect::native, "agent_call"), policy::agent);
  EXPECT_EQ(built_in_policy(Dialect::azolla, "tool"), read("{}", Dialect::azolla));
}

// Messages are for terminals: whatever a document holds, no control character comes out.
TEST(DialectErrors, are_safe_to_show) {
  const std::pair<Dialect, const char*> documents[] = {
      {Dialect::native, R"({"policy": "\u001b[31m"})"},
      {Dialect::native, R"({"\u001b[31m": 1})"},
      {Dialect::native, R"({"only_on": ["\u001b[31m"]})"},
      {Dialect::native, R"({"only_on": ["/(\u001b[31m/"]})"},
      {Dialect::native, R"({"only_on": ["/[\u001b/"]})"},
      {Dialect::native, R"({"only_on": "\u001b"})"},
      {Dialect::native, R"({"max_attempts": "\u001b"})"},
      {Dialect::native, R"({"initial": "\u001b"})"},
      {Dialect::native, R"({"jitter": "\u001b"})"},
      {Dialect::prodigy, R"({"backoff": {"\u001b[31m": 1}})"},
      {Dialect::prodigy, R"({"backoff": "\u001b[31m"})"},
      {Dialect::prodigy, R"({"retry_on": ["\u001b[31m"]})"},
      {Dialect::prodigy, R"({"retry_on": [{"pattern": "(\u001b"}]})"},
      {Dialect::azolla, R"({"stop": {"\u001b": 1}})"},
      {Dialect::argyll, R"({"\u001b": 1, "\u001b": 2})"},
  };
  for (const auto& [dialect, text] : documents) {
    const auto result = read_policy(text, dialect);
    ASSERT_FALSE(result.has_value()) << text;
    const std::string shown = render(result.error());
    EXPECT_TRUE(std::ranges::none_of(shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }))
        << text;
  }
}

}  // namespace
}  // namespace reprise
