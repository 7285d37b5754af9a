// The executors of one engine as one: functions have the numbers the pool gave them, documents have a number of their own.
//
// Thread safety: as Executor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "exec/executor.hpp"

namespace reprise::runtime {

class Executors final : public exec::Executor {
 public:
  static constexpr std::uint32_t documents_number = UINT32_MAX;

  Executors(exec::Executor& functions, exec::Executor* documents) : functions_{functions}, documents_{documents} {}

  void start(std::vector<exec::Job>& jobs) override {
    if (documents_ == nullptr) return functions_.start(jobs);
    std::vector<exec::Job> steps;
    std::erase_if(jobs, [&](exec::Job& job) {
      if (job.handler != documents_number) return false;
      steps.push_back(std::move(job));
      return true;
    });
    if (!jobs.empty()) functions_.start(jobs);
    if (!steps.empty()) documents_->start(steps);
  }
  // Only one of them knows it.
  void cancel(const exec::AttemptId& id) override {
    functions_.cancel(id);
    if (documents_ != nullptr) documents_->cancel(id);
  }
  std::size_t capacity(std::uint32_t handler) override {
    return handler == documents_number ? documents_->capacity(handler) : functions_.capacity(handler);
  }
  void prepare(exec::Preparation&& preparation) override {
    if (documents_ != nullptr) documents_->prepare(std::move(preparation));
  }

 private:
  exec::Executor& functions_;
  exec::Executor* documents_;
};

}  // namespace reprise::runtime
