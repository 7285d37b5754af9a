#!/usr/bin/env bash
# An item that cannot be done is kept as a dead letter; once the cause is gone it is tried again. Needs `reprise` on the PATH.
#
#   examples/dead_letter_replay.sh
set -eu
flows=$(cd "$(dirname "$0")/flows" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export REPRISE_STORE="sqlite:$folder/reprise.db"

# 1. Three cities are loaded. The file of one is missing, and two attempts do not change that. The run succeeds without it.
reprise run "$flows/dead_letters.yaml" --set folder="$folder/letters" --progress quiet
echo "first:  $(reprise logs @last report)"

# 2. What was kept, what it was given, and how each attempt failed: enough to find the cause.
reprise dead-letters show @last 'load[2]' 2>&1 | grep -E '^(work|because|input) '

# 3. The cause is put right, and the item gets all its attempts again. The others are left alone: they are done.
mkdir "$folder/letters"
echo "21 degrees" >"$folder/letters/pune"
reprise dead-letters retry @last --progress quiet
echo "second: $(reprise logs @last 'load[2]' | grep loaded)"
reprise dead-letters list @last 2>&1
