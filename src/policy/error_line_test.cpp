// The last error line of five languages, and what curl says.
#include "policy/error_line.hpp"

#include <gtest/gtest.h>

#include <reprise/classify.hpp>

namespace reprise {
namespace {

std::string type_in(std::string_view written) {
  const auto line = last_error_line(written);
  return line ? line->type : "";
}
std::string text_in(std::string_view written) {
  const auto line = last_error_line(written);
  return line ? line->text : "";
}

TEST(PolicyErrorLine, python) {
  constexpr std::string_view traceback =
      "Traceback (most recent call last):\n  File \"/app/a.py\", line 3, in <module>\n    json.loads('')\n"
      "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n";
  EXPECT_EQ(type_in(traceback), "json.decoder.JSONDecodeError");
  EXPECT_EQ(text_in(traceback), "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)");
  EXPECT_EQ(
      type_in("Traceback (most recent call last):\n  File \"a\", line 1\nModuleNotFoundError: No module named 'x'"),
      "ModuleNotFoundError");
  EXPECT_EQ(type_in("  File \"a.py\", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n"), "SyntaxError");
  EXPECT_EQ(type_in("Traceback (most recent call last):\n  …\nrequests.exceptions.ReadTimeout: HTTPConnectionPool\n"),
            "requests.exceptions.ReadTimeout");
  EXPECT_EQ(type_in("Traceback (most recent call last):\n  …\nKeyboardInterrupt\n"), "KeyboardInterrupt");
}

TEST(PolicyErrorLine, node) {
  EXPECT_EQ(type_in("/app/x.js:3\n    throw new TypeError('bad')\n    ^\n\nTypeError: bad\n    at Object.<anonymous> "
                    "(/app/x.js:3:9)\n\nNode.js v20.1.0\n"),
            "TypeError");
  EXPECT_EQ(
      type_in("Error: connect ECONNREFUSED 127.0.0.1:1\n    at TCPConnectWrap.afterConnect (node:net:1595:16) {\n  "
              "errno: -111,\n  code: 'ECONNREFUSED'\n}\n\nNode.js v20.1.0\n"),
      "ConnectionRefusedError");
  EXPECT_EQ(type_in("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at a (b:1:2)\n"),
            "ModuleNotFoundError");
}

TEST(PolicyErrorLine, java) {
  EXPECT_EQ(
      type_in("Exception in thread \"main\" java.lang.RuntimeException: cannot load\n\tat Main.main(Main.java:5)\n"
              "Caused by: java.net.ConnectException: Connection refused\n\tat java.base/x(y)\n\t... 3 more\n"),
      "java.net.ConnectException");
  EXPECT_EQ(
      text_in("Exception in thread \"main\" java.lang.IllegalArgumentException: bad\n\tat Main.main(Main.java:5)\n"),
      "java.lang.IllegalArgumentException: bad");
}

TEST(PolicyErrorLine, go_and_rust) {
  EXPECT_EQ(
      type_in("panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n"
              "\t/tmp/main.go:5 +0x1d\nexit status 2\n"),
      "RuntimeError");
  EXPECT_EQ(type_in("panic: no config\n\ngoroutine 1 [running]:\nmain.load(0x1, 0x2)\n\t/a/main.go:5 +0x1d\n"),
            "PanicError");
  EXPECT_EQ(
      text_in("thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds\nnote: run with `RUST_BACKTRACE=1`\n"),
      "panicked: index out of bounds");
  EXPECT_EQ(text_in("thread 'main' panicked at 'no config', src/main.rs:2:5\nnote: run with `RUST_BACKTRACE=1`\n"),
            "panicked: no config");
  EXPECT_EQ(type_in("Error: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }\n"),
            "FileNotFoundError");
  EXPECT_EQ(type_in("Error: ParseIntError { kind: InvalidDigit }\n"), "Error");
}

TEST(PolicyErrorLine, what_was_logged_earlier_does_not_count) {
  EXPECT_EQ(type_in("ValueError: row 3 is left out\nfatal: the disk is full\n"), "");
  EXPECT_EQ(type_in("all is well\n"), "");
  EXPECT_EQ(type_in(""), "");
  EXPECT_EQ(type_in("http://host/Error: no\n"), "");
}

TEST(PolicyErrorLine, types_of_all_languages_have_classes) {
  const auto kind_of = [](std::string_view type) {
    const Classification found = classify({.type = type, .exit_code = 1});
    return std::string{name_of(found.failure_class)} + "/" + std::string{name_of(found.kind)};
  };
  EXPECT_EQ(kind_of("json.decoder.JSONDecodeError"), "deterministic/invalid_input");
  EXPECT_EQ(kind_of("ModuleNotFoundError"), "deterministic/not_found");
  EXPECT_EQ(kind_of("SyntaxError"), "deterministic/none");
  EXPECT_EQ(kind_of("ReferenceError"), "deterministic/none");
  EXPECT_EQ(kind_of("requests.exceptions.ReadTimeout"), "transient/timeout");
  EXPECT_EQ(kind_of("java.net.ConnectException"), "transient/none");
  EXPECT_EQ(kind_of("java.lang.NullPointerException"), "deterministic/invalid_input");
  EXPECT_EQ(kind_of("java.nio.file.NoSuchFileException"), "deterministic/not_found");
  EXPECT_EQ(name_of(classify({.type = "SyntaxError", .exit_code = 1, .by_first_rules = true}).failure_class),
            "transient");
}

TEST(PolicyClassify, curl_means_what_it_says) {
  const auto classified = [](int code, std::string_view message) {
    const Classification found = classify({.message = message, .exit_code = code});
    return std::string{name_of(found.failure_class)} + "/" + std::string{name_of(found.kind)};
  };
  EXPECT_EQ(classified(22, "curl: (22) The requested URL returned error: 404"), "deterministic/not_found");
  EXPECT_EQ(classified(22, "curl: (22) The requested URL returned error: 503"), "transient/throttled");
  EXPECT_EQ(classified(22, "curl: (22) The requested URL returned error: 401 Unauthorized"), "deterministic/auth");
  EXPECT_EQ(classified(28, "curl: (28) Operation timed out"), "transient/timeout");
  for (const int code : {6, 7, 35, 52, 56})
    EXPECT_EQ(classified(code, "curl: (" + std::to_string(code) + ") access denied"), "transient/none") << code;
  EXPECT_EQ(classified(7, "another program: access denied"), "deterministic/auth") << "without curl's own line";
}

TEST(PolicyClassify, words_that_came_later_are_unknown_to_the_first_rules) {
  const std::pair<const char*, FailureClass> words[] = {
      {"JSON schema mismatch", FailureClass::contract_failure},
      {"output validation failed", FailureClass::contract_failure},
      {"output validation failures", FailureClass::contract_failure},
      {"Test suite failures", FailureClass::test_failure},
      {"the test suite failed", FailureClass::test_failure},
      {"missing binary", FailureClass::deterministic},
  };
  for (const auto& [message, expected] : words) {
    EXPECT_EQ(classify({.message = message}).failure_class, expected) << message;
    EXPECT_EQ(classify({.message = message, .by_first_rules = true}).failure_class, FailureClass::transient) << message;
  }
  EXPECT_EQ(classify({.message = "502 Bad Gateway"}).rule, "bad gateway");
  EXPECT_EQ(classify({.message = "500 Internal Server Error"}).rule, "internal server error");
}

}  // namespace
}  // namespace reprise
