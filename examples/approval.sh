#!/usr/bin/env bash
# A deployment that waits for a person, across a kill -9: the wait is a record, not a process. Needs `reprise` on the PATH.
#
#   examples/approval.sh
set -eu
flows=$(cd "$(dirname "$0")/flows" && pwd)
folder=$(mktemp -d)
job=""
trap 'if [ -n "$job" ]; then kill -9 "$job" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
export REPRISE_STORE="sqlite:$folder/reprise.db"

# 1. It is built, and then waits up to a day for somebody to approve.
reprise run "$flows/approval.yaml" --progress quiet &
job=$!
until reprise events @last 2>/dev/null | grep 'build done' >"$folder/built"; do
  kill -0 "$job"  # should it end by itself, there is nothing to wait for
  sleep 0.1
done
echo "built, waiting for an approval"

# 2. The machine goes down in the meantime.
{ kill -9 "$job" && wait "$job"; } 2>/dev/null || true
job=""

# 3. Ada approves. Nobody runs the flow now, and still nothing is lost: the signal is kept with the run.
reprise signal @last approval '{"by": "ada"}'
echo "approved while nobody was there to hear it"

# 4. Whoever resumes it finds the approval.
reprise resume @last --progress quiet
reprise logs @last deploy
