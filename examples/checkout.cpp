// A durable function: orders are charged, shipped and confirmed; what fails on the way is undone. Kill it at any moment, and start it again.
//
//   checkout [STORE]       STORE is checkout.db in this folder unless you name another
//
// Order A-17 is delivered. Nobody ships order B-4: its money goes back. What the services do stands in STORE.books, once for each key.
#include <reprise/function.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

using namespace std::chrono_literals;

struct Order {
  std::string id;
  std::int64_t cents = 0;
  bool can_be_shipped = true;
};
REPRISE_FIELDS(Order, id, cents, can_be_shipped)

struct Receipt {
  std::string order;
  std::int64_t cents = 0;
};
REPRISE_FIELDS(Receipt, order, cents)

constexpr reprise::Call<Receipt(const Order&)> charge{"charge"};
constexpr reprise::Call<void(const Receipt&)> refund{"refund"};
constexpr reprise::Call<std::string(const Order&)> ship{"ship"};
constexpr reprise::Call<std::string(const Order&)> checkout{"checkout"};

// Plain code: what has been recorded is not done again, whatever happens to the program in between.
std::string check_out(reprise::Context& ctx, const Order& order) {
  const Receipt receipt = ctx.call(charge, order);
  ctx.on_failure(refund, receipt);
  auto parcel = ctx.start(ship, order);
  auto too_long = ctx.timer(1h);
  if (ctx.any(parcel, too_long) == 1) throw std::runtime_error{"nobody shipped it"};
  too_long.cancel();
  const std::string number = parcel.wait();
  ctx.sleep(50ms);
  ctx.run("confirm", [&] { std::cout << order.id + ": the mail is on its way\n" << std::flush; });
  return order.id + ": delivered as " + number;
}

// The services of others: they remember the keys that they have seen, so that the same work is done once.
class Books {
 public:
  explicit Books(std::string path) : path_{std::move(path)} {
    std::ifstream file{path_};
    for (std::string key, what; file >> key && std::getline(file, what);) seen_.insert(key);
  }
  void enter(std::string_view key, const std::string& what) {
    const std::lock_guard lock{mutex_};
    if (!seen_.emplace(key).second) return;
    std::ofstream{path_, std::ios::app} << key << ' ' << what << std::endl;
  }

 private:
  std::string path_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> seen_;
};

int main(int count, char** arguments) {
  const std::string store = count > 1 ? arguments[1] : "checkout.db";
  Books books{store + ".books"};
  reprise::Engine engine{{.store = "sqlite:" + store}};

  auto wait_a_little = [] { std::this_thread::sleep_for(20ms); };
  bool ready = engine.handle(charge, [&](reprise::Work& work, const Order& order) {
    wait_a_little();
    books.enter(work.idempotency_key(), "charged " + order.id);
    return Receipt{order.id, order.cents};
  }).has_value();
  ready &= engine.handle(ship, [&](reprise::Work& work, const Order& order) -> std::expected<std::string, reprise::Failure> {
    wait_a_little();
    if (!order.can_be_shipped)
      return std::unexpected{reprise::Failure{.type = "NoStock", .message = "there is none left", .permanent = true}};
    books.enter(work.idempotency_key(), "shipped " + order.id);
    return "parcel-" + order.id;
  }).has_value();
  ready &= engine.handle(refund, [&](reprise::Work& work, const Receipt& receipt) {
    wait_a_little();
    books.enter(work.idempotency_key(), "refunded " + receipt.order);
  }).has_value();
  ready &= engine.function(checkout, check_out).has_value();
  if (!ready) return 2;

  // The same key finds the same run again, so starting the program twice sells nothing twice.
  for (const Order& order : {Order{"A-17", 1999}, Order{"B-4", 500, false}}) {
    const auto run = engine.submit(checkout, order, {.key = order.id});
    const auto outcome = run ? engine.wait(*run) : std::unexpected{run.error()};
    if (!outcome) {
      std::cerr << "checkout: " << outcome.error().message << '\n';
      return 1;
    }
    const bool succeeded = outcome->status == reprise::RunStatus::succeeded;
    std::cout << (succeeded ? reprise::Codec<std::string>::decode(outcome->output).value_or("")
                            : order.id + ": failed: " + outcome->failure.message)
              << '\n';
  }
  return 0;
}
