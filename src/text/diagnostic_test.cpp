// How mistakes look: the text people read and the JSON that editors read.
#include <reprise/diagnostic.hpp>

#include <gtest/gtest.h>

#include <reprise/dialect.hpp>

namespace reprise {
namespace {

Diagnostic unknown_key() {
  return {.file = "retry.yaml",
          .line = 12,
          .column = 3,
          .length = 6,
          .message = "unknown key \"facter\"",
          .help = "did you mean factor?",
          .source_line = "  facter: 3",
          .caret = 3};
}

TEST(TextDiagnostic, shows_place_line_caret_and_help) {
  const Diagnostic diagnostics[] = {unknown_key()};
  EXPECT_EQ(render(diagnostics),
            "retry.yaml:12:3: error: unknown key \"facter\"\n"
            "  12 |   facter: 3\n"
            "     |   ^~~~~~\n"
            "  = did you mean factor?\n");
}

TEST(TextDiagnostic, leaves_out_what_is_not_there) {
  Diagnostic diagnostic{.severity = Severity::warning, .file = "-", .message = "no jitter"};
  EXPECT_EQ(render({&diagnostic, 1}), "-:1:1: warning: no jitter\n");
  diagnostic.source_line = "x";
  EXPECT_EQ(render({&diagnostic, 1}), "-:1:1: warning: no jitter\n  1 | x\n    | ^\n");
  EXPECT_EQ(render({}), "");
}

TEST(TextDiagnostic, a_long_underline_is_cut) {
  Diagnostic diagnostic = unknown_key();
  diagnostic.length = 1'000'000;
  const std::string text = render({&diagnostic, 1});
  EXPECT_LT(text.size(), 300U);
}

TEST(TextDiagnostic, a_page_of_mistakes_is_enough) {
  const std::vector<Diagnostic> many(53, unknown_key());
  const std::string text = render(many);
  EXPECT_TRUE(text.ends_with("… and 3 more\n")) << text.substr(text.size() - 200);
  EXPECT_FALSE(render(std::span{many}.first(50)).ends_with("more\n"));
}

TEST(TextDiagnostic, json_has_all_of_them) {
  const std::vector<Diagnostic> two(2, unknown_key());
  const std::string one =
      R"({"severity":"error","file":"retry.yaml","line":12,"column":3,"message":"unknown key \"facter\"","help":"did you mean factor?"})";
  EXPECT_EQ(render_json(two), "[" + one + "," + one + "]");
  EXPECT_EQ(render_json({}), "[]");
}

TEST(TextDiagnostic, a_document_with_many_mistakes_names_them_all_in_order) {
  const auto read =
      read_policy("max_attempts: 0\nfacter: 3\ninitial: 500\nretries: 3\n", Dialect::native, "retry.yaml");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(render(read.error()),
            "retry.yaml:1:15: error: max_attempts: expected a whole number from 1 to 4294967296, found 0\n"
            "  1 | max_attempts: 0\n"
            "    |               ^\n"
            "retry.yaml:2:1: error: unknown key \"facter\"\n"
            "  2 | facter: 3\n"
            "    | ^~~~~~\n"
            "  = did you mean factor? allowed: policy, max_attempts, max_elapsed, attempt_timeout, limits, backoff, initial, "
            "increment, factor, max, jitter, "
            "only_on, never_on and honor_retry_after\n"
            "retry.yaml:3:10: error: initial: \"500\" has no unit\n"
            "  3 | initial: 500\n"
            "    |          ^~~\n"
            "  = write 500ms or 500s; a duration is a number and a unit, such as 500ms, 2s or 1h30m\n"
            "retry.yaml:4:1: error: unknown key \"retries\"\n"
            "  4 | retries: 3\n"
            "    | ^~~~~~~\n"
            "  = write max_attempts: 4 (the first run counts); allowed: policy, max_attempts, max_elapsed, "
            "attempt_timeout, limits, backoff, initial, increment, "
            "factor, max, jitter, only_on, never_on and honor_retry_after\n");
}

TEST(TextDiagnostic, the_caret_stands_under_the_character_meant) {
  const auto read = read_policy("{\"policy\": \"é€\", \"x\": 1}", Dialect::native, "p.json");
  ASSERT_FALSE(read.has_value());
  ASSERT_EQ(read.error().size(), 2U);
  EXPECT_EQ(read.error()[0].column, 12U);
  EXPECT_EQ(read.error()[1].column, 18U) << "columns count characters, not bytes";
  EXPECT_EQ(read.error()[1].caret, 18U);
}

}  // namespace
}  // namespace reprise
