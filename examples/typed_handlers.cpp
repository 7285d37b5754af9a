// Handlers with types: structs go in and come out, and are JSON in the store.
#include <cstdio>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

namespace shop {

struct Order {
  std::string id;
  std::int64_t cents = 0;
  std::vector<std::string> articles;
};
REPRISE_FIELDS(Order, id, cents, articles)

struct Receipt {
  std::string order;
  std::int64_t paid = 0;
};
REPRISE_FIELDS(Receipt, order, paid)

}  // namespace shop

int main() {
  constexpr reprise::Call<shop::Receipt(const shop::Order&)> charge{"charge"};

  reprise::Engine engine{{.store = "memory:"}};
  const auto known = engine.handle(charge, [](const shop::Order& order) {
    std::printf("charging %zu articles of %s\n", order.articles.size(), order.id.c_str());
    return shop::Receipt{order.id, order.cents};
  });
  const auto run = engine.submit(charge, {.id = "A-17", .cents = 1999, .articles = {"tea", "cup"}}, {.key = "A-17"});
  if (!known || !run) return 1;

  const auto outcome = engine.wait(*run);
  if (!outcome) return 1;
  std::printf("recorded: %s\n", outcome->output.c_str());
  const auto receipt = reprise::Codec<shop::Receipt>::decode(outcome->output);
  if (receipt) std::printf("paid: %lld\n", static_cast<long long>(receipt->paid));
  return receipt ? 0 : 1;
}
