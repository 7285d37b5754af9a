// Payloads that are in the store, on their way to the handlers that ask for them.
//
// Lists are kept for a while: a million items of one list read it from the store once and not a million times.
// Thread safety: all functions from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include <reprise/error.hpp>

namespace reprise::exec {

using PayloadLoader = std::function<std::expected<std::string, Error>(std::string_view hash)>;

class Payloads {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  explicit Payloads(PayloadLoader load) : load_{std::move(load)} {}

  // They throw EngineError.
  Bytes read(std::string_view hash);
  Bytes read_list(std::string_view hash);

  // Waits for what is being read; from then on the loader is not called any more.
  void close();

 private:
  static constexpr std::size_t lists_max = 4;

  struct List {
    std::string hash = {};
    Bytes bytes = {};
  };

  std::shared_mutex open_;  // held together while reading, alone while closing
  PayloadLoader load_;      // empty = closed
  std::mutex lists_mutex_;  // also while a list is read, so that it is read once
  std::array<List, lists_max> lists_;
  std::size_t oldest_ = 0;
};

}  // namespace reprise::exec
