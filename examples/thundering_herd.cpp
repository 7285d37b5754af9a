// A thousand clients find a service down at the same moment, and come back. How long until all of them were served, and what does
// the service see until then? The waits are those of decide(); time is simulated, and a seed is a client, so every run is the same.
//
//   thundering_herd          the table of docs/explanation/jitter.md
//   thundering_herd --svg    its picture, docs/images/thundering-herd.svg
#include <reprise/retry.hpp>

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr int clients = 1000;
constexpr int served_per_tick = 10;  // the service answers this many calls in a tick and refuses the rest
constexpr milliseconds tick =
    100ms;  // so a thousand clients could be done after 10 s, if they came one after the other

struct Story {
  std::vector<int> calls_in_tick;
  std::vector<std::size_t> served_in_tick;  // of each client that was served, in order
  int calls = 0;
};

reprise::Policy policy_with(reprise::Jitter jitter) {
  return {.max_attempts = std::nullopt, .initial = 1s, .max = 10s, .jitter = jitter};
}

Story live(const reprise::Policy& policy) {
  Story story;
  std::vector<reprise::RetryLoop> loops;
  for (int client = 0; client < clients; ++client) {
    loops.emplace_back(policy, reprise::RetryLoop::TimePoint{}, static_cast<std::uint64_t>(client));
  }
  std::vector<std::vector<int>> arrivals(1);  // by tick: who calls
  for (int client = 0; client < clients; ++client) arrivals[0].push_back(client);

  for (std::size_t now = 0; now < arrivals.size(); ++now) {
    const std::vector<int> callers = std::move(arrivals[now]);
    story.calls_in_tick.push_back(static_cast<int>(callers.size()));
    story.calls += static_cast<int>(callers.size());
    for (std::size_t place = 0; place < callers.size(); ++place) {
      if (place < served_per_tick) {
        story.served_in_tick.push_back(now);
        continue;
      }
      const reprise::RetryLoop::TimePoint time{static_cast<int>(now) * tick};
      const reprise::Decision next = loops[static_cast<std::size_t>(callers[place])].failed({.http_status = 503}, time);
      const std::size_t due =
          now + std::max<std::size_t>(1, static_cast<std::size_t>((next.delay + tick - 1ns) / tick));
      if (arrivals.size() <= due) arrivals.resize(due + 1);
      arrivals[due].push_back(callers[place]);
    }
  }
  return story;
}

double seconds(std::size_t ticks) { return static_cast<double>(ticks) * 0.1; }

void print_row(std::string_view name, const Story& story) {
  const std::size_t half = story.served_in_tick[clients / 2 - 1];
  const int busiest = *std::max_element(story.calls_in_tick.begin() + 1, story.calls_in_tick.end());
  std::cout << std::left << std::setw(8) << name << std::right << std::setw(8) << story.calls << std::setw(15)
            << busiest << std::setw(14) << seconds(half) << " s" << std::setw(13)
            << seconds(story.served_in_tick.back()) << " s\n";
}

void draw_row(std::string_view name, const Story& story, int top) {
  constexpr int height = 90;
  constexpr std::size_t shown = 300;  // ticks: half a minute
  const int bottom = top + height;
  std::cout << "<text x=\"10\" y=\"" << top + 14 << "\">jitter: " << name << "</text>\n";
  std::cout << "<line x1=\"110\" y1=\"" << bottom << "\" x2=\"710\" y2=\"" << bottom << "\" stroke=\"#888\"/>\n";
  std::cout << "<path fill=\"none\" stroke=\"#2563eb\" stroke-width=\"2\" d=\"";
  for (std::size_t now = 0; now < std::min(shown, story.calls_in_tick.size()); ++now) {
    const int calls = story.calls_in_tick[now];
    if (calls > 0) std::cout << 'M' << 111 + 2 * now << ' ' << bottom << 'v' << -std::max(1, calls * height / clients);
  }
  std::cout << "\"/>\n";
}

}  // namespace

int main(int argc, char** argv) {
  struct Kind {
    std::string_view name;
    reprise::Jitter jitter;
  };
  constexpr std::array kinds{Kind{"none", reprise::Jitter::none}, Kind{"equal", reprise::Jitter::equal},
                             Kind{"full", reprise::Jitter::full}};
  std::cout << std::fixed << std::setprecision(1);
  if (argc > 1 && std::string_view{argv[1]} == "--svg") {
    std::cout
        << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 740 400" font-family="sans-serif" font-size="13">)"
        << "\n<rect width=\"740\" height=\"400\" fill=\"#fff\"/>\n";
    int top = 10;
    for (const auto& [name, jitter] : kinds) {
      draw_row(name, live(policy_with(jitter)), top);
      top += 120;
    }
    for (int second = 0; second <= 30; second += 5) {
      std::cout << "<text x=\"" << 110 + second * 20 << "\" y=\"365\" text-anchor=\"middle\">" << second
                << " s</text>\n";
    }
    std::cout << "<text x=\"410\" y=\"388\" text-anchor=\"middle\">calls in each tenth of a second; a full bar is "
                 "1,000</text>\n</svg>\n";
    return 0;
  }
  std::cout << "jitter     calls   most at once   half done by   all done by\n";
  for (const auto& [name, jitter] : kinds) print_row(name, live(policy_with(jitter)));
}
