// Retries multiply. A request passes through layers that each call the next one with three attempts; the service below is down.
// How many calls does it get for 100 requests, without and with a retry budget in each layer?
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <deque>
#include <iomanip>
#include <iostream>

namespace {

struct Tower {
  reprise::SimEnv env;
  std::deque<reprise::RetryBudget> budgets;  // one for each layer, or none at all
  int calls = 0;

  std::expected<int, reprise::Failure> call(int layers) {
    if (layers == 0) {
      ++calls;
      return std::unexpected{reprise::Failure{.http_status = 503}};
    }
    const std::size_t layer = static_cast<std::size_t>(layers) - 1;
    reprise::RetryBudget* const budget = budgets.empty() ? nullptr : &budgets[layer];
    const auto answer =
        reprise::retry(reprise::policy::standard, [&] { return call(layers - 1); }, {.budget = budget, .env = &env});
    if (!answer) return std::unexpected{answer.error().last};
    return *answer;
  }
};

int calls_for_100_requests(int layers, bool with_budgets) {
  Tower tower;
  if (with_budgets) tower.budgets.resize(static_cast<std::size_t>(layers));
  for (int request = 0; request < 100; ++request) (void)tower.call(layers);
  return tower.calls;
}

}  // namespace

int main() {
  std::cout << "layers   calls   with budgets\n";
  for (int layers = 1; layers <= 4; ++layers) {
    std::cout << std::setw(6) << layers << std::setw(8) << calls_for_100_requests(layers, false) << std::setw(15)
              << calls_for_100_requests(layers, true) << '\n';
  }
}
