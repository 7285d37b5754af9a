#!/usr/bin/env bash
# Runs every flow of the examples and holds its result against what stands here: tests/docs/examples.sh PATH_OF_REPRISE SOURCE_DIR
#
# All are validated. One that is not named below is a failure: it must be run, or be listed as one that cannot be or that another one runs.
set -u
reprise=$1
flows=$2/examples/flows
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
PATH="$(dirname "$reprise"):$flows/bin:$PATH"  # bin: stand-ins for programs of others
export PATH LC_ALL=C.UTF-8 API_TOKEN=the-real-one
unset REPRISE_STORE
failures=0
checked=0
seen=" greeting.yaml http.yaml "  # sub_flow.yaml runs the first, the second needs services of others

fail() {
  echo "FAILED $1"
  failures=$((failures + 1))
  [ ! -s log ] || sed 's/^/    /' log
}

expect() {  # name, what was found, what is wanted
  checked=$((checked + 1))
  case "$2" in *"$3"*) ;; *) fail "$1: no '$3' in '$2'" ;; esac
}

run_flow() {  # name, its output, options: runs it and looks at its result
  local name=$1 wanted=$2 found
  shift 2
  seen+="$name.yaml "
  found=$(reprise run "$flows/$name.yaml" --format json "$@" 2>log) || { fail "$name: exit code $?"; return; }
  expect "$name" "$found" '"status":"succeeded"'
  expect "$name" "$found" "\"output\":\"$wanted\""
}

reprise validate "$2/examples/quickstart.yaml" "$flows"/*.yaml >log 2>&1 || fail "not all examples are valid"

story=$(reprise run "$2/examples/quickstart.yaml" 2>&1 | tee log; exit "${PIPESTATUS[0]}") || fail "quickstart: exit code $?"
for line in 'download done after 3 attempts' 'look_up attempt 1/3 failed: TimeoutError' 'weather[1] done after 2 attempts' \
  'report the next attempt is told what was wrong' 'translate trying its fallback' 'run succeeded'; do
  expect quickstart "$story" "$line"
done

run_flow map_reduce '5 of 5 words, the first has 5 letters'
run_flow exec 'done'
run_flow wave 'fetched and verified'
run_flow azolla 'fetched'
run_flow rh_agents 'sent'
run_flow argyll 'done'
run_flow prodigy '3 of 3 items'
run_flow sub_flow 'hello ada and hello grace'

run_flow secrets 'using ***'
expect secrets "$(cat .reprise/logs/*/call/0.1.log)" 'using ***'
! grep -rq the-real-one .reprise || fail "secrets: the secret stands in the store"

run_flow dead_letters '2 loaded, 1 kept for later' --set "folder=$work/letters"
expect dead_letters "$(reprise dead-letters list @last 2>&1)" 'load[2]'
mkdir letters && touch letters/pune
reprise dead-letters retry @last 2>log || fail "dead_letters: exit code $? when tried again"
expect dead_letters "$(reprise dead-letters list @last 2>&1)" 'no dead letters'

# The patience is only for machines that hang.
seen+="approval.yaml "
reprise run "$flows/approval.yaml" --format json >approved 2>log &
for _ in $(seq 600); do
  reprise events @last 2>/dev/null | grep -q 'build done' && break
  sleep 0.1
done
reprise signal @last approval '{"by": "ada"}' || fail "approval: exit code $? of the signal"
wait $! || fail "approval: exit code $?"
expect approval "$(cat approved)" 'deploying v1.4.2, approved by ada'

for flow in "$flows"/*.yaml; do
  case "$seen" in *" ${flow##*/} "*) ;; *) fail "${flow##*/} is run by nobody" ;; esac
done
echo "$checked checked, $failures failed"
[ $failures -eq 0 ]
