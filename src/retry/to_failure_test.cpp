// From C++ errors and exceptions to failures.
#include <reprise/retry.hpp>

#include <gtest/gtest.h>

#include <new>
#include <optional>

namespace shop {

enum class Error { out_of_stock, database_busy };

reprise::Failure to_failure(const Error& error) {
  if (error == Error::out_of_stock) return {.type = "OutOfStock", .permanent = true};
  return {.type = "DatabaseBusy", .kind = reprise::FailureKind::throttled};
}

}  // namespace shop

namespace reprise {
namespace {

template <class E>
Failure failure_of(E error) {
  return retry(policy::none, [&]() -> std::expected<int, E> { return std::unexpected{error}; }).error().last;
}

template <class T>
Failure failure_of_thrown(T thrown) {
  return retry(policy::none, [&] { throw thrown; }).error().last;
}

TEST(ToFailure, error_codes) {
  const auto type = [](std::errc code) { return failure_of(std::make_error_code(code)).type; };
  EXPECT_EQ(type(std::errc::timed_out), "TimeoutError");
  EXPECT_EQ(type(std::errc::connection_refused), "ConnectionRefusedError");
  EXPECT_EQ(type(std::errc::connection_reset), "ConnectionResetError");
  EXPECT_EQ(type(std::errc::connection_aborted), "ConnectionAbortedError");
  EXPECT_EQ(type(std::errc::broken_pipe), "BrokenPipeError");
  EXPECT_EQ(type(std::errc::permission_denied), "PermissionError");
  EXPECT_EQ(type(std::errc::operation_not_permitted), "PermissionError");
  EXPECT_EQ(type(std::errc::no_such_file_or_directory), "FileNotFoundError");
  EXPECT_EQ(type(std::errc::no_space_on_device), "OSError");
  EXPECT_EQ(failure_of(std::errc::timed_out).type, "TimeoutError");
  EXPECT_EQ(failure_of(std::make_error_code(std::errc::timed_out)).message,
            std::make_error_code(std::errc::timed_out).message());
}

TEST(ToFailure, text_failures_and_types_of_ones_own) {
  EXPECT_EQ(failure_of(std::string{"busy"}), Failure{.message = "busy"});
  EXPECT_EQ(failure_of("busy"), Failure{.message = "busy"});
  EXPECT_EQ(failure_of(std::string_view{"busy"}), Failure{.message = "busy"});
  EXPECT_EQ(failure_of(Failure{.http_status = 503}), Failure{.http_status = 503});
  EXPECT_EQ(failure_of(shop::Error::database_busy).kind, FailureKind::throttled);
  EXPECT_EQ(failure_of(shop::Error::out_of_stock).permanent, true);
  EXPECT_EQ(failure_of(std::make_exception_ptr(std::out_of_range{"end"})).type, "IndexError");
}

TEST(ToFailure, exceptions) {
  EXPECT_EQ(failure_of_thrown(std::system_error{std::make_error_code(std::errc::connection_reset)}).type,
            "ConnectionResetError");
  EXPECT_EQ(failure_of_thrown(std::system_error{std::make_error_code(std::errc::io_error), "disk"}).type, "OSError");
  EXPECT_EQ(failure_of_thrown(std::invalid_argument{"x"}).type, "ValueError");
  EXPECT_EQ(failure_of_thrown(std::domain_error{"x"}).type, "ValueError");
  EXPECT_EQ(failure_of_thrown(std::length_error{"x"}).type, "ValueError");
  EXPECT_EQ(failure_of_thrown(std::out_of_range{"x"}).type, "IndexError");
  EXPECT_EQ(failure_of_thrown(std::bad_alloc{}).type, "MemoryError");
  EXPECT_EQ(failure_of_thrown(std::bad_optional_access{}).type, "RuntimeError");
  EXPECT_EQ(failure_of_thrown(std::runtime_error{"why"}), (Failure{.type = "RuntimeError", .message = "why"}));
  EXPECT_EQ(failure_of_thrown("text"), (Failure{.type = "Exception", .message = "text"}));
  EXPECT_EQ(failure_of_thrown(static_cast<const char*>(nullptr)).type, "Exception");
  EXPECT_EQ(failure_of_thrown(std::string{"text"}).message, "text");
  EXPECT_EQ(failure_of_thrown(shop::Error::out_of_stock).message, "threw shop::Error");
  EXPECT_EQ(to_failure(std::exception_ptr{}).type, "RuntimeError");
}

TEST(ToFailure, failures_that_are_thrown_are_taken_as_they_are) {
  const Failure failure{.type = "Quota", .message = "full", .retry_after = std::chrono::seconds{3}};
  EXPECT_EQ(failure_of_thrown(failure), failure);
  EXPECT_EQ(failure_of_thrown(FailureError{failure}), failure);
  EXPECT_STREQ(FailureError{failure}.what(), "full");
  EXPECT_STREQ(FailureError{{.type = "Quota"}}.what(), "Quota");
  EXPECT_EQ(failure_of_thrown(RetryFailed{{.reason = StopReason::attempts, .attempts = 1, .last = failure}}), failure);
  static_assert(std::is_nothrow_copy_constructible_v<FailureError> &&
                std::is_nothrow_copy_constructible_v<RetryFailed>);
}

}  // namespace
}  // namespace reprise
