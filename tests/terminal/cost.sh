#!/usr/bin/env bash
# What the live view costs: tests/terminal/cost.sh [FOLDER_OF_REPRISE [FOLDER_OF_TOOLS]], by default those of the release build.
#
# The same flow (2,000 commands of 20 ms, four at a time, every tenth fails at first) runs in a terminal without and with the live view, by turns. Printed is the
# time that the processor spent in reprise itself, not in its commands, and the difference as a share of one core. This is a measurement, not a test.
set -eu
root=$(realpath "$(dirname "$0")/../..")
reprise=$(realpath "${1:-$root/build/release}")/reprise
tools=$(realpath "${2:-$root/build/release/tests/terminal}")
rounds=3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/flow.yaml" <<'END'
name: cost
steps:
  - id: work
    for_each: {command: "seq 1 2000"}
    max_parallel: 4
    run: |
      sleep 0.02
      case $REPRISE_ITEM.$REPRISE_ATTEMPT in *7.1) exit 75 ;; esac
    retry: {policy: standard, initial: 500ms}
END

run() {  # how progress is told
  rm -rf "$work/.reprise"
  "$tools/record_session" --cpu --size 100x30 --folder "$work" --set HOME="$work" --out "$work/$1.cast" -- "$reprise" run flow.yaml --progress "$1"
}

for round in $(seq $rounds); do
  for progress in quiet tty; do echo "$progress $(run $progress)"; done
done | tee "$work/figures"
awk '{elapsed[$1] += $3; cpu[$1] += $5; n[$1]++}
  END {
    for (kind in n) printf "%s: %.2f s of the processor in %.1f s, on average\n", kind, cpu[kind] / n[kind], elapsed[kind] / n[kind]
    printf "the live view takes %.2f %% of a core\n", 100 * (cpu["tty"] - cpu["quiet"]) / elapsed["tty"]
  }' "$work/figures"
echo "$(grep -o 'u001b\[?2026h' "$work/tty.cast" | wc -l) pictures in the last run"
