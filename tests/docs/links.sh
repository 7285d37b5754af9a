#!/usr/bin/env bash
# Holds the links of the documents against the files: tests/docs/links.sh SOURCE_DIR
#
#   relative links         the file or folder exists, inside of the project
#   #anchors               the page has a heading that gives this anchor, by GitHub's rules
#   http: and https:       are well formed, also as <https://…>; nothing is fetched
#   pages under docs/      another page links to them
#
# Blocks of code and `code` in a line are not looked at.
set -u
source_dir=$(cd "$1" && pwd) || exit 1
cd "$source_dir" || exit 1
export LC_ALL=C.UTF-8
shopt -s globstar nullglob
failures=0
checked=0
declare -A anchors_of=() linked=()

fail() {
  echo "FAILED $1"
  failures=$((failures + 1))
}

without_code() {  # file: its text, with code blocks as empty lines, so that line numbers stay
  sed -E -e '/^ *```/,/^ *```$/s/.*//' "$1"
}

# Lower case; letters, digits, `_`, `-` and blanks stay, blanks become `-`; the second one of a kind gets -1.
anchors() {  # file
  declare -A seen=()
  local slug
  while IFS= read -r slug; do
    local times=${seen[$slug]:-0}
    seen[$slug]=$((times + 1))
    [ "$times" = 0 ] || slug+=-$times
    printf '%s ' "$slug"
  done < <(without_code "$1" | sed -nE -e '/^#{1,6} /!d' -e 's/^#+ +//' -e 's/ +#* *$//' -e 's/!?\[([^]]*)\]\([^)]*\)/\1/g' -e 's/[^[:alnum:]_ -]//g' \
    -e 's/ /-/g' -e 's/.*/\L&/' -e p)
}

has_anchor() {  # file, anchor
  [ -n "${anchors_of[$1]+set}" ] || anchors_of[$1]=" $(anchors "$1")"
  case "${anchors_of[$1]}" in *" $2 "*) true ;; *) false ;; esac
}

# "line target" for each link and picture, also those that are defined at the end, [name]: target, and addresses by themselves, <https://…>.
# What stands after [^name]: is a footnote, that is words.
links() {  # file
  without_code "$1" | sed -E 's/`[^`]*`//g' | grep -noE '\]\([^) ]*|^\[[^]^][^]]*\]: +[^ ]+|<https?:[^>]*>' |
    sed -E -e 's/^([0-9]+):(\]\(|\[[^]]+\]: +)?/\1 /' -e 's/^([0-9]+) <(.*)>$/\1 \2/'
}

check_link() {  # page, line, target
  local place=$1:$2 target=$3 path anchor="" file
  checked=$((checked + 1))
  case "$target" in
    http:* | https:*)
      [[ $target =~ ^https?://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]+)?(/[^\ \<\>\"]*)?$ ]] || fail "$place: $target is no address"
      return ;;
  esac
  path=${target%%#*}
  case "$target" in *'#'*) anchor=${target#*#} ;; esac
  file=$(realpath -m --relative-to=. "$(dirname "$1")/$path")
  [ -n "$path" ] || file=$1
  case "$file" in ../*) fail "$place: $target leads out of the project"; return ;; esac
  if [ ! -e "$file" ]; then
    fail "$place: there is no $target"
  elif [ -n "$anchor" ] && ! { [ -f "$file" ] && has_anchor "$file" "$anchor"; }; then
    fail "$place: there is no heading #$anchor in $file"
  fi
  [ -d "$file" ] && file=$file/README.md  # what is shown of a folder
  [ "$file" = "$1" ] || linked[$file]=yes
}

pages=(README.md CONTRIBUTING.md CHANGELOG.md docs/**/*.md examples/**/*.md)
for page in "${pages[@]}"; do
  while read -r line target; do check_link "$page" "$line" "$target"; done < <(links "$page")
done
for page in docs/**/*.md; do
  [ -n "${linked[$page]+set}" ] || fail "$page: no other page links to it"
done

[ $checked -gt 0 ] || { echo "nothing was checked"; exit 1; }
echo "$checked links in ${#pages[@]} pages, $failures failed"
[ $failures -eq 0 ]
