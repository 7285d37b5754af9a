// The rules of the house, held against the source tree: where includes may point, who may read a clock, how a file opens.
#include "checks.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace reprise::house {
namespace {

namespace fs = std::filesystem;

// Who may know a library that somebody else wrote.
const std::vector<Library> libraries{
    {"yaml.h", {"text"}},
    {"re2/", {"text"}},
    {"fmt/", {"policy/dialect", "text", "cli"}},
    {"CLI/", {"cli"}},
    {"sqlite3.h", {"store"}},
    {"openssl/", {"base"}},
    {"boost/json", {"json", "flow", "exec", "runtime", "host", "observe", "cli"}},
    {"boost/asio", {"exec"}},
    {"boost/context", {"exec"}},
    {"sanitizer", {"exec"}},
    {"boost/beast", {"exec"}},
    {"curl/", {"exec"}},
};

const fs::path root{REPRISE_SOURCE_DIR};

std::string content_of(const fs::path& file) {
  std::ifstream stream{file, std::ios::binary};
  std::ostringstream content;
  content << stream.rdbuf();
  EXPECT_TRUE(stream) << "cannot read " << file;
  return content.str();
}

const std::vector<Room> rooms = rooms_in_picture(content_of(root / "docs/architecture.md"));

std::vector<fs::path> files_in(const fs::path& folder, const std::vector<std::string>& extensions) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{folder}) {
    const bool wanted = std::ranges::find(extensions, entry.path().extension().string()) != extensions.end();
    if (entry.is_regular_file() && wanted) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<fs::path> sources_in(const fs::path& folder) { return files_in(folder, {".cpp", ".hpp", ".h", ".cc"}); }

std::string relative_to(const fs::path& folder, const fs::path& file) {
  return file.lexically_relative(folder).generic_string();
}

void expect_none(const fs::path& file, const Findings& findings) {
  for (const Finding& finding : findings) ADD_FAILURE_AT(file.c_str(), static_cast<int>(finding.line)) << finding.what;
}

std::vector<std::string> said(const Findings& findings) {
  std::vector<std::string> sentences;
  for (const Finding& finding : findings) sentences.push_back(finding.what);
  return sentences;
}

bool is_beside_product(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with("_test.cpp") || name.ends_with("_bench.cpp");
}

// A wrong path would make every test below pass.
TEST(Tree, IsThere) {
  EXPECT_GE(sources_in(root / "src").size(), 40U);
  EXPECT_GE(sources_in(root / "include").size(), 8U);
}

// ---- (a) rooms ---------------------------------------------------------------------------------------------------------------

TEST(Rooms, IncludesPointDown) {
  for (const fs::path& file : sources_in(root / "src")) {
    expect_none(file, check_rooms(relative_to(root / "src", file), content_of(file), rooms));
  }
}

TEST(Rooms, ThePictureHasNoWayBackUp) {
  for (const Room& room : rooms) {
    EXPECT_FALSE(room.name.empty());
    for (const std::string& below : room.may_include) {
      EXPECT_FALSE(below.empty()) << room.name << " has an arrow to a node without a folder";
      EXPECT_NE(below, room.name) << "a circle of arrows";
    }
  }
}

TEST(Rooms, ThePictureShowsEachFolderOnce) {
  std::vector<std::string> names;
  for (const Room& room : rooms) names.push_back(room.name);
  for (const fs::directory_entry& entry : fs::directory_iterator{root / "src"}) {
    if (!entry.is_directory()) continue;
    EXPECT_EQ(std::ranges::count(names, entry.path().filename().string()), 1) << entry.path();
  }
  for (const std::string& name : names) EXPECT_TRUE(fs::is_directory(root / "src" / name)) << name;
}

TEST(Rooms, APictureIsReadWithItsLongWays) {
  const std::vector<Room> seen = rooms_in_picture(
      "text\n```mermaid\nflowchart TD\n  a[\"top/ — x\"] --> b\n  b[\"mid/low/ — y\"] --> c\n  c[\"end/ — z\"]\n```\n  "
      "c --> a\n");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].name, "top");
  EXPECT_EQ(seen[0].may_include, (std::vector<std::string>{"mid/low", "end"}));
  EXPECT_EQ(seen[1].may_include, std::vector<std::string>{"end"});
  EXPECT_TRUE(seen[2].may_include.empty());
}

TEST(Rooms, UpwardIncludesAreFound) {
  const Findings findings =
      check_rooms("text/place.cpp", "// a\n#include \"text/place.hpp\"\n#include \"policy/words.hpp\"\n", rooms);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].line, 3U);
  EXPECT_EQ(findings[0].what, "text must not include policy: \"policy/words.hpp\"");
  EXPECT_EQ(check_rooms("policy/delay.cpp", "#include \"policy/dialect/reading.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("policy/delay.cpp", "#include \"text/scalar.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("retry/retry.cpp", "#include \"text/scalar.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("core/run.cpp", "#include \"env/wall_clock.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("store/sqlite/store.cpp", "#include \"exec/process.hpp\"\n", rooms).size(), 1U);
}

TEST(Rooms, UnknownOnesAreFound) {
  EXPECT_EQ(check_rooms("attic/box.cpp", "// a\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("main.cpp", "// a\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("text/place.cpp", "#include \"place.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("cli/app.cpp", "#include \"../text/place.hpp\"\n", rooms).size(), 1U);
  EXPECT_EQ(check_rooms("text/place.cpp", "#include \"support/run_program.hpp\"\n", rooms).size(), 1U) << "not a test";
  EXPECT_EQ(check_rooms("cli/app.cpp", "#include <text/place.hpp>\n", rooms).size(), 1U);
}

TEST(Rooms, AllowedIncludesPass) {
  EXPECT_EQ(said(check_rooms("policy/dialect/wave.cpp", "#include \"text/fields.hpp\"\n#include \"policy/words.hpp\"\n",
                             rooms)),
            std::vector<std::string>{});
  EXPECT_EQ(said(check_rooms("text/a_test.cpp", "#include \"support/document_generators.hpp\"\n", rooms)),
            std::vector<std::string>{});
  EXPECT_EQ(said(check_rooms("text/a.cpp",
                             "// #include \"cli/app.hpp\"\nauto s = R\"(\n#include \"cli/app.hpp\"\n)\";\n", rooms)),
            std::vector<std::string>{});
}

// ---- (b) public headers ------------------------------------------------------------------------------------------------------

// That each header compiles alone is seen when the tests are built: see CMakeLists.txt beside this file.
TEST(PublicHeaders, IncludeTheStandardLibraryOnly) {
  for (const fs::path& file : sources_in(root / "include")) expect_none(file, check_public_includes(content_of(file)));
}

TEST(PublicHeaders, OtherIncludesAreFound) {
  for (const char* bad : {"#include <yaml.h>\n", "#include <fmt/format.h>\n", "#include <boost/json.hpp>\n",
                          "#include \"policy/words.hpp\"\n", "#include \"reprise/policy.hpp\"\n",
                          "  #  include <unistd.h>\n", "#include <sys/types.h>\n"}) {
    EXPECT_EQ(check_public_includes(bad).size(), 1U) << bad;
  }
  EXPECT_EQ(check_public_includes("#include <string>\n#include <reprise/policy.hpp>\n").size(), 0U);
}

// ---- (c) time and chance -----------------------------------------------------------------------------------------------------

TEST(TimeAndChance, OnlyEnvAsksForThem) {
  std::size_t inside_env = 0;
  for (const fs::path& folder : {root / "src", root / "include"}) {
    for (const fs::path& file : sources_in(folder)) {
      if (is_beside_product(file)) continue;
      const Findings findings = check_time_and_chance(content_of(file));
      if (relative_to(root, file).starts_with("src/env/")) {
        inside_env += findings.size();
      } else if (relative_to(root, file) == "include/reprise/function.hpp") {
        EXPECT_EQ(findings.size(), 2U) << "Context::sleep and sleep_until, which ask the log";
      } else {
        expect_none(file, findings);
      }
    }
  }
  EXPECT_GT(inside_env, 0U) << "somebody has to read the clock";
}

TEST(TimeAndChance, EachWayIsFound) {
  for (const char* bad :
       {"auto t = std::chrono::system_clock::now();", "auto t = std::chrono::steady_clock::now();", "Clock::now();",
        "std::this_thread::sleep_for(1s);", "std::this_thread::sleep_until(t);", "std::random_device d;",
        "int r = rand();", "srand(1);", "std::mt19937 g;", "std::mt19937_64 g;", "gettimeofday(&t, nullptr);",
        "clock_gettime(0, &t);", "auto t = time(nullptr);", "auto t = std::time(NULL);", "usleep(3);", "sleep(1);"}) {
    EXPECT_EQ(check_time_and_chance(bad).size(), 1U) << bad;
  }
}

TEST(TimeAndChance, WordsAreNotCalls) {
  for (const char* good : {"// steady_clock::now() is called elsewhere\n", "auto s = \"rand()\";\n",
                           "using T = std::chrono::steady_clock::time_point;\n", "env.now();\n", "operand(1);\n",
                           "runtime(nullptr);\n", "/* sleep(1) */\n"}) {
    EXPECT_EQ(said(check_time_and_chance(good)), std::vector<std::string>{}) << good;
  }
}

// ---- (d) how files read ------------------------------------------------------------------------------------------------------

TEST(Layout, EveryFileReadsWell) {
  for (const char* folder : {"src", "include", "tests", "examples", "bench", "fuzz", "sim"}) {
    for (const fs::path& file : sources_in(root / folder))
      expect_none(file, check_layout(relative_to(root, file), content_of(file)));
  }
}

TEST(Layout, MissingOpeningsAreFound) {
  EXPECT_EQ(said(check_layout("src/text/place.cpp", "#include <string>\n")),
            std::vector<std::string>{"the first line should say what this file is"});
  EXPECT_EQ(check_layout("src/text/place.cpp", "#include \"text/scalar.hpp\"\n").size(), 1U);
  EXPECT_EQ(check_layout("src/cli/place.cpp", "#include \"text/place.hpp\"\n").size(), 1U);
  EXPECT_EQ(check_layout("src/text/place.hpp", "#include \"text/place.hpp\"\n#pragma once\n").size(), 1U);
  EXPECT_EQ(check_layout("src/text/place.cpp", "\n// late\n").size(), 1U);
  EXPECT_EQ(check_layout("src/text/place.cpp", "//\n").size(), 1U);
  EXPECT_EQ(check_layout("src/text/place.hpp", "// A place.\n// No guard.\n").size(), 1U);
}

TEST(Layout, GoodOpeningsPass) {
  EXPECT_EQ(said(check_layout("src/text/place.cpp", "#include \"text/place.hpp\"\n")), std::vector<std::string>{});
  EXPECT_EQ(said(check_layout("src/text/diagnostic.cpp", "#include <reprise/diagnostic.hpp>\n")),
            std::vector<std::string>{});
  EXPECT_EQ(said(check_layout("src/text/place.hpp", "// A place.\n#pragma once\n")), std::vector<std::string>{});
}

TEST(Layout, BlanksAndLongLinesAreFound) {
  EXPECT_EQ(check_layout("a.cpp", "// a\n\tint x;\n").size(), 1U);
  EXPECT_EQ(check_layout("a.cpp", "// a \n").size(), 1U);
  EXPECT_EQ(check_layout("a.cpp", "// a\r\n").size(), 1U);
  EXPECT_EQ(check_layout("a.cpp", "// a\nint x;").size(), 1U);
  EXPECT_EQ(check_layout("a.cpp", "// " + std::string(158, 'x') + "\n").size(), 1U);
  EXPECT_EQ(check_layout("a.cpp", "// " + std::string(157, 'x') + "\n").size(), 0U);
  std::string long_characters = "// ";
  for (int count = 0; count < 157; ++count) long_characters += "é";
  EXPECT_EQ(check_layout("a.cpp", long_characters + "\n").size(), 0U) << "characters count, not bytes";
}

TEST(Layout, LeftoversAreFound) {
  for (const char* bad : {"// TODO: later", "int x;  // FIXME", "/* XXX */"}) {
    EXPECT_EQ(check_layout("a.cpp", std::string{"// a\n"} + bad + "\n").size(), 1U) << bad;
  }
  EXPECT_EQ(check_layout("a.cpp", "// a\nauto s = \"TODO\";\nauto t = \"/tmp/xXXXXXX\";\n").size(), 0U);
}

TEST(Layout, CommentedOutCodeIsFound) {
  for (const char* bad :
       {"// #include <string>", "//#if 0", "//foo(1, 2);", "// policy.max = nullopt;", "// const auto x = read(file);",
        "  // return 1;", "// if (x > 1) return;", "// for (const auto& each : all) {", "// }", "// break;",
        "// std::sort(a.begin(), a.end());", "// } else {", "// items[2] += 3;", "// object->close();"}) {
    EXPECT_EQ(check_layout("a.cpp", std::string{"// a\n"} + bad + "\n").size(), 1U) << bad;
  }
}

TEST(Layout, SentencesAndExamplesPass) {
  for (const char* good :
       {"//   auto body = reprise::retry(policy, call);", "// The core calls decide(); everything else follows.",
        "// A value of 0 means no limit; then nothing is counted;", "// file.cc:12:5, main.go:1234", "// a, b or c",
        "// Exact (see docs), never rounded.", "// 60: a leap second", "auto s = \"// return 1;\";",
        "// namespace reprise", "// if (and only if) the time has come", "// https://example.org/a(b);c"}) {
    EXPECT_EQ(said(check_layout("a.cpp", std::string{"// a\n"} + good + "\n")), std::vector<std::string>{}) << good;
  }
}

TEST(Layout, TextsAreNotCode) {
  const std::string source =
      "auto a = 1'000'000; auto b = '\"'; auto c = \"\\\"// no\"; auto d = R\"x(// \" no)x\"; // yes\n/* also */ int "
      "e;\n";
  EXPECT_EQ(code_of(source).find("no"), std::string::npos);
  EXPECT_NE(code_of(source).find("auto d"), std::string::npos);
  EXPECT_NE(code_of(source).find("int e;"), std::string::npos);
  EXPECT_NE(comments_of(source).find("// yes"), std::string::npos);
  EXPECT_NE(comments_of(source).find("/* also */"), std::string::npos);
  EXPECT_EQ(comments_of(source).find("no"), std::string::npos);
  EXPECT_EQ(code_of(source).size(), source.size());
}

// ---- (e) libraries -----------------------------------------------------------------------------------------------------------

TEST(Libraries, StayBehindTheirFolder) {
  for (const fs::path& file : sources_in(root / "src")) {
    expect_none(file, check_libraries(relative_to(root / "src", file), content_of(file), rooms, libraries));
  }
}

TEST(Libraries, ElsewhereTheyAreFound) {
  const auto found = [](const char* path, const char* header) {
    return check_libraries(path, "#include <" + std::string{header} + ">\n", rooms, libraries).size();
  };
  EXPECT_EQ(found("cli/app.cpp", "yaml.h"), 1U);
  EXPECT_EQ(found("policy/match.cpp", "re2/re2.h"), 1U);
  EXPECT_EQ(found("policy/dialect/rules.cpp", "re2/re2.h"), 1U);
  EXPECT_EQ(found("text/value.cpp", "CLI/CLI.hpp"), 1U);
  EXPECT_EQ(found("policy/delay.cpp", "fmt/format.h"), 1U);
  EXPECT_EQ(found("retry/retry.cpp", "fmt/format.h"), 1U);
  EXPECT_EQ(found("env/system_env.cpp", "fmt/format.h"), 1U);
  EXPECT_EQ(found("text/value.cpp", "boost/json.hpp"), 1U) << "unknown";
  EXPECT_EQ(found("retry/retry.cpp", "gtest/gtest.h"), 1U) << "not a test";
  EXPECT_EQ(found("text/document.cpp", "yaml.h"), 0U);
  EXPECT_EQ(found("policy/dialect/wave.cpp", "fmt/format.h"), 0U);
  EXPECT_EQ(found("retry/retry_test.cpp", "gtest/gtest.h"), 0U);
  EXPECT_EQ(found("cli/io.cpp", "unistd.h"), 0U);
  EXPECT_EQ(found("retry/retry.cpp", "vector"), 0U);
}

// ---- (f) links ---------------------------------------------------------------------------------------------------------------

TEST(Links, LeadSomewhere) {
  std::vector<fs::path> pages = files_in(root / "docs", {".md"});
  for (const char* page : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) {
    if (fs::exists(root / page)) pages.push_back(root / page);
  }
  for (const fs::path& page : pages) {
    const auto exists = [&](const std::string& target) {
      return fs::exists(target.starts_with('/') ? root / target.substr(1) : page.parent_path() / target);
    };
    expect_none(page, check_links(content_of(page), exists));
  }
}

TEST(Links, BrokenOnesAreFound) {
  const auto nothing_exists = [](const std::string&) { return false; };
  EXPECT_EQ(said(check_links("See [this](docs/gone.md#part).\n", nothing_exists)),
            std::vector<std::string>{"a link to docs/gone.md, which is not there"});
  EXPECT_EQ(check_links("![picture](a.png \"title\") and [two](b.md)\n", nothing_exists).size(), 2U);
  EXPECT_EQ(check_links("[![badge](a.svg)](b.md)\n", nothing_exists).size(), 2U);
  EXPECT_EQ(check_links("text\n\n[name]: gone.md\n", nothing_exists).size(), 1U);
  EXPECT_EQ(check_links("[angled](<gone.md>)\n", nothing_exists).size(), 1U);
}

TEST(Links, OtherTargetsPass) {
  const auto nothing_exists = [](const std::string&) { return false; };
  for (const char* good :
       {"[web](https://example.org/a.md)\n", "[mail](mailto:a@example.org)\n", "[here](#part)\n", "`[code](gone.md)`\n",
        "```\n[code](gone.md)\n```\n", "<!-- [note](gone.md) -->\n", "a[0](x y)\n", "- [ ] (a box)\n"}) {
    EXPECT_EQ(said(check_links(good, nothing_exists)), std::vector<std::string>{}) << good;
  }
  EXPECT_EQ(
      check_links("[a](with%20blank.md)\n", [](const std::string& path) { return path == "with blank.md"; }).size(),
      0U);
}

}  // namespace
}  // namespace reprise::house
