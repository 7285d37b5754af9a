// fuzz_seeds DIRECTORY FILE.jsonl…: unpacks the conformance cases into one folder of seeds per fuzzer and a dictionary of their words.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <reprise/dialect.hpp>

#include "evidence_bytes.hpp"
#include "text/document.hpp"
#include "text/duration.hpp"
#include "text/scalar.hpp"

namespace {

using reprise::text::Node;
namespace fs = std::filesystem;

constexpr std::size_t dictionary_word_bytes_max = 32;

[[noreturn]] void give_up(const std::string& message) {
  std::cerr << "fuzz_seeds: " << message << '\n';
  std::exit(EXIT_FAILURE);
}

class Seeds {
 public:
  explicit Seeds(fs::path directory) : directory_{std::move(directory)} {}

  void add(const std::string& fuzzer, const std::string& name, const std::string& bytes) {
    const fs::path folder = directory_ / fuzzer;
    fs::create_directories(folder);
    std::ofstream file{folder / name, std::ios::binary};
    file << bytes;
    if (!file.flush()) give_up("cannot write " + (folder / name).string());
    ++count_;
  }

  // Keys and values of the documents: libFuzzer puts them together in new ways.
  void add_words(const Node& node) {
    const bool fits = node.is_scalar() && node.text.size() >= 2 && node.text.size() <= dictionary_word_bytes_max;
    if (fits) words_.insert(node.text);
    for (const Node* item : node.items) add_words(*item);
    for (const Node::Member& member : node.members) {
      add_words(*member.key);
      add_words(*member.value);
    }
  }

  void add_durations(const Node& node, const std::string& name) {
    const bool duration =
        node.is_scalar() && (reprise::text::parse_duration(node.text, reprise::text::DurationGrammar::go) ||
                             reprise::text::finite_number(node.text));
    if (duration) add("fuzz_duration", name + "-" + std::to_string(count_), node.text);
    for (const Node* item : node.items) add_durations(*item, name);
    for (const Node::Member& member : node.members) add_durations(*member.value, name);
  }

  void write_dictionary() const {
    std::ofstream file{directory_ / "words.dict", std::ios::binary};
    for (const std::string& word : words_) file << '"' << escaped(word) << "\"\n";
    if (!file.flush()) give_up("cannot write the dictionary");
  }

  std::size_t count() const noexcept { return count_; }

 private:
  static std::string escaped(const std::string& word) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
      out += plain ? std::string{c} : std::string{"\\x"} + digits[byte / 16] + digits[byte % 16];
    }
    return out;
  }

  fs::path directory_;
  std::set<std::string> words_;
  std::size_t count_ = 0;
};

std::string text_of(const Node& map, std::string_view key) {
  const Node* value = map.find(key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}

std::optional<int> number_of(const Node& map, std::string_view key) {
  const auto number = reprise::text::whole_number(text_of(map, key));
  return number ? std::optional{static_cast<int>(*number)} : std::nullopt;
}

void add_evidence(Seeds& seeds, const std::string& name, const Node& input) {
  const std::string type = text_of(input, "type");
  const std::string message = text_of(input, "message");
  const std::string spawn_error = text_of(input, "spawn_error");
  const auto flag = [&](std::string_view key) { return text_of(input, key) == "true"; };
  const reprise::Evidence evidence{.type = type,
                                   .message = message,
                                   .exit_code = number_of(input, "exit_code"),
                                   .signal = reprise::signal_number(text_of(input, "signal")),
                                   .http_status = number_of(input, "http_status"),
                                   .spawn_error = spawn_error,
                                   .timed_out = flag("timed_out"),
                                   .stalled = flag("stalled"),
                                   .canceled = flag("canceled"),
                                   .worker_lost = flag("worker_lost"),
                                   .failure_class = reprise::failure_class_named(text_of(input, "class"))};
  seeds.add("fuzz_classify", name, reprise::fuzz::pack(evidence, text_of(input, "retry_after")));
}

void add_case(Seeds& seeds, const Node& test_case) {
  const std::string name = text_of(test_case, "id");
  const std::string document = text_of(test_case, "document");
  if (name.empty()) give_up("a case has no id");
  const auto dialect = reprise::dialect_named(text_of(test_case, "dialect"));
  if (dialect) {
    seeds.add("fuzz_dialect", name, static_cast<char>('0' + static_cast<int>(*dialect)) + document);
    static_assert('0' % std::size(reprise::all_dialects) == 0, "the digit picks the dialect");
  } else if (!document.empty()) {
    seeds.add("fuzz_rules", name, document);
  }
  if (const Node* input = test_case.find("input"); input != nullptr && !dialect) add_evidence(seeds, name, *input);
  if (document.empty()) return;
  seeds.add("fuzz_document", name, document);
  if (const auto tree = reprise::text::read_document(document, name)) {
    seeds.add_words(tree->root());
    seeds.add_durations(tree->root(), name);
  }
}

void add_file(Seeds& seeds, const std::string& path) {
  std::ifstream file{path};
  if (!file) give_up("cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const auto test_case = reprise::text::read_document(line, path);
    if (!test_case) give_up(reprise::render(test_case.error()));
    add_case(seeds, test_case->root());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2) give_up("usage: fuzz_seeds DIRECTORY FILE.jsonl...");
  Seeds seeds{arguments.front()};
  for (std::size_t index = 1; index < arguments.size(); ++index) add_file(seeds, arguments[index]);
  seeds.write_dictionary();
  std::cout << seeds.count() << " seeds in " << arguments.front() << '\n';
  return EXIT_SUCCESS;
}
