#include "cli/policy_app.hpp"

#include "cli/options.hpp"

namespace reprise::cli {
namespace {

using Chosen = std::function<int()>;

const Choices<Dialect> dialects = [] {
  Choices<Dialect> names;
  for (const Dialect dialect : all_dialects) names.emplace_back(name_of(dialect), dialect);
  return names;
}();

void add_policy_source(CLI::App& command, PolicySource& source,
                       const char* file_help = "a policy in YAML or JSON; - reads standard input") {
  add_choice(command, "--from", source.from, dialects, "the dialect of FILE (default: native)");
  command.add_option("FILE", source.file, file_help)->required()->option_text(" ");
}

void add_check(CLI::App& policy, PolicyAppOptions& options, Chosen& chosen) {
  CLI::App* command = policy.add_subcommand("check", "Is it valid, and would a reviewer say something about it?");
  add_policy_source(*command, options.check.policy);
  add_format(*command, options.check.json, "how mistakes are shown (default: text)");
  command->footer(
      "Exit code 0: valid (warnings do not change that). 3: invalid.\n\n"
      "  reprise policy check retry.yaml\n"
      "  echo '{\"stop\": {\"max_attempts\": 5}}' | reprise policy check --from azolla -");
  command->callback([&] { chosen = [&options] { return policy_check(options.check); }; });
}

void add_show(CLI::App& policy, PolicyAppOptions& options, Chosen& chosen) {
  using Format = PolicyShowOptions::Format;
  CLI::App* command =
      policy.add_subcommand("show", "The policy in words and in the native form, or in another dialect");
  add_policy_source(*command, options.show.policy);
  add_choice(*command, "--to", options.show.to, dialects, "write it in this dialect");
  add_choice(*command, "--format", options.show.format, Choices<Format>{{"yaml", Format::yaml}, {"json", Format::json}},
             "default: words and YAML");
  command->add_flag("--lossy", options.show.lossy, "write it even if the target dialect cannot say everything");
  command->footer(
      "What the target dialect cannot say is listed, and is an error (exit code 3) unless --lossy.\n\n"
      "  reprise policy show retry.yaml\n"
      "  reprise policy show --from prodigy --to argyll --lossy retry_config.yaml");
  command->callback([&] { chosen = [&options] { return policy_show(options.show); }; });
}

void add_schedule(CLI::App& policy, PolicyAppOptions& options, Chosen& chosen) {
  using Format = PolicyScheduleOptions::Format;
  CLI::App* command = policy.add_subcommand("schedule", "The waits, if every attempt fails at once");
  add_policy_source(*command, options.schedule.policy);
  add_number(*command, "--failures", options.schedule.failures, {1, 1'000'000},
             "how many failures to look at (default: 10)");
  add_choice(*command, "--format", options.schedule.format,
             Choices<Format>{{"text", Format::text}, {"json", Format::json}, {"svg", Format::svg}}, "default: text");
  command->footer(
      "  reprise policy schedule retry.yaml\n"
      "  reprise policy schedule --format svg retry.yaml > waits.svg");
  command->callback([&] { chosen = [&options] { return policy_schedule(options.schedule); }; });
}

void add_decide(CLI::App& policy, PolicyAppOptions& options, Chosen& chosen) {
  CLI::App* command =
      policy.add_subcommand("decide", "One failed attempt on standard input, one decision on standard output");
  add_policy_source(*command, options.decide.policy, "a policy in YAML or JSON");
  add_format(*command, options.decide.json);
  add_number(*command, "--seed", options.decide.seed, {0, UINT64_MAX}, "fixes the draw of the delay");
  command->footer("  echo '{\"attempt\": 2, \"failure\": {\"http_status\": 503}}' | reprise policy decide retry.yaml");
  command->callback([&] { chosen = [&options] { return policy_decide(options.decide); }; });
}

void add_classify(CLI::App& app, PolicyAppOptions& options, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("classify", "Which class a failure has, and by which rule");
  command
      ->add_option("--rules", options.classify.rules_file,
                   "rules of your own, tried first: classify: [{when: \"exit:3\", class: deterministic}]")
      ->option_text("FILE");
  add_format(*command, options.classify.json);
  command->footer("  echo '{\"http_status\": 503, \"retry_after\": \"120\"}' | reprise classify");
  command->callback([&] { chosen = [&options] { return classify_failure(options.classify); }; });
}

}  // namespace

void add_policy_commands(CLI::App& app, PolicyAppOptions& options, Chosen& chosen) {
  CLI::App* const policy = app.add_subcommand("policy", "Check, explain, convert and try out retry policies");
  policy->require_subcommand(1);
  policy->footer(
      "Dialects: native, azolla, rh_agents, wave, argyll, prodigy.\n\n"
      "  echo patient | reprise policy schedule -\n"
      "  reprise policy show retry.yaml");
  add_check(*policy, options, chosen);
  add_show(*policy, options, chosen);
  add_schedule(*policy, options, chosen);
  add_decide(*policy, options, chosen);
  add_classify(app, options, chosen);
}

}  // namespace reprise::cli
