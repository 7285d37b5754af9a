// Replaces secrets in a stream that comes in pieces.
//
//   Masker masker{secrets};
//   masker.feed("my pass", text);  masker.feed("word is here", text);  masker.finish(text);   // "my *** is here"
//
// Every byte that belongs to an occurrence of any secret is gone, also where two occurrences overlap and where one secret begins another; each
// stretch of such bytes becomes one ***. What could be the beginning of a secret is held back until more has come; secret_table.hpp says
// what an occurrence is and how long it can be.
// Thread safety: none; one stream, one masker. The secrets are shared and only read.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "exec/secrets/secret_table.hpp"

namespace reprise::exec {

inline constexpr std::string_view stars = "***";

class Masker {
 public:
  Masker() = default;                                           // nothing is secret
  explicit Masker(std::shared_ptr<const SecretTable> secrets);  // may be nullptr

  bool is_idle() const noexcept { return secrets_ == nullptr; }  // feed() would change nothing

  // Appends to `out` what can be told now.
  void feed(std::string_view text, std::string& out);
  void finish(std::string& out);  // the stream has ended: what was held back is no secret any more

 private:
  std::size_t scan(std::string_view text, bool is_last, std::string& out);

  std::shared_ptr<const SecretTable> secrets_;
  std::string held_;
  std::size_t covered_ = 0;  // so many bytes at the front of held_ belong to a secret that has already become ***
};

// A whole text. `secrets` may be nullptr.
std::string masked(const std::shared_ptr<const SecretTable>& secrets, std::string text);

}  // namespace reprise::exec
