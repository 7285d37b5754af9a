// Names of failure classes, kinds and signals.
#include <reprise/failure.hpp>

#include <array>
#include <csignal>
#include <utility>

namespace reprise {
namespace {

constexpr std::array<std::string_view, 6> class_names{"transient",        "deterministic", "budget_exhausted",
                                                      "contract_failure", "test_failure",  "canceled"};

constexpr std::array<std::string_view, 9> kind_names{"none",    "timeout",   "throttled", "stalled",      "worker_lost",
                                                     "crashed", "not_found", "auth",      "invalid_input"};

template <class Enum, std::size_t Count>
std::optional<Enum> value_named(const std::array<std::string_view, Count>& names, std::string_view name) noexcept {
  for (std::size_t index = 0; index < Count; ++index) {
    if (names[index] == name) return static_cast<Enum>(index);
  }
  return std::nullopt;
}

// With their prefix; those outside ISO C exist on every system this builds for.
constexpr std::pair<std::string_view, int> signals[] = {
    {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},     {"SIGQUIT", SIGQUIT}, {"SIGILL", SIGILL},   {"SIGTRAP", SIGTRAP},
    {"SIGABRT", SIGABRT}, {"SIGBUS", SIGBUS},     {"SIGFPE", SIGFPE},   {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1},
    {"SIGSEGV", SIGSEGV}, {"SIGUSR2", SIGUSR2},   {"SIGPIPE", SIGPIPE}, {"SIGALRM", SIGALRM}, {"SIGTERM", SIGTERM},
    {"SIGCHLD", SIGCHLD}, {"SIGCONT", SIGCONT},   {"SIGSTOP", SIGSTOP}, {"SIGTSTP", SIGTSTP}, {"SIGTTIN", SIGTTIN},
    {"SIGTTOU", SIGTTOU}, {"SIGURG", SIGURG},     {"SIGXCPU", SIGXCPU}, {"SIGXFSZ", SIGXFSZ}, {"SIGVTALRM", SIGVTALRM},
    {"SIGPROF", SIGPROF}, {"SIGWINCH", SIGWINCH}, {"SIGIO", SIGIO},     {"SIGSYS", SIGSYS},
};

}  // namespace

std::string_view name_of(FailureClass failure_class) noexcept {
  return class_names[static_cast<std::size_t>(failure_class)];
}

std::string_view name_of(FailureKind kind) noexcept { return kind_names[static_cast<std::size_t>(kind)]; }

std::optional<FailureClass> failure_class_named(std::string_view name) noexcept {
  return value_named<FailureClass>(class_names, name);
}

std::optional<FailureKind> failure_kind_named(std::string_view name) noexcept {
  const auto kind = value_named<FailureKind>(kind_names, name);
  return kind == FailureKind::none ? std::nullopt : kind;
}

std::span<const std::string_view> failure_class_names() noexcept { return class_names; }

std::span<const std::string_view> failure_kind_names() noexcept { return std::span{kind_names}.subspan(1); }

FailureClass class_of(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::not_found:
    case FailureKind::auth:
    case FailureKind::invalid_input:
      return FailureClass::deterministic;
    default:
      return FailureClass::transient;
  }
}

std::optional<int> signal_number(std::string_view name) noexcept {
  for (const auto& [full_name, number] : signals) {
    if (full_name == name || full_name.substr(3) == name) return number;
  }
  return std::nullopt;
}

std::string_view signal_name(int number) noexcept {
  for (const auto& [full_name, known] : signals) {
    if (known == number) return full_name;
  }
  return "";
}

}  // namespace reprise
