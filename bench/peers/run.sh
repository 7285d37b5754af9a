#!/usr/bin/env bash
# Durable steps per second beside other engines, on this machine and today: bench/peers/run.sh HARNESSES [REPRISE_BENCH]
#
# HARNESSES is a folder with bullmq.mjs, restate.mjs, engines.sh and package.json (README.md beside this file says what they must do). It is
# copied to a scratch folder first; nothing is written there or here. Needs node with npm, redis-server and curl.
#   WORK      scratch folder, kept and used again when you name one
#   REPS      how often each peer is measured; the median counts (3)
set -euo pipefail

if [ $# -lt 1 ] || [ ! -f "$1/engines.sh" ] || [ ! -f "$1/package.json" ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
harnesses=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
bench=${2:-$root/build/release/reprise-bench}
reps=${REPS:-3}
command -v npm >/dev/null || { echo "run.sh: npm is not installed" >&2; exit 1; }
command -v redis-server >/dev/null || { echo "run.sh: redis-server is not installed (apt-get install redis-server)" >&2; exit 1; }
[ -x "$bench" ] || { echo "run.sh: $bench is not there: make bench builds it" >&2; exit 1; }

if [ -n "${WORK:-}" ]; then
  mkdir -p "$WORK"
  work=$(cd "$WORK" && pwd)
else
  work=$(mktemp -d)
fi
cleanup() {
  if [ -n "${started:-}" ]; then
    redis_stop always || true
    restate_stop || true
  fi
  if [ -z "${WORK:-}" ]; then rm -rf "$work"; fi
}
trap cleanup EXIT

mkdir -p "$work/peers" "$work/data"
(cd "$harnesses" && tar cf - --exclude=./node_modules .) | (cd "$work/peers" && tar xf - && chmod -R u+w .)
[ -d "$work/peers/node_modules" ] || (cd "$work/peers" && npm install --no-audit --no-fund --loglevel=error >&2)
export PEERS=$work/peers DATA=$work/data RESULTS=$work/results.jsonl
set +u
# shellcheck source=/dev/null
. "$work/peers/engines.sh"
started=yes
: >"$RESULTS"

load() { cut -d' ' -f1-3 /proc/loadavg; }
echo "load before: $(load)" >&2
for _ in $(seq "$reps"); do
  redis_fresh always && (cd "$work/peers" && node bullmq.mjs w1 --mode=always --n=20000 --c=1024 >&2) || echo "run.sh: BullMQ failed" >&2
  redis_stop always
  restate_fresh && (cd "$work/peers" && node restate.mjs w1 --n=4000 --c=1024 >&2) || echo "run.sh: Restate failed" >&2
  restate_stop
done
(cd "$work" && "$bench" --suite engine --json) >"$work/ours.jsonl"
echo "load after: $(load)" >&2

# One table: what we do, what they do, and how many times more that is.
awk '
function text(name, line) { return match(line, "\"" name "\":\"[^\"]*\"") ? substr(line, RSTART + length(name) + 4, RLENGTH - length(name) - 5) : "" }
function number(name, line) { return match(line, "\"" name "\":-?[0-9.]+") ? substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : 0 }
FILENAME == ARGV[1] { if (text("bench", $0) == "w1_steps_per_s") ours = number("value", $0); next }
{
  peer = text("peer", $0)
  if (!(peer in count)) order[++peers] = peer
  value[peer, ++count[peer]] = number("per_second", $0)
  if ($0 !~ /"ok":true/) wrong[peer] = " (its own check failed)"
}
function median(peer,   n, i, j, swap) {
  n = count[peer]
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && value[peer, j] < value[peer, j - 1]; j--) { swap = value[peer, j]; value[peer, j] = value[peer, j - 1]; value[peer, j - 1] = swap }
  return value[peer, int((n + 1) / 2)]
}
END {
  if (ours == 0) { print "run.sh: reprise-bench gave no w1_steps_per_s" > "/dev/stderr"; exit 1 }
  printf "%-36s %14s %10s\n", "durable steps, 1,024 in flight", "steps/s", "reprise is"
  printf "%-36s %14.0f %10s\n", "reprise (in process)", ours, ""
  for (i = 1; i <= peers; i++) { m = median(order[i]); printf "%-36s %14.0f %9.1fx%s\n", order[i], m, (m > 0 ? ours / m : 0), wrong[order[i]] }
}' "$work/ours.jsonl" "$RESULTS"
