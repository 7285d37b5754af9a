// What a page about a run has to know, as compact JSON: the run, its steps, its work with attempts and waits, and its events as short arrays
// that refer to a table of texts.
//
//   PageData data{view, {.now = now}};
//   for (const Event& event : events) data.add(event);
//   const std::string json = std::move(data).json();
//
// States, attempts and waits are those of the projection (projection.hpp): the page only draws them. page/model.js says what the arrays mean.
// Texts are safe to show; inside of a page json() must still be made safe for that (html_page.cpp).
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include <reprise/event.hpp>

#include "observe/live/plain_printer.hpp"
#include "observe/report/run_report.hpp"
#include "observe/why/why.hpp"
#include "runtime/run_reader.hpp"

namespace reprise::observe {

struct PageLimits {
  std::uint64_t events_max = 200'000;                // the first ones; later ones only count
  std::size_t text_bytes_max = 32U * 1024U * 1024U;  // of the table; further texts are left out
};

struct PageAbout {
  WallTime now = {};           // when it is made
  bool is_left_alone = false;  // the run is open and nobody works on it
};

class PageData {
 public:
  PageData(const runtime::RunView& view, const PageAbout& about, PageLimits limits = {});

  void add(const Event& event);
  std::string json() &&;

 private:
  void add_row(const Event& event, std::uint32_t step);
  void add_failed(const Event& event, std::uint32_t step);
  std::string decision_of(const RetryDecision& decision, std::uint32_t step) const;
  std::uint64_t text_number(std::string_view text);
  void add_number(std::int64_t number);
  void add_text(std::string_view text);
  std::string works();
  std::string skipped_segment(WallTime time);
  std::string segments_of(const WorkStory& story, std::uint32_t step);
  std::string attempt_segment(const AttemptStory& attempt, std::uint32_t step);
  std::string wait_segment(const AttemptStory& attempt, std::uint32_t step);
  std::string standstills() const;
  std::string since_created(const std::optional<WallTime>& time) const;
  std::string head(const RunReport& report) const;
  std::string steps(const RunReport& report) const;

  const runtime::RunView& view_;
  PageAbout about_;
  PageLimits limits_;
  RunReporter reporter_;
  PlainPrinter printer_;
  std::unordered_map<std::string, std::uint64_t> text_numbers_;
  std::string texts_;  // the elements of both lists, with their commas
  std::string rows_;
  std::size_t text_bytes_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t left_out_ = 0;
  std::int64_t last_us_ = 0;  // of the event before
};

}  // namespace reprise::observe
