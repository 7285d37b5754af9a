#!/bin/sh
# Installs the Debian packages this project needs, only those that are missing. Usage: scripts/setup.sh [build] [test] [clang] [format] [browser] [package] [package-test]
set -eu

build_packages="g++ make cmake ninja-build mold pkg-config libyaml-dev libre2-dev libfmt-dev libcli11-dev libsqlite3-dev libssl-dev libcurl4-openssl-dev libboost1.81-dev libboost-json1.81-dev libboost-context1.81-dev"
test_packages="libgtest-dev librapidcheck-dev libbenchmark-dev mandoc tmux json-schema-test-suite"
clang_packages="clang-19 libclang-rt-19-dev"
format_packages="clang-format"
package_packages="dpkg-dev binutils"
package_test_packages="debootstrap lintian"
browser_packages="chromium"
command -v node >/dev/null 2>&1 || browser_packages="$browser_packages nodejs"  # not beside one that did not come from Debian
command -v npm >/dev/null 2>&1 || browser_packages="$browser_packages npm"

packages=""
for group in "${@:-build}"; do
  case "$group" in
    build) packages="$packages $build_packages" ;;
    test) packages="$packages $test_packages" ;;
    clang) packages="$packages $clang_packages" ;;
    format) packages="$packages $format_packages" ;;
    browser) packages="$packages $browser_packages" ;;
    package) packages="$packages $package_packages" ;;
    package-test) packages="$packages $package_test_packages" ;;
    *) echo "setup.sh: unknown group $group (build, test, clang, format, browser, package or package-test)" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "setup.sh: this is not a Debian system; please install the counterparts of:$packages" >&2
  exit 0
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  as_root="sudo"
fi
echo "setup.sh: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086 # each package is a word of its own
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
