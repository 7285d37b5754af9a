// Where a store is: the one reading of what --store, REPRISE_STORE and EngineSettings::store say.
//
//   memory:                        kind memory
//   sqlite:PATH  or a PATH alone   kind sqlite, path
//
// A path may hold a colon: what stands before the first one names a kind only if it looks like a name (letters, digits, + and -; two or more),
// so my.db:1 and ./a:b are paths. A kind that is not built in is refused by its name.
//
// Thread safety: a function of its argument.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace reprise::base {

enum class StoreKind { memory, sqlite };

struct StoreAddress {
  StoreKind kind = StoreKind::memory;
  std::string path = {};  // of sqlite, as it was written; empty for all others

  friend bool operator==(const StoreAddress&, const StoreAddress&) = default;
};

// Or what is wrong with it and what to write instead, as a sentence.
std::expected<StoreAddress, std::string> parse_store_address(std::string_view address);

}  // namespace reprise::base
