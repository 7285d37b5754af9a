#include "cli/tree/policy_app.hpp"

#include "cli/tree/options.hpp"

namespace reprise::cli {
namespace {

void add_policy_source(CommandShape& command, PolicySource& source,
                       const char* file_help = "a policy in YAML or JSON; - reads standard input") {
  add_choice(command, "--from", source.from, dialects(), "the dialect of FILE (default: native)");
  add_argument(command, "FILE", source.file, file_help);
}

CommandShape check_command(PolicyCheckOptions& options) {
  CommandShape command = command_named("check", "Is it valid, and would a reviewer say something about it?");
  add_policy_source(command, options.policy);
  add_format(command, options.json, "how mistakes are shown (default: text)");
  set_footer(command,
             "Exit code 0: valid (warnings do not change that). 3: invalid.\n\n"
             "  reprise policy check retry.yaml\n"
             "  echo '{\"stop\": {\"max_attempts\": 5}}' | reprise policy check --from azolla -");
  command.run = [&options] { return policy_check(options); };
  return command;
}

CommandShape show_command(PolicyShowOptions& options) {
  using Format = PolicyShowOptions::Format;
  CommandShape command = command_named("show", "The policy in words and in the native form, or in another dialect");
  add_policy_source(command, options.policy);
  add_choice(command, "--to", options.to, dialects(), "write it in this dialect");
  add_choice(command, "--format", options.format, Choices<Format>{{"yaml", Format::yaml}, {"json", Format::json}},
             "default: words and YAML");
  add_flag(command, "--lossy", options.lossy, "write it even if the target dialect cannot say everything");
  set_footer(command,
             "What the target dialect cannot say is listed, and is an error (exit code 3) unless --lossy.\n\n"
             "  reprise policy show retry.yaml\n"
             "  reprise policy show --from prodigy --to argyll --lossy retry_config.yaml");
  command.run = [&options] { return policy_show(options); };
  return command;
}

CommandShape schedule_command(PolicyScheduleOptions& options) {
  using Format = PolicyScheduleOptions::Format;
  CommandShape command = command_named("schedule", "The waits, if every attempt fails at once");
  add_policy_source(command, options.policy);
  add_number(command, "--failures", options.failures, {1, 1'000'000}, "how many failures to look at (default: 10)");
  add_choice(command, "--format", options.format,
             Choices<Format>{{"text", Format::text}, {"json", Format::json}, {"svg", Format::svg}}, "default: text");
  set_footer(command,
             "  reprise policy schedule retry.yaml\n"
             "  reprise policy schedule --format svg retry.yaml > waits.svg");
  command.run = [&options] { return policy_schedule(options); };
  return command;
}

CommandShape decide_command(PolicyDecideOptions& options) {
  CommandShape command =
      command_named("decide", "One failed attempt on standard input, one decision on standard output");
  add_policy_source(command, options.policy, "a policy in YAML or JSON");
  add_format(command, options.json);
  add_number(command, "--seed", options.seed, {0, UINT64_MAX}, "fixes the draw of the delay");
  set_footer(command,
             "  echo '{\"attempt\": 2, \"failure\": {\"http_status\": 503}}' | reprise policy decide retry.yaml");
  command.run = [&options] { return policy_decide(options); };
  return command;
}

CommandShape classify_command(ClassifyOptions& options) {
  CommandShape command = command_named("classify", "Which class a failure has, and by which rule");
  add_option(command, "--rules", options.rules_file, "FILE",
             "rules of your own, tried first: classify: [{when: \"exit:3\", class: deterministic}]");
  add_format(command, options.json);
  set_footer(command, "  echo '{\"http_status\": 503, \"retry_after\": \"120\"}' | reprise classify");
  command.run = [&options] { return classify_failure(options); };
  return command;
}

}  // namespace

void add_policy_commands(CommandShape& root, PolicyAppOptions& options) {
  CommandShape policy = command_named("policy", "Check, explain, convert and try out retry policies");
  set_footer(policy,
             "Dialects: native, azolla, rh_agents, wave, argyll, prodigy.\n\n"
             "  echo patient | reprise policy schedule -\n"
             "  reprise policy show retry.yaml");
  policy.commands.push_back(check_command(options.check));
  policy.commands.push_back(show_command(options.show));
  policy.commands.push_back(schedule_command(options.schedule));
  policy.commands.push_back(decide_command(options.decide));
  root.commands.push_back(std::move(policy));
  root.commands.push_back(classify_command(options.classify));
}

}  // namespace reprise::cli
