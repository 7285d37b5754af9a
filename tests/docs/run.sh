#!/usr/bin/env bash
# Holds the documents against the product: tests/docs/run.sh PATH_OF_REPRISE SOURCE_DIR
#
#   ```console            each `$ command` is run (lines with `> ` continue it) and must print exactly what follows it; times of day,
#                         ids of runs and how long a whole run took are compared as such, whatever their value
#   ```yaml DIALECT       must be a valid policy of that dialect; add `invalid` for one that must be refused; `json` likewise
#   ```yaml flow          must be a valid flow document; add `invalid` for one that must be refused
#   ```cpp                must stand, apart from indentation, in one of the examples, which are compiled and run
#   ```sh, ```text        not checked
#
# Each document has a folder of its own, with a store of its own, and sees the folders examples and docs; programs of the examples
# are on the path.
set -u
reprise=$1
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH="$(dirname "$reprise"):$(dirname "$reprise")/examples:$PATH"
export PATH LC_ALL=C.UTF-8
unset REPRISE_STORE
failures=0
checked=0

fail() {
  echo "FAILED $1"
  failures=$((failures + 1))
}

begin_folder() {  # for one document
  folder=$(mktemp -d "$work/XXXXXX")
  ln -s "$source_dir/examples" "$source_dir/docs" "$folder"
}

without_chance() {
  sed -E -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z/TIME/g' -e 's/\b[0-9]{2}:[0-9]{2}:[0-9]{2}Z/TIME/g' \
    -e 's/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/RUN/g' -e 's/^(Run RUN of .* after )[0-9.]+(us|ms|s)\b/\1DURATION/'
}

run_command() {  # place, command, expected
  checked=$((checked + 1))
  actual=$(cd "$folder" && bash -c "$2" 2>&1 </dev/null | without_chance)  # else a command could read the document away
  expected=$(without_chance <<<"$3")
  if [ "$actual" != "$expected" ]; then
    fail "$1: \$ $2"
    diff <(printf '%s\n' "$expected") <(printf '%s\n' "$actual") | sed 's/^/    /'
  fi
}

check_console() {  # place, file with the block
  local command="" printed="" started=false line
  while IFS= read -r line; do
    case "$line" in
      '$ '*)
        $started && run_command "$1" "$command" "${printed%$'\n'}"
        command=${line#'$ '} printed="" started=true ;;
      '> '*) command+=$'\n'${line#'> '} ;;
      *) printed+=$line$'\n' ;;
    esac
  done <"$2"
  $started && run_command "$1" "$command" "${printed%$'\n'}"
}

check_text() {  # place, file, dialect or flow, invalid?
  checked=$((checked + 1))
  local wanted=0 code command=(policy check --from "$3")
  [ "$3" = flow ] && command=(validate)
  [ "${4:-}" = invalid ] && wanted=3
  (cd "$folder" && reprise "${command[@]}" "$2") >"$work/out" 2>&1
  code=$?
  [ $code -eq $wanted ] || { fail "$1: ${command[*]} gave $code, not $wanted"; sed 's/^/    /' "$work/out"; }
}

flat() { sed -e 's/^[[:space:]]*//' -e '/^$/d' "$1" | tr '\n' '\036'; }

check_cpp() {  # place, file
  checked=$((checked + 1))
  local block example
  block=$(flat "$2")
  for example in "$source_dir"/examples/*.cpp; do
    case "$(flat "$example")" in *"$block"*) return ;; esac
  done
  fail "$1: this C++ stands in no example"
}

for document in "$source_dir"/README.md "$source_dir"/CONTRIBUTING.md "$source_dir"/examples/README.md "$source_dir"/docs/*.md "$source_dir"/docs/*/*.md; do
  name=${document#"$source_dir"/}
  number=0 kind="" block="$work/block"
  begin_folder
  while IFS= read -r line; do
    number=$((number + 1))
    if [ -z "$kind" ] && [ "${line#'```'}" != "$line" ]; then
      kind=${line#'```'} place="$name:$number"
      : >"$block"
    elif [ -n "$kind" ] && [ "$line" = '```' ]; then
      read -r language dialect flag <<<"$kind"
      case "$language" in
        console) check_console "$place" "$block" ;;
        yaml | json)
          if [ -n "${dialect:-}" ]; then check_text "$place" "$block" "$dialect" "${flag:-}"; else fail "$place: which dialect is this, or is it a flow?"; fi ;;
        cpp) check_cpp "$place" "$block" ;;
        sh | text | mermaid | cmake) ;;
        *) fail "$place: unknown kind of block '$kind'" ;;
      esac
      kind=""
    elif [ -n "$kind" ]; then
      printf '%s\n' "$line" >>"$block"
    fi
  done <"$document"
  [ -z "$kind" ] || fail "$place: this block has no end"
done

[ $checked -gt 0 ] || { echo "nothing was checked"; exit 1; }
echo "$((checked - failures)) passed, $failures failed"
[ $failures -eq 0 ]
