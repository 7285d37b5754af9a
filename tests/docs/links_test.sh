#!/usr/bin/env bash
# Does links.sh notice? A small project with one mistake of each kind, and things that look like mistakes: tests/docs/links_test.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/docs/more" "$work/examples"
touch "$work/CHANGELOG.md" "$work/docs/lonely.md"
cat >"$work/README.md" <<'END'
# A project

[good](docs/page.md) [a heading](docs/page.md#what-is-it-exactly) [the second](docs/page.md#twice-1) [code](docs/page.md#--format-and-x_y) [ü](docs/page.md#über-uns)
[a folder](docs/more/) [the web](https://example.org/a?b=c#d) `[no link](nowhere.md)` [here](#a-project)
```text
[no link either](nowhere.md)
```
<https://example.org/a> [pointed](<https://example.org/b>) <b> and words[^note][^more]

[^note]: <https://example.org/c#d> and what is there
[^more]: Words, and no link.
END
cat >"$work/docs/page.md" <<'END'
# What is it, exactly?
## Twice
## Twice
## `--format` and x_y
## Über uns
END
echo '[back](../../README.md)' >"$work/docs/more/README.md"
cat >"$work/CONTRIBUTING.md" <<'END'
[gone](docs/gone.md)
[no heading](docs/page.md#what-is-it)
[no third](docs/page.md#twice-2)
[outside](../outside.md)
[typing](https:/example.org)
![picture](docs/picture.svg)
[named]: docs/also-gone.md
Words <https:/example.org/typing> and words
[^note]: <https://nowhere> and words
END

found=$("$here/links.sh" "$work")
code=$?
wanted='FAILED CONTRIBUTING.md:1: there is no docs/gone.md
FAILED CONTRIBUTING.md:2: there is no heading #what-is-it in docs/page.md
FAILED CONTRIBUTING.md:3: there is no heading #twice-2 in docs/page.md
FAILED CONTRIBUTING.md:4: ../outside.md leads out of the project
FAILED CONTRIBUTING.md:5: https:/example.org is no address
FAILED CONTRIBUTING.md:6: there is no docs/picture.svg
FAILED CONTRIBUTING.md:7: there is no docs/also-gone.md
FAILED CONTRIBUTING.md:8: https:/example.org/typing is no address
FAILED CONTRIBUTING.md:9: https://nowhere is no address
FAILED docs/lonely.md: no other page links to it
21 links in 6 pages, 10 failed'
diff <(echo "$wanted") <(echo "$found") || exit 1
[ $code -eq 1 ] || { echo "exit code $code"; exit 1; }
