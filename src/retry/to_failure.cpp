// From C++ errors and exceptions to failures: which type name each of them gets in the tree of docs/reference/failures.md.
#include <reprise/retry.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <new>

namespace reprise {
namespace {

std::string_view type_of(const std::error_code& code) noexcept {
  if (code == std::errc::timed_out) return "TimeoutError";
  if (code == std::errc::connection_refused) return "ConnectionRefusedError";
  if (code == std::errc::connection_reset) return "ConnectionResetError";
  if (code == std::errc::connection_aborted) return "ConnectionAbortedError";
  if (code == std::errc::broken_pipe) return "BrokenPipeError";
  if (code == std::errc::permission_denied || code == std::errc::operation_not_permitted) return "PermissionError";
  if (code == std::errc::no_such_file_or_directory) return "FileNotFoundError";
  return "OSError";
}

Failure failure_named(std::string_view type, std::string_view message) {
  return {.type = std::string{type}, .message = std::string{message}};
}

std::string name_of_thrown_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "something";  // thrown by another language
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name{abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                         &std::free};
  return status == 0 ? name.get() : type->name();
}

}  // namespace

Failure to_failure(const std::error_code& code) { return failure_named(type_of(code), code.message()); }

Failure to_failure(const std::exception_ptr& exception) {
  if (exception == nullptr) return failure_named("RuntimeError", "no exception");
  try {
    std::rethrow_exception(exception);
  } catch (const Failure& failure) {
    return failure;
  } catch (const FailureError& error) {
    return error.failure();
  } catch (const RetryFailed& error) {
    return error.error().last;
  } catch (const std::system_error& error) {
    return failure_named(type_of(error.code()), error.what());
  } catch (const std::out_of_range& error) {
    return failure_named("IndexError", error.what());
  } catch (const std::invalid_argument& error) {
    return failure_named("ValueError", error.what());
  } catch (const std::domain_error& error) {
    return failure_named("ValueError", error.what());
  } catch (const std::length_error& error) {
    return failure_named("ValueError", error.what());
  } catch (const std::bad_alloc& error) {
    return failure_named("MemoryError", error.what());
  } catch (const std::exception& error) {
    return failure_named("RuntimeError", error.what());
  } catch (const std::string& message) {
    return failure_named("Exception", message);
  } catch (const char* message) {
    return failure_named("Exception", message != nullptr ? message : "");
  } catch (...) {
    return failure_named("Exception", "threw " + name_of_thrown_type());
  }
}

namespace detail {

Failure failure_from_text(std::string_view message) { return {.message = std::string{message}}; }

Failure unacceptable_result() { return failure_named("UnacceptableResult", "the check refused the result"); }

}  // namespace detail

FailureError::FailureError(Failure failure)
    : std::runtime_error{failure.message.empty() ? failure.type : failure.message},
      failure_{std::make_shared<const Failure>(std::move(failure))} {}

RetryFailed::RetryFailed(RetryError error)
    : std::runtime_error{error.describe()}, error_{std::make_shared<const RetryError>(std::move(error))} {}

}  // namespace reprise
