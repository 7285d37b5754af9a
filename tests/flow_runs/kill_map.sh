#!/bin/sh
# Kills a map of commands again and again and looks at what is left: the long form of TroubleKill.MapIsKilledAgainAndAgain.
#
#   tests/flow_runs/kill_map.sh build/release/tests/flow_runs_tests [KILLS [ITEMS [ROUNDS]]]
set -eu
tests=$1
for round in $(seq "${4:-1}"); do
  echo "round $round: ${2:-50} kills, ${3:-3000} items"
  REPRISE_KILLS=${2:-50} REPRISE_KILL_ITEMS=${3:-3000} "$tests" --gtest_brief=1 --gtest_filter='TroubleKill.MapIsKilledAgainAndAgain'
done
