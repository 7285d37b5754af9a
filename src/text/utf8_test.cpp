// What may reach a terminal: text, and nothing that a terminal would obey.
#include "text/utf8.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise::text {
namespace {

constexpr std::string_view replaced = "\xEF\xBF\xBD";

TEST(TextUtf8, WhatControlsATerminalIsReplaced) {
  const std::string_view hostile[] = {
      "\x1b",         "\a",           "\b",           "\x7F",         "\r",
      "\xC2\x9B",      // U+009B, the one-byte form of ESC [
      "\x9B",          // the same as a bare byte
      "\xC2\x85",      // U+0085, a line end for some
      "\xE2\x80\xAE",  // U+202E, right-to-left override
      "\xE2\x80\xAA", "\xE2\x80\xAC", "\xE2\x81\xA6", "\xE2\x81\xA9", "\xE2\x80\x8E", "\xE2\x80\x8F", "\xD8\x9C",
      "\xE2\x80\xA8",              // U+2028, line separator
      "\xFF",         "\xC0\x9B",  // no UTF-8; the second an overlong form
  };
  for (const std::string_view text : hostile) {
    const std::string shown = lines_safe_to_show("a" + std::string{text} + "b");
    EXPECT_TRUE(shown.starts_with("a" + std::string{replaced})) << shown;
    EXPECT_TRUE(shown.ends_with(std::string{replaced} + "b")) << shown;
    EXPECT_EQ(safe_to_show(text).find(text), std::string::npos);
  }
}

TEST(TextUtf8, TextStaysAsItIs) {
  const std::string_view text = "line\n\tZürich 日本 🙂 👩‍🚀 שלום\n";
  EXPECT_EQ(lines_safe_to_show(text), text);
}

RC_GTEST_PROP(TextUtf8, NothingThatIsShownControlsATerminal, (const std::string& text)) {
  const std::string shown = lines_safe_to_show(text);
  for (std::string_view rest = shown; !rest.empty();) {
    const Character character = first_character(rest);
    RC_ASSERT(character.bytes > 0);
    const bool is_kept = rest.front() == '\n' || rest.front() == '\t' || character.code_point > 0xFFFF;
    RC_ASSERT(is_kept || !is_control(character.code_point));
    rest.remove_prefix(character.bytes);
  }
  RC_ASSERT(lines_safe_to_show(shown) == shown);
}

}  // namespace
}  // namespace reprise::text
