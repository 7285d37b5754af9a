#!/usr/bin/env bash
# A job is killed with kill -9 in the middle and resumed: what was done is not done again. Needs `reprise` on the PATH.
#
#   examples/resume_after_kill.sh
set -eu
flows=$(cd "$(dirname "$0")/flows" && pwd)
folder=$(mktemp -d)
job=""
trap 'if [ -n "$job" ]; then kill -9 "$job" 2>/dev/null || true; fi; rm -rf "$folder"' EXIT
export REPRISE_STORE="sqlite:$folder/reprise.db"

# How the items of the map stand, as `reprise show` sees it while somebody else runs them: 20 done, 4 running …
standing() { { reprise show @last --format json 2>/dev/null || true; } | grep -o '"step":"work"[^}]*' | grep -oE "\"$1\":[0-9]+" | cut -d: -f2; }

# 1. The job runs, and somebody pulls the plug. From item 20 on the work hangs, so there is always a middle to be killed in.
reprise run "$flows/long_job.yaml" --set folder="$folder" --progress quiet &
job=$!
until [ "$(standing done)" = 20 ] && [ "$(wc -l <"$folder/begun")" = 24 ]; do
  kill -0 "$job"  # should it end by itself, there is nothing to wait for
  sleep 0.1
done
{ kill -9 "$job" && wait "$job"; } 2>/dev/null || true
job=""

# 2. What the record says after the kill: these items are done.
reprise events @last --format json | grep '"type":"completed"' | grep '"step":"work"' | grep -oE '"item":[0-9]+' | cut -d: -f2 | sort >"$folder/done"
echo "killed; $(wc -l <"$folder/done") of 40 items are done, $(standing running) were running"

# 3. Another process takes over. Those that were running are lost, which counts as a failed attempt, and are tried again.
touch "$folder/go_on"
reprise resume @last --progress quiet
reprise logs @last report

# 4. Each line in `begun` is one attempt that began. Was one of them for an item that was done already?
sort "$folder/begun" | uniq -d | sort >"$folder/twice"
again=$(comm -12 "$folder/done" "$folder/twice" | wc -l)
echo "begun twice: $(wc -l <"$folder/twice") items; done before the kill and begun again: $again"
test "$again" -eq 0 && test "$(wc -l <"$folder/done")" -eq 20
