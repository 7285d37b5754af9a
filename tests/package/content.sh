#!/usr/bin/env bash
# What `make package` makes has everything in it, and needs nothing that is not declared: tests/package/content.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $1" >&2
  exit 1
}

"$source/scripts/package.sh" "$build" "$work/dist" >/dev/null
cd "$work/dist"
sha256sum --quiet -c SHA256SUMS
[ "$(wc -l <SHA256SUMS)" -eq "$(find . -name 'reprise[-_]*' | wc -l)" ] || fail "SHA256SUMS does not name every file"
mkdir tarball
tar -C tarball -xzf reprise-*.tar.gz --strip-components=1

check_tree() {  # a prefix: bin, lib, include, share
  "$1/bin/reprise" version >/dev/null || fail "$1: the command does not start"
  local needed
  needed=$(ldd "$1/bin/reprise" | awk '{print $1}' | grep -vE '^(linux-vdso\.so\.1|/lib.*/ld-linux.*|libc\.so\.6|libm\.so\.6)$' || true)
  [ -z "$needed" ] || fail "the command needs more than libc: $needed"
  diff <(ls "$source/include/reprise") <(ls "$1/include/reprise") || fail "$1: headers are missing"
  local name
  for name in lib/libreprise.a lib/libreprise_text.a lib/libreprise_engine.a lib/cmake/Reprise/RepriseConfig.cmake lib/pkgconfig/reprise-engine.pc \
    share/bash-completion/completions/reprise share/zsh/site-functions/_reprise share/fish/vendor_completions.d/reprise.fish \
    share/doc/reprise/examples/quickstart.yaml; do
    [ -s "$1/$name" ] || fail "$1 has no $name"
  done
  "$1/bin/reprise" man --all "$work/man" >/dev/null
  diff <(ls "$work/man") <(find "$1/share/man/man1" -type f -printf '%f\n' | sed 's/\.gz$//' | LC_ALL=C sort) || fail "$1: manual pages are missing"
  ! grep -rlF "$build" "$1" || fail "$1: files above name the folder of the build"
}
check_tree "$work/dist/tarball"
for name in LICENSE SECURITY.md INSTALL.md CHANGELOG.md; do [ -s "tarball/$name" ] || fail "the tarball has no $name"; done
grep -q 'libsqlite3-dev' tarball/share/doc/reprise/third-party-notices || ! command -v dpkg-query >/dev/null || fail "licences of what is linked in are missing"

if command -v dpkg-deb dpkg-shlibdeps >/dev/null; then
  dpkg-deb -x reprise_*.deb deb
  check_tree "$work/dist/deb/usr"
  field() { dpkg-deb -f reprise_*.deb "$1"; }
  case "$(field Depends)" in *'libc6 (>= '*'libcurl4 (>= 7.87)'*) ;; *) fail "Depends: $(field Depends)" ;; esac
  case "$(field Built-Using)" in *'sqlite3 (= '*'openssl (= '*) ;; *) fail "Built-Using: $(field Built-Using)" ;; esac
  [ "$(field Version)" = "$("$build/reprise" version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)-1" ] || fail "Version: $(field Version)"
fi
echo "tarball, package and sums are whole"
