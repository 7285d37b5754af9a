// Documents as properties: what is written is read back as the same policy, what is converted without a loss behaves the
// same, and what is damaged gives a policy or a reason, never a crash.
#include <reprise/dialect.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/conformance_cases.hpp"
#include "support/document_generators.hpp"

namespace reprise {
namespace {

using testing_support::any_document;
using testing_support::any_duration;
using testing_support::any_failure;
using testing_support::any_retry;

constexpr TextFormat formats[] = {TextFormat::yaml, TextFormat::json};

Policy read_valid(const std::string& text, Dialect dialect) {
  const auto result = read_policy(text, dialect);
  if (!result) RC_FAIL("a document that should be valid is refused:\n" + text + "\n" + render(result.error()));
  return result->policy;
}

std::string shown(const Policy& policy) {
  return policy_json(policy) + (policy.stops_on_class ? "" : " no classes") + (policy.needs_verdict ? " verdict" : "");
}

void check_round_trip(const Policy& policy, Dialect dialect) {
  for (const TextFormat format : formats) {
    const WrittenPolicy written = write_policy(policy, dialect, format);
    if (!written.losses.empty())
      RC_FAIL(std::string{name_of(dialect)} + " cannot say what it said itself: " + written.losses.front());
    const Policy back = read_valid(written.text, dialect);
    if (back != policy)
      RC_FAIL("changed by writing and reading\n" + shown(policy) + "\n" + shown(back) + "\n" + written.text);
  }
}

RC_GTEST_PROP(DialectConversionProperty, reading_what_was_written_gives_the_same_policy, ()) {
  for (const Dialect dialect : all_dialects) {
    const std::string document = *any_document(dialect);
    RC_LOG() << name_of(dialect) << ":\n" << document << "\n";
    check_round_trip(read_valid(document, dialect), dialect);
  }
}

TEST(DialectConversion, every_valid_conformance_document_is_read_back_as_it_was) {
  std::size_t documents = 0;
  for (const Dialect dialect : all_dialects) {
    for (const auto& test : testing_support::conformance_cases(name_of(dialect))) {
      if (test.kind == "invalid") continue;
      const auto read = read_policy(test.document, dialect);
      ASSERT_TRUE(read.has_value()) << test.id << "\n" << render(read.error());
      ++documents;
      for (const TextFormat format : formats) {
        const WrittenPolicy written = write_policy(read->policy, dialect, format);
        EXPECT_TRUE(written.losses.empty()) << test.id << ": " << written.losses.front();
        const auto back = read_policy(written.text, dialect);
        ASSERT_TRUE(back.has_value()) << test.id << "\n" << written.text << render(back.error());
        EXPECT_EQ(back->policy, read->policy) << test.id << "\n" << written.text;
      }
    }
  }
  EXPECT_GT(documents, 500U);
}

// The same waits and the same answers, whatever fails.
void check_same_behaviour(const Policy& before, const Policy& after) {
  const Schedule plan = schedule(before, 100);
  const Schedule converted = schedule(after, 100);
  if (plan.retries != converted.retries || plan.stop != converted.stop ||
      plan.after_attempt != converted.after_attempt) {
    RC_FAIL("another schedule:\n" + shown(before) + "\n" + shown(after));
  }
  for (int count = 0; count < 12; ++count) {
    const Failure failure = *any_failure();
    const History history{.attempt = *any_retry(),
                          .elapsed = *any_duration(),
                          .waited = *any_duration(),
                          .previous_delay = *any_duration()};
    Random first{7};
    Random second{7};
    const Decision expected = decide(before, history, failure, first);
    const Decision actual = decide(after, history, failure, second);
    RC_ASSERT(actual.retry == expected.retry);
    if (expected.retry) RC_ASSERT(actual.range == expected.range);
    RC_ASSERT(actual.delay == expected.delay || !expected.retry);
  }
}

RC_GTEST_PROP(DialectConversionProperty, a_conversion_without_losses_behaves_the_same, ()) {
  for (const Dialect from : all_dialects) {
    const std::string document = *any_document(from);
    const Policy policy = read_valid(document, from);
    for (const Dialect to : all_dialects) {
      const WrittenPolicy written = write_policy(policy, to, *rc::gen::element(TextFormat::yaml, TextFormat::json));
      if (from == to || !written.losses.empty()) continue;
      RC_LOG() << name_of(from) << ":\n" << document << "\nin " << name_of(to) << ":\n" << written.text << "\n";
      check_same_behaviour(policy, read_valid(written.text, to));
    }
  }
}

// The property above says something only if conversions without losses exist.
TEST(DialectConversion, these_pairs_can_say_the_same) {
  const std::string all_five = "[ValidationError, ValueError, TypeError, KeyError, AttributeError]";
  const std::tuple<Dialect, std::string, Dialect> pairs[] = {
      {Dialect::native, "jitter: none", Dialect::wave},
      {Dialect::wave, "policy: patient", Dialect::native},
      {Dialect::native, "{jitter: 30%, only_on: [/x/]}", Dialect::prodigy},
      {Dialect::prodigy, "backoff: fibonacci", Dialect::native},
      {Dialect::prodigy, "retry_on: [{pattern: x}]", Dialect::native},
      {Dialect::native, "{jitter: 25%, only_on: [OSError], never_on: " + all_five + "}", Dialect::rh_agents},
      {Dialect::rh_agents, "exclude_exceptions: [BrokenPipeError]", Dialect::native},
      {Dialect::azolla, "retry: {include_errors: []}", Dialect::native},
  };
  for (const auto& [from, text, to] : pairs) {
    const auto read = read_policy(text, from);
    ASSERT_TRUE(read.has_value()) << text;
    const WrittenPolicy written = write_policy(read->policy, to);
    EXPECT_TRUE(written.losses.empty()) << name_of(from) << " to " << name_of(to) << ": " << written.losses.front();
    const auto back = read_policy(written.text, to);
    ASSERT_TRUE(back.has_value()) << written.text;
    EXPECT_EQ(schedule(back->policy, 100).retries, schedule(read->policy, 100).retries);
  }
}

// ---- damage ----

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || at + length > text.size()) return false;
    for (std::size_t next = 1; next < length; ++next) {
      if ((static_cast<unsigned char>(text[at + next]) & 0xC0U) != 0x80U) return false;
    }
    at += length;
  }
  return true;
}

bool is_safe_to_show(std::string_view text) {
  return is_utf8(text) &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

void check_diagnostics(const std::vector<Diagnostic>& diagnostics, const std::string& text) {
  const auto lines = static_cast<std::uint32_t>(std::ranges::count(text, '\n') + std::ranges::count(text, '\r')) + 1;
  for (const Diagnostic& diagnostic : diagnostics) {
    RC_ASSERT(diagnostic.line >= 1U);
    RC_ASSERT(diagnostic.line <= lines + 1);
    RC_ASSERT(diagnostic.column >= 1U);
    RC_ASSERT(diagnostic.column <= text.size() + 1);
    RC_ASSERT(diagnostic.length >= 1U);
    RC_ASSERT(diagnostic.caret >= 1U);
    RC_ASSERT(!diagnostic.message.empty());
    RC_ASSERT(is_safe_to_show(diagnostic.message));
    RC_ASSERT(is_safe_to_show(diagnostic.help));
    RC_ASSERT(is_safe_to_show(diagnostic.source_line));
    RC_ASSERT(diagnostic.message.size() < 2000U);
  }
  RC_ASSERT(is_utf8(render(diagnostics)));
  RC_ASSERT(is_utf8(render_json(diagnostics)));
}

std::string damaged(std::string text) {
  const auto edits = *rc::gen::inRange(1, 5);
  for (int edit = 0; edit < edits; ++edit) {
    const std::size_t at = text.empty() ? 0 : *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, text.size()));
    const auto byte =
        *rc::gen::oneOf(rc::gen::map(rc::gen::inRange(0, 256), [](int value) { return static_cast<char>(value); }),
                        rc::gen::element('{', '}', '[', ']', ':', '"', '\'', '-', '\n', ' ', ',', '\\', '&', '*', '!',
                                         '0', '9', '.', '%', '/'));
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        text.insert(at, 1, byte);
        break;
      case 1:
        if (!text.empty()) text.erase(at, 1);
        break;
      case 2:
        if (!text.empty()) text[at] = byte;
        break;
      case 3:
        text.insert(at, text.substr(at, *rc::gen::inRange<std::size_t>(0, 30)));  // a piece twice
        break;
      default:
        text.erase(at, *rc::gen::inRange<std::size_t>(0, 10));
        break;
    }
  }
  return text;
}

void check_damaged(const std::string& text, Dialect dialect) {
  const auto result = read_policy(text, dialect, "damaged");
  if (!result) {
    RC_ASSERT(!result.error().empty());
    RC_ASSERT(std::ranges::any_of(result.error(), [](const Diagnostic& d) { return d.severity == Severity::error; }));
    check_diagnostics(result.error(), text);
    return;
  }
  check_diagnostics(result->warnings, text);
  schedule(result->policy, 20);
  for (const Dialect to : all_dialects) write_policy(result->policy, to);
  RC_ASSERT(!explain(result->policy).empty());
  check_round_trip(result->policy, dialect);
}

rc::Gen<std::string> any_damaged_document(Dialect dialect) {
  return rc::gen::exec([dialect] { return damaged(*any_document(dialect)); });
}

RC_GTEST_PROP(DialectDamageProperty, a_damaged_document_gives_a_policy_or_a_reason, ()) {
  for (const Dialect dialect : all_dialects) {
    for (int count = 0; count < 4; ++count) {
      const std::string text = *any_damaged_document(dialect);
      RC_LOG() << name_of(dialect) << ":\n" << text << "\n";
      check_damaged(text, dialect);
    }
  }
}

// Each valid document of the conformance files, with every single byte changed into a few others.
TEST(DialectDamage, every_byte_of_a_real_document_may_break) {
  for (const Dialect dialect : all_dialects) {
    std::size_t tried = 0;
    for (const auto& test : testing_support::conformance_cases(name_of(dialect))) {
      if (test.kind == "invalid" || test.document.size() > 200 || ++tried > 8) continue;
      for (std::size_t at = 0; at < test.document.size(); ++at) {
        for (const char byte : {'\0', '"', '{', ':', '\xff', '9', '\n'}) {
          std::string text = test.document;
          text[at] = byte;
          const auto result = read_policy(text, dialect);
          if (result) continue;
          ASSERT_FALSE(result.error().empty()) << text;
          for (const Diagnostic& diagnostic : result.error()) {
            ASSERT_TRUE(diagnostic.line >= 1 && diagnostic.column >= 1 && !diagnostic.message.empty()) << text;
            ASSERT_TRUE(is_safe_to_show(diagnostic.message) && is_safe_to_show(diagnostic.help)) << text << "\n"
                                                                                                 << diagnostic.message;
          }
        }
      }
    }
    EXPECT_GT(tried, 0U) << name_of(dialect);
  }
}

}  // namespace
TEST(DialectConversion, what_is_never_retried_anyway_is_no_loss) {
  const auto read = read_policy("jitter: 25%\nonly_on: [TimeoutError, ConnectionError]\n", Dialect::native);
  EXPECT_TRUE(write_policy(read->policy, Dialect::rh_agents).losses.empty());
}

TEST(DialectConversion, an_empty_list_that_turns_the_meaning_around_is_said) {
  const auto read = read_policy("jitter: none\nonly_on: [TimeoutError]\n", Dialect::native);
  const WrittenPolicy written = write_policy(read->policy, Dialect::prodigy);
  EXPECT_TRUE(std::ranges::any_of(written.losses, [](const std::string& loss) {
    return loss.find("every error is retried") != std::string::npos;
  }));
}

TEST(DialectConversion, no_attempts_do_not_become_unlimited_ones) {
  const WrittenPolicy written = write_policy(Policy{.max_attempts = 0}, Dialect::argyll);
  EXPECT_NE(written.text.find("max_retries: 0"), std::string::npos) << written.text;
}

TEST(DialectConversion, losses_are_safe_to_show) {
  const auto read = read_policy("{\"only_on\": [\"/\\u001b]0;x/\"]}", Dialect::native);
  ASSERT_TRUE(read.has_value());
  for (const std::string& loss : write_policy(read->policy, Dialect::azolla).losses)
    EXPECT_EQ(loss.find('\x1b'), std::string::npos);
  EXPECT_EQ(explain(read->policy).find('\x1b'), std::string::npos);
}

}  // namespace reprise
