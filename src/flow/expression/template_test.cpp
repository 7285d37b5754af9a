// Text with expressions in it, and above all: whatever a value contains, for sh it is data.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <rapidcheck.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "flow/expression/expression.hpp"

namespace reprise::flow {
namespace {

class MapScope final : public Scope {
 public:
  explicit MapScope(Json root) : root_(std::move(root)) {}

  std::expected<const Json*, std::string> find(std::span<const std::string> path, std::size_t& used) const override {
    used = 1;
    if (const Json* value = root_.get_object().if_contains(path[0])) return value;
    return std::unexpected{"there is no \"" + path[0] + "\""};
  }

 private:
  Json root_;
};

MapScope with_value(Json value) {
  boost::json::object root;
  root["v"] = std::move(value);
  return MapScope(std::move(root));
}

const MapScope& sample() {
  static const MapScope scope(
      json::parse_json(R"({"v": "it's $HOME", "n": -5, "l": ["a b", "", 3], "e": [], "m": {"k": [1]}, "z": null,
    "host": "https://h.example/base", "word": "a/b?c d", "lines": "one\ntwo", "end": "one\nEOF\nboo"})")
          .value());
  return scope;
}

std::string rendered(std::string_view text, Quoting quoting = Quoting::none) {
  const auto parsed = parse_template(text);
  if (!parsed) return "mistake at " + std::to_string(parsed.error().offset) + ": " + parsed.error().message;
  const auto out = parsed->render(sample(), quoting);
  return out ? *out : "error: " + out.error();
}

std::string for_shell(std::string_view text) { return rendered(text, Quoting::shell); }

TEST(FlowTemplate, PutsValuesIntoText) {
  EXPECT_EQ(rendered(""), "");
  EXPECT_EQ(rendered("plain $x $(y) {{.Name}} $"), "plain $x $(y) {{.Name}} $");
  EXPECT_EQ(rendered("<${v}>"), "<it's $HOME>");
  EXPECT_EQ(rendered("${n}${ n + 1 }"), "-5-4");
  EXPECT_EQ(rendered("${l} ${m} [${z}]"), R"(["a b","",3] {"k":[1]} [])");
  EXPECT_EQ(rendered("$${v} $$${v}"), "${v} $${v}");
  EXPECT_EQ(rendered("${'}' + \"${\"}"), "}${");
  EXPECT_EQ(rendered("${nope}"), "error: there is no \"nope\"");
}

TEST(FlowTemplate, KnowsWhatItIs) {
  EXPECT_TRUE(parse_template("a $${b}")->is_literal());
  EXPECT_TRUE(parse_template("")->is_literal());
  EXPECT_TRUE(parse_template("${v}")->is_single_expression());
  EXPECT_FALSE(parse_template("${v} ")->is_single_expression());
  EXPECT_FALSE(parse_template("${v}")->is_literal());
  const Template literal{"${v}"};
  EXPECT_TRUE(literal.is_literal());
  EXPECT_EQ(literal.render(sample(), Quoting::shell), "${v}");
  EXPECT_EQ(parse_template("${l}")->evaluate(sample())->get_array().size(), 3U) << "a single expression keeps its type";
  EXPECT_EQ(json::to_text(*parse_template("${n}.")->evaluate(sample())), "\"-5.\"");
  const auto references = parse_template("ab ${v} ${default(n, l)}")->references();
  ASSERT_EQ(references.size(), 3U);
  EXPECT_EQ(references[0].offset, 5U);
  EXPECT_EQ(references[1].offset, 18U);
  EXPECT_TRUE(references[1].has_default);
}

TEST(FlowTemplate, MistakesCountFromTheWholeText) {
  EXPECT_EQ(rendered("abc ${v"), "mistake at 4: this ${ has no closing }");
  EXPECT_EQ(rendered("abc ${'v}"), "mistake at 6: this text has no closing '");
  EXPECT_EQ(rendered("abc ${v &&}"), "mistake at 8: `&&` means nothing in an expression");
  EXPECT_EQ(rendered("abc ${{ v }}"), "mistake at 4: `${{` means nothing here");
  EXPECT_EQ(rendered("${}"), "mistake at 2: there is nothing to compute");
  EXPECT_EQ(rendered("${HOME:-/root}"), "mistake at 6: `:` means nothing in an expression");
  EXPECT_EQ(parse_template("${#v}").error().help, "a ${ that is meant for the shell is written $${");
}

TEST(FlowTemplate, EncodesForUrlsBehindTheAuthority) {
  const auto url = [](std::string_view text) { return rendered(text, Quoting::url); };
  EXPECT_EQ(url("https://api.example.org/${word}?q=${v}"), "https://api.example.org/a%2Fb%3Fc%20d?q=it%27s%20%24HOME");
  EXPECT_EQ(url("${host}/${word}"), "https://h.example/base/a%2Fb%3Fc%20d");
  EXPECT_EQ(url("https://x${n}.org#${word}"), "https://x-5.org#a%2Fb%3Fc%20d");
  EXPECT_EQ(url("host/${word}"), "host/a%2Fb%3Fc%20d");
  EXPECT_EQ(url("https://h?u=http://${word}"), "https://h?u=http://a%2Fb%3Fc%20d");
}

TEST(FlowTemplateShell, QuotesByPlace) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(for_shell("echo ${v}"), R"(echo 'it'\''s $HOME')");
  EXPECT_EQ(for_shell("echo \"<${v}>\""), R"(echo "<it's \$HOME>")");
  EXPECT_EQ(for_shell("echo '<${v}>'"), R"(echo '<it'\''s $HOME>')");
  EXPECT_EQ(for_shell("echo ${l} ${e}"), "echo '[\"a b\",\"\",3]' '[]'");
  EXPECT_EQ(for_shell("echo ${words(l)} ${words(e)} ${z}"), "echo 'a b' '' '3'  ''");
  EXPECT_EQ(for_shell("echo \"${words(l)}\""), "echo \"a b  3\"");
  EXPECT_EQ(for_shell("x=\"${words(l)}\""), "x=\"a b  3\"");
  EXPECT_EQ(for_shell("echo \"$(cat \"${v}\")\""), R"sh(echo "$(cat "it's \$HOME")")sh")
      << "quotes inside a substitution are new ones";
  EXPECT_EQ(for_shell("echo \"$(cat ${v})\" ${z}"), R"sh(echo "$(cat 'it'\''s $HOME')" '')sh");
  EXPECT_EQ(for_shell("echo a\\\\${z}"), "echo a\\\\''");
  EXPECT_EQ(for_shell("echo $((1 - ${n}))"), "echo $((1 - (-5)))");
  EXPECT_EQ(for_shell("# it's ${lines}\necho ${z}"), "# it's one two\necho ''");
  EXPECT_EQ(for_shell("echo a#'b ${z}'"), "echo a#'b '");
  EXPECT_EQ(for_shell("(echo a)#it's\necho ${z}"), "(echo a)#it's\necho ''");
}

TEST(FlowTemplateShell, WritesIntoHereDocuments) {
  EXPECT_EQ(for_shell("cat <<EOF\n<${v}> $(date) it's\nEOF\necho ${z}"),
            "cat <<EOF\n<it's \\$HOME> $(date) it's\nEOF\necho ''");
  EXPECT_EQ(for_shell("cat <<'EOF' >x\n${v}\nEOF\necho ${z}"), "cat <<'EOF' >x\nit's $HOME\nEOF\necho ''");
  EXPECT_EQ(for_shell("cat <<-EOF\n\t${v}\n\tEOF\necho ${z}"), "cat <<-EOF\n\tit's \\$HOME\n\tEOF\necho ''");
  EXPECT_EQ(for_shell("cat <<A <<'B'\n${v}\nA\n${v}\nB\necho ${z}"),
            "cat <<A <<'B'\nit's \\$HOME\nA\nit's $HOME\nB\necho ''");
  EXPECT_EQ(for_shell("x=\"$(cat <<'EOF'\n${v}\nEOF\n)\" ${z}"), "x=\"$(cat <<'EOF'\nit's $HOME\nEOF\n)\" ''");
  EXPECT_EQ(for_shell("cat <<EOF\n${lines}\nEOF\n"), "cat <<EOF\none\ntwo\nEOF\n");
  EXPECT_EQ(for_shell("cat <<EOF\n${end}\nEOF\n"), "error: ${end} stands in a here-document that its value would end");
  EXPECT_TRUE(for_shell("cat <<EOF\nEOF${z}\nx ${v}")
                  .starts_with("error: ${v} stands in a here-document that its value would end"));
}

TEST(FlowTemplateShell, RefusesPlacesWhereNothingIsSafe) {
  const auto refused = [](std::string_view text, std::string_view reason) {
    const std::string got = for_shell(text);
    EXPECT_TRUE(got.starts_with("error: ${v} stands " + std::string{reason})) << got;
  };
  refused("echo `cat ${v}`", "inside backquotes; write $(…) instead of them");
  refused("echo \"`cat ${v}`\"", "inside backquotes");
  refused("echo \\${v}", "behind a backslash; a literal ${ is written $${");
  refused("echo \"\\${v}\"", "behind a backslash");
  refused("echo $${x:-${v}}", "inside ${…} of the shell; put it into a variable on a line before");
  refused("echo $((1 + ${v}))", "inside $((…)), where only one whole number can stand");
  refused("echo $'a' ${v}", "behind $'…'");
  refused("echo \"$(case a in a) echo ${v};; esac)\"", "behind `case` inside a substitution");
  refused("cat <<${v}\n", "in the end word of a here-document");
  refused("((x = 1 << 2)); echo ${v}", "behind ((");
  refused("echo \"$${x:-\"a\"}\" ${v}", "behind quotes in \"${…}\"");
  EXPECT_TRUE(for_shell("x=${words(l)}").starts_with("error: ${words(l)} is a list, and a variable takes one value"));
  const auto nul = parse_template("echo ${v}")->render(with_value(Json(std::string(1, '\0'))), Quoting::shell);
  EXPECT_EQ(nul.error(), "${v} has a NUL character, which no command line can have");
}

TEST(FlowTemplateShell, TextThatIsDeepEndsInARefusal) {
  std::string deep;
  for (int level = 0; level < 200; ++level) deep += "\"$(echo ";
  EXPECT_TRUE(for_shell(deep + "${v}").starts_with("error: ${v} stands deeper than 64 quotes and brackets"));
}

// ---- with a real sh ----------------------------------------------------------------------------------------------------------

class Workshop {
 public:
  Workshop() {
    std::string pattern = (std::filesystem::temp_directory_path() / "reprise-shell-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) folder_ = pattern;
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() { std::filesystem::remove_all(folder_); }

  // Runs the script in a folder of its own, without programs to call; its standard output.
  std::string run(const std::string& script, const char* shell = "/bin/sh") const {
    const std::string file = folder_ + "/output";
    const pid_t child = fork();
    if (child == 0) {
      const bool is_ready = chdir(folder_.c_str()) == 0 && freopen(file.c_str(), "w", stdout) != nullptr &&
                            freopen("/dev/null", "w", stderr) != nullptr && freopen("/dev/null", "r", stdin) != nullptr;
      const std::array<char*, 2> environment{const_cast<char*>("PATH=/nowhere"), nullptr};
      if (is_ready) execle(shell, "sh", "-c", script.c_str(), nullptr, environment.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::ifstream stream{file, std::ios::binary};
    std::ostringstream content;
    content << stream.rdbuf();
    return content.str();
  }

 private:
  std::string folder_;
};

// What a value would have to call to prove that it became code.
const std::string injectable = "boo() { printf 'INJECTED'; }\n";

// Two readings of the same language, where both are there: /bin/sh is seldom bash.
const std::vector<const char*> shells =
    std::filesystem::exists("/bin/bash") ? std::vector{"/bin/sh", "/bin/bash"} : std::vector{"/bin/sh"};

rc::Gen<std::string> hostile_text() {
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
                          "'", "\"", "`", "$", "\\", "\n", ";", "&", "|", "(", ")", "<", ">", "#", "{", "}", " ", "\t",
                          "!", "*", "?", "[", "~", "=", "-", "a", "boo", "$(boo)", "`boo`", "\nboo\n", "';boo;'",
                          "\";boo;\"", ");boo;(", "${HOME}", "\nEOF\n", "\r", "é", "\xff", "%s", "\\n", "case")),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& piece : pieces) text += piece;
                        return text;
                      });
}

// Each place prints the value between marks; the shell's own trimming of line ends in $(…) is kept away by the closing mark.
constexpr std::array<std::string_view, 10> places{
    "printf '%s' \"<\" ${v} \">\"",
    "printf '%s' \"<${v}>\"",
    "printf '%s' '<${v}>'",
    "printf '%s' \\<${v}\\>",
    "x=${v}; printf '%s' \"<$x>\"",
    "printf '%s' \"$(printf '%s' '<' \"${v}\" '>')\"",
    "printf '%s' \"$(printf '<%s>' ${v})\"",
    "(printf '<'; printf '%s' ${v}) # it's ${v}\nprintf '>'",
    "case ${v} in (*) printf '%s' '<'\"${v}\"'>';; esac",
    "f() { printf '<%s>' \"$1\"; }; f ${v}",
};

TEST(FlowTemplateShellProperty, ShGetsExactlyTheValue) {
  const Workshop workshop;
  const bool holds = rc::check("in every place", [&] {
    const auto values = *rc::gen::container<std::vector<std::string>>(4, hostile_text());
    std::string script = injectable;
    std::string expected;
    for (const std::string& value : values) {
      const MapScope scope = with_value(Json(value));
      for (const std::string_view place : places) {
        const auto line = parse_template(place)->render(scope, Quoting::shell);
        RC_ASSERT(line.has_value());
        script += *line + "\n";
        expected += "<" + json::to_plain(Json(value)) + ">";
      }
    }
    for (const char* shell : shells) RC_ASSERT(workshop.run(script, shell) == expected);
  });
  EXPECT_TRUE(holds);
}

TEST(FlowTemplateShellProperty, HereDocumentsGetExactlyTheValueOrRefuseIt) {
  const Workshop workshop;
  const bool holds = rc::check("as lines of text", [&] {
    const std::string value = *hostile_text();
    const MapScope scope = with_value(Json(value));
    const bool is_quoted = *rc::gen::arbitrary<bool>();
    const std::string text = std::string{"while IFS= read -r line; do printf '%s\\n' \"$line\"; done <<"} +
                             (is_quoted ? "'EOF'" : "EOF") + "\n<${v}>\nEOF\nprintf '%s' end";
    const auto script = parse_template(text)->render(scope, Quoting::shell);
    if (value.find("\nEOF\n") != std::string::npos) {
      RC_ASSERT(!script.has_value());
    } else {
      RC_ASSERT(script.has_value());
      for (const char* shell : shells) RC_ASSERT(workshop.run(injectable + *script, shell) == "<" + value + ">\nend");
    }
  });
  EXPECT_TRUE(holds);
}

// Whatever surrounds a value: it is refused, or no part of it becomes a command.
TEST(FlowTemplateShellProperty, NoTextAroundAValueMakesItACommand) {
  const Workshop workshop;
  const auto piece = rc::gen::element<std::string>("'", "\"", "`", "$$", "\\", "\n", ";", "(", ")", "$(", "$((", "))",
                                                   "$${x:-", "}", "#", " ", "<<E\n", "<<'E'\n", "\nE\n", "<<-E", "E",
                                                   "a=", ": ", "case x in ", "esac", "${v}", "${v}");
  const bool holds = rc::check("boo is never called", [&] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(piece);
    std::string text;
    for (const std::string& each : pieces) text += each;
    const auto parsed = parse_template(text + "${v}");
    if (!parsed) return;
    const MapScope scope = with_value(
        Json(*hostile_text() + *rc::gen::element<std::string>("\nboo\n", ";boo;", "$(boo)", "';boo;'", "`boo`")));
    const auto script = parsed->render(scope, Quoting::shell);
    if (!script) return;
    for (const char* shell : shells) {
      const std::string output = workshop.run(injectable + *script, shell);
      if (output.find("INJECTED") != std::string::npos) RC_FAIL(*script);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace reprise::flow
