// Which store a command works with, and how an error of the engine ends a command. Thread safety: none needed.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <reprise/error.hpp>

#include "store/ledger.hpp"

namespace reprise::cli {

inline constexpr std::string_view default_store = "sqlite:.reprise/reprise.db";

// --store, else REPRISE_STORE, else the default.
std::string store_url(const std::string& option);

// The file of a durable store; empty for memory: and for what no store has as its address (its opening tells why).
std::string store_path(std::string_view url);
// The folder it stands in (of a link: what it leads to), "." for the working directory: logs are kept beside the store.
std::string store_folder(std::string_view url);

// Made for this user alone, if it is missing; one called .reprise tells git to pass it over. What hinders it, the opening of the store tells.
void make_store_folder(const std::string& folder);

// Its shards, each of which has one process that works with it.
std::expected<std::unique_ptr<store::Ledger>, Error> ledger_of(const std::string& url);

// The contract's exit codes: 4 no such run, step or item; 5 trouble with the store; 124 a deadline passed; 2 everything else.
int exit_code_of(ErrorCode code) noexcept;

// "reprise: …" on standard error; gives the exit code.
int show_error(const Error& error);

}  // namespace reprise::cli
