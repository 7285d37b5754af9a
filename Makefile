# A thin layer over CMake: each target installs what is missing, builds and runs.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 20
SUITE ?= engine
SEEDS ?= 10000
FIRST_SEED ?= 1
KILLS ?= 300
QUICKSTART = sqlite:build/quickstart/reprise.db

.PHONY: build install package package-test run test browser bench sim torture asan tsan fuzz clang format clean

build:
	scripts/setup.sh build
	cmake --preset release -DREPRISE_TESTS=OFF -DREPRISE_BENCH=OFF
	cmake --build --preset release

install: build
	cmake --install build/release --prefix $(PREFIX)

# What can be carried to another machine: a tarball, a Debian package and their sums, in build/dist.
package: build
	scripts/setup.sh package
	scripts/package.sh build/release build/dist

# Installs it in a Debian 12 that has nothing else, made for this, and uses it there. Needs root; takes some minutes.
package-test: package
	scripts/setup.sh package-test
	tests/package/bare_debian.sh build/dist build/release/examples/flaky_server

# The command alone, and a flow in which everything goes wrong once.
run:
	scripts/setup.sh build
	cmake --preset release -DREPRISE_TESTS=OFF -DREPRISE_BENCH=OFF
	cmake --build --preset release --target reprise_cli
	@echo
	build/release/reprise run examples/quickstart.yaml --store $(QUICKSTART)
	@echo
	@echo "Why was weather[10] tried three times?"
	@echo "  build/release/reprise why @last 'weather[10]' --store $(QUICKSTART)"
	@echo "All of it on a page for your browser:"
	@echo "  build/release/reprise show @last --html quickstart.html --store $(QUICKSTART)"

test:
	scripts/setup.sh build test
	cmake --preset release -DREPRISE_TESTS=ON -DREPRISE_BENCH=ON
	cmake --build --preset release
	ctest --preset release -j4  # most of them wait for something

# Pages of real runs in a real browser; pictures of them go to build/browser.
browser:
	scripts/setup.sh build browser
	cmake --preset release -DREPRISE_TESTS=OFF -DREPRISE_BENCH=OFF
	cmake --build --preset release --target reprise_cli
	tests/browser/run.sh build/release/reprise build/browser

bench:
	scripts/setup.sh build test
	cmake --preset release -DREPRISE_TESTS=ON -DREPRISE_BENCH=ON
	cmake --build --preset release --target reprise-bench
	build/release/reprise-bench --suite $(SUITE)

# Deterministic simulation: SEEDS histories from FIRST_SEED on, each with crashes.
sim:
	scripts/setup.sh build test
	cmake --preset release -DREPRISE_TESTS=ON -DREPRISE_BENCH=ON
	cmake --build --preset release --target reprise-sim
	build/release/reprise-sim --seeds $(SEEDS) --first $(FIRST_SEED)

# A real program on a real disk, killed with SIGKILL again and again.
torture:
	scripts/setup.sh build test
	cmake --preset release -DREPRISE_TESTS=ON -DREPRISE_BENCH=ON
	cmake --build --preset release --target torture_test torture_worker flow_runs_tests
	build/release/tests/torture/torture_test --kills $(KILLS)
	tests/flow_runs/kill_map.sh build/release/tests/flow_runs_tests 40 2000

asan:
	scripts/setup.sh build test clang
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan -j4

# Only what has threads: the rest is one function of its arguments.
tsan:
	scripts/setup.sh build test clang
	cmake --preset tsan
	cmake --build --preset tsan --target unit_tests engine_tests flow_tests
	ctest --preset tsan -R 'unit\.rest|engine\.(exec|rest)|flow\.(exec|rest)'

# With the libraries that the tests of `make asan` use.
fuzz:
	scripts/setup.sh build test clang
	cmake --preset asan
	cmake --build --preset asan --target fuzzers
	fuzz/run.sh build/asan $(FUZZ_SECONDS)

clang:
	scripts/setup.sh build test clang
	cmake --preset clang
	cmake --build --preset clang

format:
	scripts/setup.sh format
	git ls-files '*.hpp' '*.cpp' | xargs clang-format -i

clean:
	rm -rf build
