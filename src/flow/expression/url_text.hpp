// An URL made of literal text and values, in which each value stays in the place that the document gave it.
//
// Behind the authority (the path, the query) a value is percent-encoded, and refused when it would make a path segment . or .. which a
// client or a server resolves to another path. Within the authority it may only be what stands there: a name, a port, a user. At the
// very beginning it may be the beginning of an URL, as in ${params.base}/orders: whoever gives it has been given the choice of the host.
// Errors say which expression it is and never its value, which may be secret. Thread safety: none.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::flow {

class UrlText {
 public:
  void add_literal(std::string_view text) { text_ += text; }
  // `source` is the expression; `following` is the literal text behind it, empty at the end and before another value.
  std::expected<void, std::string> add_value(std::string_view value, const std::string& source,
                                             std::string_view following);
  // What can be seen only when the URL is complete.
  std::expected<void, std::string> check() const;

  const std::string& text() const noexcept { return text_; }

 private:
  struct Span {
    std::size_t begin;
    std::size_t end;
    std::string source;
  };

  std::expected<void, std::string> check_beginning(std::string_view value, const std::string& source,
                                                   std::string_view following) const;
  std::expected<void, std::string> check_in_authority(std::string_view value, const std::string& source,
                                                      std::string_view following) const;
  bool may_begin_path(std::string_view following) const noexcept;
  std::expected<void, std::string> check_place_in_authority(const Span& value) const;
  const Span* value_within(std::size_t begin, std::size_t end) const noexcept;

  std::string text_;
  std::vector<Span> values_;
};

}  // namespace reprise::flow
