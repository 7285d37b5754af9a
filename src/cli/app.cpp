#include "cli/app.hpp"

#include <charconv>
#include <cstdio>
#include <functional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look_app.hpp"
#include "cli/run_app.hpp"
#include "flow/reader.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

const Choices<Dialect> dialects = [] {
  Choices<Dialect> names;
  for (const Dialect dialect : all_dialects) names.emplace_back(name_of(dialect), dialect);
  return names;
}();

const Choices<bool> text_or_json{{"text", false}, {"json", true}};

// Everything the commands need, alive as long as the parser refers to it.
struct Options {
  PolicyCheckOptions check;
  PolicyShowOptions show;
  PolicyScheduleOptions schedule;
  PolicyDecideOptions decide;
  ClassifyOptions classify;
  std::string schema = "policy";
  std::string shell;
  LookOptions look;
  RunAppOptions run;
  std::function<int()> chosen;  // what the command line asked for
};

// A choice among words, each with its value; help and errors list the words. `Target` takes a Value.
template <class Value, class Target>
void add_choice(CLI::App& command, const std::string& name, Target& target, const Choices<Value>& choices,
                const std::string& help) {
  std::string words;
  for (const auto& [word, value] : choices) words += (words.empty() ? "" : "|") + word;
  const auto choose = [&target, choices, name](const std::string& given) {
    std::vector<std::string_view> candidates;
    for (const auto& [word, value] : choices) {
      candidates.push_back(word);
      if (word != given) continue;
      target = value;
      return;
    }
    const std::string_view close = text::nearest(given, candidates);
    throw CLI::ValidationError(name, fmt::format("expected {}, found {}{}", text::join_words(candidates), given,
                                                 close.empty() ? "" : fmt::format("; did you mean {}?", close)));
  };
  command.add_option_function<std::string>(name, choose, help)->option_text(words);
}

struct NumberRange {
  std::uint64_t min;
  std::uint64_t max;
};

// A whole number. `Target` takes a std::uint64_t.
template <class Target>
void add_number(CLI::App& command, const std::string& name, Target& target, NumberRange range,
                const std::string& help) {
  const auto read = [&target, range, name](const std::string& given) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    const bool whole = error == std::errc{} && stop == given.data() + given.size();
    if (!whole || number < range.min || number > range.max) {
      throw CLI::ValidationError(
          name, fmt::format("expected a whole number from {} to {}, found {}", range.min, range.max, given));
    }
    target = number;
  };
  command.add_option_function<std::string>(name, read, help)->option_text("N");
}

void add_policy_source(CLI::App& command, PolicySource& source,
                       const char* file_help = "a policy in YAML or JSON; - reads standard input") {
  add_choice(command, "--from", source.from, dialects, "the dialect of FILE (default: native)");
  command.add_option("FILE", source.file, file_help)->required()->option_text(" ");
}

void add_check(CLI::App& policy, Options& options) {
  CLI::App* command = policy.add_subcommand("check", "Is it valid, and would a reviewer say something about it?");
  add_policy_source(*command, options.check.policy);
  add_choice(*command, "--format", options.check.json, text_or_json, "how mistakes are shown (default: text)");
  command->footer(
      "Exit code 0: valid (warnings do not change that). 3: invalid.\n\n"
      "  reprise policy check retry.yaml\n"
      "  echo '{\"stop\": {\"max_attempts\": 5}}' | reprise policy check --from azolla -");
  command->callback([&options] { options.chosen = [&options] { return policy_check(options.check); }; });
}

void add_show(CLI::App& policy, Options& options) {
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
  command->callback([&options] { options.chosen = [&options] { return policy_show(options.show); }; });
}

void add_schedule(CLI::App& policy, Options& options) {
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
  command->callback([&options] { options.chosen = [&options] { return policy_schedule(options.schedule); }; });
}

void add_decide(CLI::App& policy, Options& options) {
  CLI::App* command =
      policy.add_subcommand("decide", "One failed attempt on standard input, one decision on standard output");
  add_policy_source(*command, options.decide.policy, "a policy in YAML or JSON");
  add_choice(*command, "--format", options.decide.json, text_or_json, "default: text");
  add_number(*command, "--seed", options.decide.seed, {0, UINT64_MAX}, "fixes the draw of the delay");
  command->footer("  echo '{\"attempt\": 2, \"failure\": {\"http_status\": 503}}' | reprise policy decide retry.yaml");
  command->callback([&options] { options.chosen = [&options] { return policy_decide(options.decide); }; });
}

void add_classify(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("classify", "Which class a failure has, and by which rule");
  command
      ->add_option("--rules", options.classify.rules_file,
                   "rules of your own, tried first: classify: [{when: \"exit:3\", class: deterministic}]")
      ->option_text("FILE");
  add_choice(*command, "--format", options.classify.json, text_or_json, "default: text");
  command->footer("  echo '{\"http_status\": 503, \"retry_after\": \"120\"}' | reprise classify");
  command->callback([&options] { options.chosen = [&options] { return classify_failure(options.classify); }; });
}

void add_schema(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("schema", "JSON Schema for editors");
  command->add_option("WHAT", options.schema, "flow or policy (default)")
      ->check(CLI::IsMember({"flow", "policy"}).description(""))
      ->option_text(" ");
  command->footer("  reprise schema flow > flow.schema.json");
  command->callback([&options] {
    options.chosen = [&options] {
      print(options.schema == "flow" ? flow::flow_schema() : policy_schema());
      return exit_done;
    };
  });
}

CommandShape shape_of(const CLI::App& app) {
  CommandShape shape{app.get_name(), app.get_description(), {}, {}, false, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) {
      CommandShape::Option seen{{}, option->get_description(), {}, option->get_items_expected_max() > 0};
      for (const std::string& name : option->get_lnames()) seen.names.push_back("--" + name);
      for (const std::string& name : option->get_snames()) seen.names.push_back("-" + name);
      const std::string words = option->get_option_text();
      for (std::size_t begin = 0; words.find('|') != std::string::npos && begin <= words.size();) {
        const std::size_t end = std::min(words.find('|', begin), words.size());
        seen.choices.push_back(words.substr(begin, end - begin));
        begin = end + 1;
      }
      shape.options.push_back(std::move(seen));
    } else if (option->get_name(true) == "FILE") {
      shape.takes_file = true;
    } else if (option->get_name(true) == "WHAT") {
      shape.positional_choices = {"flow", "policy"};
    } else if (option->get_name(true) == "SHELL") {
      shape.positional_choices = {"bash", "zsh", "fish"};
    }
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    shape.commands.push_back(shape_of(*command));
  return shape;
}

void add_completion(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("completion", "A completion script for your shell");
  command->add_option("SHELL", options.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->option_text(" ");
  command->footer(
      "  reprise completion bash > ~/.local/share/bash-completion/completions/reprise\n"
      "  reprise completion zsh > ~/.zfunc/_reprise\n"
      "  reprise completion fish > ~/.config/fish/completions/reprise.fish");
  command->callback([&options, &app] {
    options.chosen = [&options, &app] {
      print(completion_script(shape_of(app), options.shell));
      return exit_done;
    };
  });
}

// The deepest command that was named, for messages and help.
const CLI::App* named_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? &app : named_command(*chosen.front());
}

std::string path_of(const CLI::App* command) {
  return command->get_parent() == nullptr ? command->get_name()
                                          : path_of(command->get_parent()) + " " + command->get_name();
}

int explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = named_command(app);
  std::string message = error.what();
  if (const auto extras = app.remaining(true); !extras.empty()) {
    std::vector<std::string> words;
    for (const CLI::App* known : command->get_subcommands([](const CLI::App*) { return true; }))
      words.push_back(known->get_name());
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    const std::vector<std::string_view> candidates(words.begin(), words.end());
    const std::string_view close = text::nearest(extras.front(), candidates);
    message =
        fmt::format("unknown word {}{}", extras.front(), close.empty() ? "" : fmt::format("; did you mean {}?", close));
  }
  print_error(fmt::format("{}: {}\nTry {} --help.\n", path_of(command), message, path_of(command)));
  return command->get_name() == "exec" ? exit_exec_usage : exit_usage;
}

// An answer that could not be written is no answer.
int finished(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written ? code : usage_error("cannot write to standard output");
}

}  // namespace

int run(std::span<const char* const> arguments) {
  Options options;
  CLI::App app{"Runs work that fails until it is done, and can say why.", "reprise"};
  app.set_version_flag("--version", "reprise " REPRISE_VERSION);
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "this text");
  app.get_formatter()->column_width(34);
  app.footer(
      "Dialects: native, azolla, rh_agents, wave, argyll, prodigy.\n"
      "Exit codes: 0 done, 1 failed for good, 2 bad usage, 3 invalid document, 4 no such run, 5 trouble with the "
      "store,\n"
      "124 a deadline passed, 130 interrupted.\n\n"
      "  reprise run flow.yaml\n"
      "  reprise why @last");
  CLI::App* policy = app.add_subcommand("policy", "Check, explain, convert and try out retry policies");
  policy->require_subcommand(1);
  add_check(*policy, options);
  add_show(*policy, options);
  add_schedule(*policy, options);
  add_decide(*policy, options);
  add_classify(app, options);
  add_look_commands(app, options.look, options.chosen);
  add_run_commands(app, options.run, options.look, options.chosen);
  add_schema(app, options);
  add_completion(app, options);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return finished(options.chosen());
  } catch (const CLI::Success& wanted) {  // --help and --version
    return finished(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    return explain_usage_error(app, error);
  } catch (const std::exception& error) {
    return usage_error(fmt::format("failed unexpectedly: {}", error.what()));
  }
}

}  // namespace reprise::cli
