#!/usr/bin/env bash
# Every promise names what holds it, and that is there: tests/docs/promises.sh SOURCE_DIR
#
# Looks at the table of docs/explanation/promises.md. `Suite.name` (a second name of the same cell may leave the suite out) must be a
# test, `x.scenario` a scenario, `folder/` a folder, and words in quotes after "simulation" a promise of the table in docs/testing.md.
set -u
cd "$1" || exit 1
failures=0
checked=0

fail() {
  echo "FAILED $1"
  failures=$((failures + 1))
}

is_test() { grep -rqE --include='*.cpp' "^TEST(_F|_P)?\($1, *$2\)" src tests; }

check_cell() {  # what holds one promise
  local held=0 suite="" name
  while IFS= read -r name; do
    held=$((held + 1)) checked=$((checked + 1))
    case "$name" in
      '"'*) grep -q "^| ${name//\"/} |" docs/testing.md || fail "docs/testing.md has no promise $name" ;;
      *.scenario) [ -f "tests/scenarios/$name" ] || fail "there is no scenario $name" ;;
      */) [ -d "$name" ] || fail "there is no folder $name" ;;
      'reprise '*) held=$((held - 1)) ;;
      *.*) suite=${name%%.*}; is_test "$suite" "${name#*.}" || fail "there is no test $name" ;;
      *) is_test "$suite" "$name" || fail "there is no test $suite.$name" ;;
    esac
  done < <(grep -oE '`[^`]+`|"[^"]+"' <<<"$1" | tr -d '`')
  [ $held -gt 0 ] || fail "nothing holds: $1"
}

while IFS='|' read -r _ promise held _; do
  case "$promise" in ' promise '* | '---'*) continue ;; esac
  check_cell "$held"
done < <(grep '^|' docs/explanation/promises.md)

[ $checked -gt 0 ] || { echo "nothing was checked"; exit 1; }
echo "$checked checked, $failures failed"
[ $failures -eq 0 ]
