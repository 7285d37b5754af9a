#!/usr/bin/env bash
# Runs every flow and every script of the examples and holds them against what stands here:
#   tests/docs/examples.sh PATH_OF_REPRISE SOURCE_DIR PATH_OF_FLAKY_SERVER
#
# All flows are validated. One that is not named below is a failure: it must be run, or be listed as one that cannot be or that another one runs.
set -u
reprise=$1
examples=$2/examples
flows=$examples/flows
flaky_server=$3
work=$(mktemp -d)
children=()
trap 'kill -9 "${children[@]}" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
PATH="$(dirname "$reprise"):$flows/bin:$PATH"  # bin: stand-ins for programs of others
export PATH LC_ALL=C.UTF-8 API_TOKEN=the-real-one
unset REPRISE_STORE
failures=0
checked=0
seen=" greeting.yaml long_job.yaml "  # sub_flow.yaml runs the first, resume_after_kill.sh the second

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

tells() {  # name, lines that the run before must have told
  local name=$1 line story
  story=$(cat log)
  shift
  for line; do expect "$name" "$story" "$line"; done
}

run_script() {  # name, exactly what it says
  local found
  : >log
  checked=$((checked + 1))
  seen+="$1.sh "
  found=$("$examples/$1.sh" 2>&1 </dev/null) || fail "$1.sh: exit code $?"
  [ "$found" = "$2" ] || fail "$1.sh says: $found"
}

reprise validate "$examples/quickstart.yaml" "$flows"/*.yaml >log 2>&1 || fail "not all examples are valid"
! grep -q warning log || fail "an example is warned of"

seen+="quickstart.yaml "
reprise run "$examples/quickstart.yaml" >log 2>&1 || fail "quickstart: exit code $?"
tells quickstart 'download attempt 2/3 failed: exit 1: connection reset by peer' 'download done after 3 attempts' 'look_up attempt 1/3 failed: TimeoutError' \
  'weather 24 items' 'weather[1] lima attempt 1/3 failed: exit 75: HTTP 503 service unavailable' 'weather[10] osaka done after 3 attempts' \
  'report the next attempt is told what was wrong' 'report done after 2 attempts' 'translate trying its fallback' 'run succeeded'
expect quickstart "$(reprise logs @last translate)" 'sunny in 24 of 24 cities, untranslated'
expect quickstart "$(reprise logs @last goodbye)" 'the run has succeeded'

# Flows of Reprise.
run_flow map_reduce '5 of 5 words, the first has 5 letters'
tells map_reduce 'count[2] plum done after 2 attempts'
run_flow word_count '2500 words in 1000 files'
tells word_count 'count 1000 items' '1040 attempts, 36 retries'
reprise events @last | grep -E 'count.* done after [23] attempts' >log  # of so many items the progress tells only the first
tells word_count 'count[20] done after 2 attempts' 'count[980] done after 2 attempts' 'count[444] done after 3 attempts'
expect word_count "$(wc -l <log) items recovered" '33 items recovered'
expect word_count "$(reprise show @last --format json)" '"step":"count","state":"succeeded","items":1000,"done":1000,"failed":0'
expect word_count "$(ls -d "$(reprise logs @last write)" 2>&1)" 'No such file'
run_flow exec 'done'
run_flow sub_flow 'hello ada and hello grace'

run_flow secrets 'using ***'
expect secrets "$(cat .reprise/logs/*/call/0.1.log)" 'using ***'
! grep -rq the-real-one .reprise || fail "secrets: the secret stands in the store"

run_flow dead_letters '2 loaded, 1 kept for later' --set "folder=$work/letters"
expect dead_letters "$(reprise dead-letters list @last 2>&1)" 'load[2]'

# It needs services of others.
seen+="http.yaml "
expect http "$(reprise run "$flows/http.yaml" --dry-run 2>&1)" 'POST https://api.example.org/orders'

# The server says where it is in its first line. The patience, here and below, is only for machines that hang.
"$flaky_server" >server &
children+=($!)
for _ in $(seq 600); do
  grep -q http: server && break
  sleep 0.1
done
run_flow http_local 'oslo is clear, 12 pages' --set "url=$(head -1 server)"
tells http_local 'weather attempt 1/5 failed: HTTP 429' 'retry in 1s as the other side asked' 'weather attempt 2/5 failed: HTTP 503' \
  'weather done after 3 attempts' 'print attempt 1/5 failed: WorkNotCompleted: out of paper' 'print done after 2 attempts'
why=$(reprise why @last weather)
expect http_local "$why" 'It is transient, throttled, by the rule: http 429.'
expect http_local "$why" 'It waited 1s before attempt 2: the other side asked for at least that long (Retry-After)'
expect http_local "$why" 'It is transient, throttled, by the rule: http 503.'
expect flaky_server "$(tr '\n' ' ' <server)" \
  'GET /weather: 429 Too Many Requests GET /weather: 503 Service Unavailable GET /weather: 200 OK POST /jobs: 202 Accepted'
kill "${children[0]}"
wait "${children[0]}"
expect flaky_server "exit code $? after SIGTERM" 'exit code 143'
children=()

seen+="approval.yaml "
reprise run "$flows/approval.yaml" --format json >approved 2>log &
children+=($!)
for _ in $(seq 600); do
  reprise events @last 2>/dev/null | grep 'build done' >built && break
  sleep 0.1
done
reprise signal @last approval '{"by": "ada"}' || fail "approval: exit code $? of the signal"
wait $! || fail "approval: exit code $?"
children=()
expect approval "$(cat approved)" 'deploying v1.4.2, approved by ada'

# Flows of other systems: each fails in the ways its own document tells of, and recovers.
run_flow wave 'implemented, explored in parts and analyzed'
tells wave 'fetch attempt 3/5 failed: exit 75: ConnectionError: temporarily unavailable (transient); retry in 200ms' 'fetch done after 4 attempts' \
  'implement attempt 3/5 failed: exit 1: --- FAIL: TestRound (test_failure); retry in 200ms' 'implement done after 4 attempts' \
  'polish attempt 3/8 failed: exit 1: --- FAIL: TestSum (test_failure); given up: the circuit breaker was open' \
  'publish attempt 1/5 failed: exit 1: invalid API key (deterministic, auth); given up' \
  'explore attempt 1/3 failed: exit 1: context window exceeded (budget_exhausted)' 'explore trying its fallback' 'analyze done after 2 attempts'

run_flow azolla 'fetched and parsed, the mirror has failed'
tells azolla 'fetch attempt 2 failed: exit 1: TimeoutError: no answer (transient, timeout); retry in 100ms' 'fetch done after 3 attempts' \
  'parse attempt 3/6 failed: exit 1: ValueError: half a record (deterministic, invalid_input); retry in 180ms' 'parse done after 4 attempts' \
  'mirror attempt 1/5 failed: exit 1: PermissionError: ask for an account'

run_flow rh_agents 'sent: they agree'
tells rh_agents 'search done after 3 attempts' 'ask attempt 4/5 failed: exit 75: ConnectionError' 'ask done after 5 attempts' 'fetch done after 4 attempts' \
  'rate attempt 1/5 failed: exit 1: ValueError: the score must be a number' 'send attempt 1/1 started'

run_flow argyll 'small-lima.png is published'
tells argyll 'resize[1] lima.png attempt 2/4 failed' 'still rendering (not completed, says the handler); retry in 100ms' 'resize[1] lima.png done after 4 attempts' \
  'no such address (permanent, says the handler); given up: this failure is permanent' 'count attempt 1/4 failed: exit 75 (transient); given up: the handler gave no verdict' \
  'publish done after 3 attempts'

run_flow prodigy '3 of 4 items'
tells prodigy 'map[1] 2 attempt 1/3 failed: exit 1: overloaded_error' 'map[1] 2 done after 2 attempts' 'map[3] 4 attempt 3/3 failed: exit 1: four.txt has no title' \
  'map[3] 4 kept as a dead letter'
expect prodigy "$(reprise logs @last 'map[2]')" "done: /fix-validation-error '3'"

run_script resume_after_kill 'killed; 20 of 40 items are done, 4 were running
40 of 40 items are done
begun twice: 4 items; done before the kill and begun again: 0'
run_script dead_letter_replay 'first:  2 loaded, 1 kept for later
work      load[2]
because   its attempts were used up
input     "pune"
second: pune is loaded
There are no dead letters.'
run_script approval 'built, waiting for an approval
approved while nobody was there to hear it
deploying v1.4.2, approved by ada'

# Nothing is forgotten: each flow and script was run, each program is built, and the index leads to all files and to nothing else.
: >log
index=$examples/README.md
for file in "$examples"/*.yaml "$examples"/*.sh "$flows"/*.yaml; do
  case "$seen policy.yaml " in *" ${file##*/} "*) ;; *) fail "${file##*/} is run by nobody" ;; esac
done
for file in "$examples"/*.cpp; do
  name=$(basename "$file" .cpp)
  grep -qw "$name" "$examples/CMakeLists.txt" || fail "${file##*/} is built by nobody"
done
for file in "$examples"/*.{cpp,yaml,json,sh} "$flows"/*.* "$flows"/bin/*; do
  checked=$((checked + 1))
  grep -qF "](${file#"$examples/"})" "$index" || fail "examples/README.md does not name ${file#"$examples/"}"
done
for link in $(grep -oE '\]\([^)#:]+' "$index" | cut -c3-); do
  [ -e "$examples/$link" ] || fail "examples/README.md names $link, which is not there"
done

echo "$checked checked, $failures failed"
[ $failures -eq 0 ]
