#!/bin/sh
# fuzz/run.sh BUILD_DIR SECONDS_PER_TARGET [FUZZER...]: runs the fuzzers one after another and fails on the first finding of each.
#
# What they learn stays in BUILD_DIR/fuzz/corpus; inputs that broke something are kept in BUILD_DIR/fuzz/findings.
set -u

if [ $# -lt 2 ]; then
  echo "usage: fuzz/run.sh BUILD_DIR SECONDS_PER_TARGET [FUZZER...]" >&2
  exit 2
fi
if [ ! -d "$1/fuzz" ]; then
  echo "fuzz/run.sh: there are no fuzzers in $1 (cmake --preset asan -B $1, then build it)" >&2
  exit 2
fi
directory=$(cd "$1/fuzz" && pwd)
seconds=$2
shift 2
if [ $# -eq 0 ]; then
  set -- fuzz_classify fuzz_dialect fuzz_document fuzz_duration fuzz_rules
  for fuzzer in fuzz_event fuzz_expression fuzz_flow fuzz_json_schema fuzz_jsonpath; do  # only where these parts are built
    if [ -x "$directory/$fuzzer" ]; then set -- "$@" "$fuzzer"; fi
  done
fi

# Names instead of addresses in the report. Clang does not always find the tool by itself.
if [ -z "${ASAN_SYMBOLIZER_PATH:-}" ]; then
  for tool in llvm-symbolizer-19 llvm-symbolizer; do
    ASAN_SYMBOLIZER_PATH=$(command -v $tool) && export ASAN_SYMBOLIZER_PATH && break
  done
fi

failed=0
for fuzzer in "$@"; do
  program=$directory/$fuzzer
  if [ ! -x "$program" ] || [ ! -f "$directory/seeds/words.dict" ]; then
    echo "fuzz/run.sh: $program or its seeds are not built" >&2
    exit 2
  fi
  mkdir -p "$directory/corpus/$fuzzer" "$directory/findings" "$directory/seeds/$fuzzer"  # not every fuzzer has seeds
  echo "$fuzzer: $seconds s"
  log=$directory/$fuzzer.log
  "$program" -max_len=4096 -rss_limit_mb=1024 -timeout=5 -max_total_time="$seconds" -print_final_stats=1 \
    -dict="$directory/seeds/words.dict" -artifact_prefix="$directory/findings/$fuzzer-" \
    "$directory/corpus/$fuzzer" "$directory/seeds/$fuzzer" >"$log" 2>&1
  status=$?
  if [ $status -eq 0 ]; then
    sed -n 's/^stat::number_of_executed_units: */  inputs tried: /p' "$log"
    continue
  fi
  failed=1
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "  FINDING (exit $status), the end of $log:"
  grep -v '^#[0-9]*	' "$log" | tail -n 40 | sed 's/^/  | /'
  echo "  reproduce: $program ${input:-(no input was written, see $log)}"
  echo "  make it smaller: $program -minimize_crash=1 -runs=20000 ${input:-INPUT}"
done
exit $failed
