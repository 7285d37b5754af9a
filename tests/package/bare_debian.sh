#!/usr/bin/env bash
# Installs the package in a Debian that has nothing else, and uses it there as a new user would: tests/package/bare_debian.sh DIST FLAKY_SERVER
#
# Needs root, debootstrap, lintian and Debian's servers (MIRROR names another one); takes some minutes.
set -euo pipefail
dist=$(realpath "$1")
flaky_server=$(realpath "$2")
source=$(realpath "$(dirname "$0")/../..")
mirror=${MIRROR:-http://deb.debian.org/debian}
work=$(mktemp -d)
root=$work/root
user=1000
server=""

clean_up() {
  [ -z "$server" ] || kill "$server"
  for folder in proc dev; do ! mountpoint -q "$root/$folder" || umount "$root/$folder"; done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
fail() {
  echo "FAILED: $1" >&2
  exit 1
}
say() { echo "$(date -u +%T) $1"; }
within() { chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
# Without privileges, in a folder of their own.
as_user() { chroot --userspec=$user:$user "$root" env -i -C /home/new PATH=/usr/local/bin:/usr/bin:/bin HOME=/home/new LC_ALL=C.UTF-8 "$@"; }
expect() {  # exit code, words in the output ("" for any), command …
  local code=0 wanted=$1 words=$2 said
  shift 2
  said=$("$@" 2>&1 </dev/null) || code=$?
  [ "$code" -eq "$wanted" ] || fail "exit code $code instead of $wanted: $*"$'\n'"$said"
  case "$said" in *"$words"*) ;; *) fail "no \"$words\" in what this said: $*"$'\n'"$said" ;; esac
}

say "sums and lintian"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)
lintian --allow-root --fail-on error "$dist"/reprise_*.deb

say "a Debian 12 with nothing in it"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" || { cat "$work/debootstrap.log"; fail debootstrap; }
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
install -d -o $user -g $user "$root/home/new"

cat >"$root/home/new/flow.yaml" <<'END'
name: first
steps:
  - {id: flaky, run: 'test "$REPRISE_ATTEMPT" -ge 2 && echo good', retry: {max_attempts: 3, backoff: constant, initial: 10ms, jitter: none}}
  - {id: each, needs: flaky, for_each: [a, b, c], run: 'echo ${item}'}
END
cat >"$root/home/new/http.yaml" <<'END'
name: http
params: {server: {default: nobody.example}}
steps:
  - {id: weather, http: {url: "http://${params.server}/weather"}, retry: {max_attempts: 4, backoff: constant, initial: 100ms, jitter: none}}
END

say "the tarball, with libc and nothing else"
mkdir "$root/opt/reprise"
tar -C "$root/opt/reprise" -xzf "$dist"/reprise-*.tar.gz --strip-components=1
expect 0 reprise as_user /opt/reprise/bin/reprise version
expect 0 succeeded as_user /opt/reprise/bin/reprise run flow.yaml
# shellcheck disable=SC2016 # for the shell in there
expect 0 again as_user /opt/reprise/bin/reprise exec --max-attempts 3 --backoff constant:10ms -- sh -c 'test $REPRISE_ATTEMPT = 3 && echo again'
expect 3 "apt install libcurl4" as_user /opt/reprise/bin/reprise run http.yaml
! within ldd /opt/reprise/bin/reprise | grep 'not found' || fail "libraries are missing"
rm -rf "$root/opt/reprise" "$root/home/new/.reprise"

say "the package, as contrib/Containerfile installs it"
cp "$dist"/reprise_*.deb "$root/tmp"
sed -n 's/^RUN //p' "$source/contrib/Containerfile" | while IFS= read -r line; do
  within sh -c "$line" >"$work/install.log" 2>&1 </dev/null || { cat "$work/install.log"; fail "$line"; }
done
expect 0 "Status: install ok installed" within dpkg -s reprise
expect 0 succeeded as_user reprise run flow.yaml
expect 0 "" as_user reprise doctor
"$flaky_server" >"$work/address" &
server=$!
for _ in $(seq 100); do if grep -q 127.0.0.1 "$work/address"; then break; fi; sleep 0.1; done
address=$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/address" | head -1)
expect 0 succeeded as_user reprise run http.yaml --set "server=$address"
expect 0 "503" as_user reprise why @last
expect 0 succeeded as_user reprise run /usr/share/doc/reprise/examples/quickstart.yaml
expect 0 "REPRISE" within sh -c 'zcat /usr/share/man/man1/reprise.1.gz'
expect 0 "" within bash -n /usr/share/bash-completion/completions/reprise

say "as the first process of a container"
expect 7 "" unshare --pid --fork --mount-proc="$root/proc" chroot "$root" reprise exec --store memory: --retry none -- sh -c 'exit 7'
expect 143 "" unshare --pid --fork --mount-proc="$root/proc" chroot "$root" reprise exec --store memory: -- sh -c 'kill -TERM 1; sleep 60'

say "a program against the installed library"
dpkg-deb -x "$dist"/reprise_*.deb "$work/deb"
printf '#include <cstdio>\n#include <reprise/retry.hpp>\nint main() { std::puts(*reprise::retry(reprise::policy::standard, [] { return 1; }) == 1 ? "linked" : "odd"); }\n' >"$work/app.cpp"
PKG_CONFIG_PATH=$work/deb/usr/lib/pkgconfig sh -c "g++ $work/app.cpp -o $work/app \$(pkg-config --cflags --libs reprise)"
expect 0 linked "$work/app"

say "removed again"
expect 0 "" within apt-get purge -y reprise
[ ! -e "$root/usr/bin/reprise" ] || fail "purged, and still there"
say "everything works in a bare Debian 12"
