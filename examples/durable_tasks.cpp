// Orders that are charged once, by a program that may be killed at any moment.
//
//   durable_tasks [STORE]       STORE is orders.db in this folder unless you name another
//
// Start it and kill it in the middle, with Ctrl-C or kill -9; start it again, and it goes on where it was. Once more, and there is
// nothing left to do: every order has a key, and a key that is known already finds its run instead of making a new one.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <reprise/engine.hpp>

namespace {

using namespace std::chrono_literals;

// Stands for a payment service on a bad day: slow, and some orders fail at first. Like a real one it keeps books of its own, and charges
// once for each idempotency key however often it is asked.
class PaymentService {
 public:
  explicit PaymentService(std::string books) : books_{std::move(books)} {
    std::ifstream file{books_};
    std::string key;
    std::string order;
    while (file >> key >> order) receipts_[key] = order;
  }

  std::expected<std::string, reprise::Failure> charge(reprise::Work& work) {
    std::this_thread::sleep_for(150ms);
    const std::string order{work.input()};
    const std::string key{work.idempotency_key()};
    if (work.attempt() == 1 && order.back() % 3 == 0) {
      return std::unexpected{reprise::Failure{.type = "TimeoutError", .message = "the card network did not answer"}};
    }
    const std::lock_guard lock{mutex_};
    if (receipts_.try_emplace(key, order).second)
      std::ofstream{books_, std::ios::app} << key << ' ' << order << std::endl;
    return "receipt for " + order;
  }

 private:
  std::string books_;
  std::map<std::string, std::string> receipts_;
  std::mutex mutex_;
};

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

std::expected<std::string, reprise::Failure> charge_and_tell(PaymentService& payments, reprise::Work& work) {
  const reprise::Failure* const before = work.last_failure();
  const bool was_killed = before != nullptr && before->kind == reprise::FailureKind::worker_lost;
  const std::string order{work.input()};
  say(order + ": attempt " + std::to_string(work.attempt()) +
      (was_killed ? ", the one before died with the program" : ""));
  auto receipt = payments.charge(work);
  say(order + ": " + (receipt ? "charged" : receipt.error().message));
  return receipt;
}

std::size_t open_orders(reprise::Engine& engine) {
  const auto open = engine.find({.status = reprise::RunStatus::running});
  if (!open) throw reprise::EngineError{open.error()};
  return open->runs.size();
}

int run(const std::string& path) {
  PaymentService payments{path + ".payments"};

  reprise::Engine engine{{.store = "sqlite:" + path}};
  say(path + ": " + std::to_string(open_orders(engine)) + " orders are open from before");

  engine.handle("charge", [&](reprise::Work& work) { return charge_and_tell(payments, work); },
                {.retry = reprise::policy::aggressive, .timeout = 5s, .concurrency = 2});

  std::vector<reprise::RunId> runs;
  for (int number = 1; number <= 10; ++number) {
    const std::string order = "order-" + std::to_string(number);
    const auto accepted =
        engine.submit({.handler = "charge", .input = order, .key = order});  // recorded when it returns
    if (!accepted) throw reprise::EngineError{accepted.error()};
    runs.push_back(*accepted);
  }

  for (const reprise::RunId& id : runs) {
    const auto outcome = engine.wait(id);
    if (!outcome) throw reprise::EngineError{outcome.error()};
    const bool charged = outcome->status == reprise::RunStatus::succeeded;
    say((charged ? outcome->output : outcome->failure.message) + ", attempts: " + std::to_string(outcome->attempts));
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "orders.db");
  } catch (const reprise::EngineError& error) {
    std::cerr << "durable_tasks: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
