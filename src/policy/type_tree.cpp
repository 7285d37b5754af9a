// Which error type is a special case of which other one.
#include <reprise/policy.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace reprise {
namespace {

constexpr std::string_view root = "Exception";

// Child and parent, sorted by child for binary search. Types of other languages hang where Python has their like.
constexpr std::array<std::pair<std::string_view, std::string_view>, 64> builtin_types{{
    {"AccessDeniedException", "PermissionError"},
    {"ArithmeticError", root},
    {"ArrayIndexOutOfBoundsException", "IndexOutOfBoundsException"},
    {"AssertionError", root},
    {"AttributeError", root},
    {"BrokenPipeError", "ConnectionError"},
    {"ClassCastException", "TypeError"},
    {"ClassNotFoundException", "ImportError"},
    {"ConnectException", "ConnectionError"},
    {"ConnectTimeout", "TimeoutError"},
    {"ConnectionAbortedError", "ConnectionError"},
    {"ConnectionError", "OSError"},
    {"ConnectionRefusedError", "ConnectionError"},
    {"ConnectionResetError", "ConnectionError"},
    {"FileNotFoundError", "OSError"},
    {"FileNotFoundException", "FileNotFoundError"},
    {"HttpTimeoutException", "TimeoutError"},
    {"IllegalArgumentException", "ValueError"},
    {"ImportError", root},
    {"IndentationError", "SyntaxError"},
    {"IndexError", "LookupError"},
    {"IndexOutOfBoundsException", "LookupError"},
    {"JSONDecodeError", "ValueError"},
    {"KeyError", "LookupError"},
    {"LookupError", root},
    {"ModuleNotFoundError", "ImportError"},
    {"NameError", root},
    {"NetworkError", root},
    {"NoClassDefFoundError", "ImportError"},
    {"NoSuchElementException", "LookupError"},
    {"NoSuchFileException", "FileNotFoundError"},
    {"NotImplementedError", "RuntimeError"},
    {"NullPointerException", "TypeError"},
    {"NumberFormatException", "IllegalArgumentException"},
    {"OSError", root},
    {"OverflowError", "ArithmeticError"},
    {"ParseFloatError", "ValueError"},
    {"ParseIntError", "ValueError"},
    {"PermissionError", "OSError"},
    {"RangeError", "ValueError"},
    {"ReadTimeout", "TimeoutError"},
    {"RecursionError", "RuntimeError"},
    {"ReferenceError", "NameError"},
    {"RuntimeError", root},
    {"SocketException", "ConnectionError"},
    {"SocketTimeoutException", "TimeoutError"},
    {"StringIndexOutOfBoundsException", "IndexOutOfBoundsException"},
    {"SyntaxError", root},
    {"TabError", "IndentationError"},
    {"TimeoutError", "OSError"},
    {"TimeoutException", "TimeoutError"},
    {"TimeoutExpired", "TimeoutError"},
    {"TypeError", root},
    {"UnboundLocalError", "NameError"},
    {"UnicodeDecodeError", "UnicodeError"},
    {"UnicodeEncodeError", "UnicodeError"},
    {"UnicodeError", "ValueError"},
    {"UnknownHostException", "NetworkError"},
    {"UnsupportedOperationException", "NotImplementedError"},
    {"Utf8Error", "UnicodeError"},
    {"ValidationError", "ValueError"},
    {"ValueError", root},
    {"ZeroDivisionError", "ArithmeticError"},
    {"gaierror", "NetworkError"},
}};
static_assert(std::ranges::is_sorted(builtin_types, {}, [](const auto& entry) { return entry.first; }));

// "asyncio.exceptions.TimeoutError" counts as "TimeoutError".
std::string_view last_part(std::string_view name) noexcept {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

const TypeTree& TypeTree::builtin() noexcept {
  static const TypeTree tree;
  return tree;
}

void TypeTree::add(std::string type, std::string parent) {
  added_.push_back({std::string{last_part(type)}, std::string{last_part(parent)}});
}

std::vector<std::pair<std::string, std::string>> TypeTree::added() const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Entry& entry : added_) pairs.emplace_back(entry.type, entry.parent);
  return pairs;
}

std::string_view TypeTree::parent_of(std::string_view type) const noexcept {
  type = last_part(type);
  // The latest addition wins, so a user may also hang a built-in type somewhere else.
  const auto added =
      std::find_if(added_.rbegin(), added_.rend(), [&](const Entry& entry) { return entry.type == type; });
  if (added != added_.rend()) return added->parent;
  const auto known = std::ranges::lower_bound(builtin_types, type, {}, [](const auto& entry) { return entry.first; });
  return known != builtin_types.end() && known->first == type ? known->second : root;
}

bool TypeTree::is_a(std::string_view type, std::string_view ancestor) const noexcept {
  type = last_part(type);
  ancestor = last_part(ancestor);
  if (type.empty()) return false;
  // A chain is at most as long as the tree is tall; the bound only matters if a user closes a circle.
  const std::size_t longest = builtin_types.size() + added_.size() + 1;
  for (std::size_t step = 0; step <= longest; ++step) {
    if (type == ancestor) return true;
    if (type == root) return false;
    type = parent_of(type);
  }
  return false;
}

}  // namespace reprise
