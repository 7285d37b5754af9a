// JSON text that can be stored although secrets stand in it: each is replaced by a reference, and put back when it is needed.
//
//   const std::string stored = sealed(table, R"(["--token","hunter2"])");     // ["--token","\x1A0.0.0.0\x1A"]
//   unsealed(&table, stored);                                                 // ["--token","hunter2"], with what the secret is by then
//   shown(stored);                                                            // ["--token","***"]
//
// A reference stands between two bytes 0x1A, which JSON text cannot have (it writes \u001a): nothing that comes from outside can look like one.
// A secret that is written in a form of which no reference can be made (percent-encoded, say) becomes *** and stays so.
// Thread safety: none needed, these are functions of their arguments.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "exec/secrets/secret_table.hpp"

namespace reprise::exec {

// `json` has no control characters but blanks, as json::to_text() writes it.
std::string sealed(const SecretTable& secrets, std::string_view json);

// `secrets` is made of the same secrets in the same order, whatever their values are by now; nullptr = none has one. The error is for people.
std::expected<std::string, std::string> unsealed(const SecretTable* secrets, std::string_view sealed);

std::string shown(std::string_view sealed);

}  // namespace reprise::exec
