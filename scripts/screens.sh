#!/usr/bin/env bash
# Makes the pictures of terminals in docs/images from real runs: scripts/screens.sh
#
# scripts/screens.sh --check FOLDER_OF_REPRISE FOLDER_OF_TOOLS records anew too, changes nothing, and fails when a picture shows something else than
# a run does today. Times, ids and other numbers may differ, and the order of lines, because things happen at once.
set -euo pipefail
check=false
if [ "${1:-}" = --check ]; then
  check=true reprise_folder=$(realpath "$2") tools=$(realpath "$3")
fi
cd "$(dirname "$0")/.."
images=$PWD/docs/images
if ! $check; then
  scripts/setup.sh build test
  cmake --preset release -DREPRISE_TESTS=ON >/dev/null
  cmake --build --preset release --target reprise_cli record_session screen_svg
  reprise_folder=$PWD/build/release tools=$PWD/build/release/tests/terminal
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH="$reprise_folder:$PATH"
export PATH
stale=0

# The text of a picture without what is different in every run.
story() {
  sed -E -e 's/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/ID/g' -e 's/[0-9-]+T[0-9:.]+Z/TIME/g' \
    -e 's/([0-9]+(\.[0-9]+)?(ms|[smh]))+\b/DURATION/g' -e 's/ +/ /g' | sort
}

description() { sed -n '/^<desc>$/,/^<\/desc>$/p' "$1" | sed -e '1d' -e '$d' -e 's/&lt;/</g' -e 's/&gt;/>/g' -e 's/&amp;/\&/g'; }

picture() {  # name, size, moments, title, exit code, command line
  local name=$1 size=$2 moments=$3 title=$4 wanted=$5 line=$6 code=0
  "$tools/record_session" --size "$size" --folder "$work" --set HOME="$work" --out "$work/$name.cast" --prompt "$line" -- sh -c "$line" || code=$?
  [ $code -eq "$wanted" ] || { echo "$name: exit code $code, not $wanted"; exit 1; }
  if $check; then
    diff <(description "$images/$name.svg" | story) <("$tools/screen_svg" --text "$work/$name.cast" | story) && return
    echo "docs/images/$name.svg is stale: scripts/screens.sh makes it anew"
    stale=1
  else
    "$tools/screen_svg" "$work/$name.cast" --title "$title" --window "$line" --moments "$moments" >"$images/$name.svg"
  fi
}

cp examples/quickstart.yaml examples/quickstart.schema.json tests/terminal/nightly.yaml "$work"
picture recovery 100x30 12 'A flow in which everything goes wrong once, and is put right' 0 'reprise run quickstart.yaml'
picture why 116x24 1 'Why a work item was tried again' 0 "reprise why @last 'weather[1]'"
picture failure 100x36 1 'A flow that fails: what failed, how often, its final output, and what to do now' 1 'reprise run nightly.yaml'
exit $stale
