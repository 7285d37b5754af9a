#!/usr/bin/env bash
# Makes what can be carried to another machine: scripts/package.sh BUILD_DIR DESTINATION
#
#   reprise-VERSION-linux-ARCH.tar.gz    unpack it anywhere
#   reprise_VERSION-1_ARCH.deb           apt install ./reprise_…deb
#   SHA256SUMS
#
# BUILD_DIR is a finished release build. The same source, compiler and libraries give the same bytes: every time stamp is that of the last commit
# (SOURCE_DATE_EPOCH), names are sorted, the owner is root. Without dpkg there is a tarball only.
set -euo pipefail
umask 022
export LC_ALL=C.UTF-8
build=$(realpath "$1")
mkdir -p "$2"
destination=$(realpath "$2")
source=$(realpath "$(dirname "$0")/..")
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
version=$(cached CMAKE_PROJECT_VERSION)
libdir=$(cached CMAKE_INSTALL_LIBDIR)
machine=$(uname -m)
: "${SOURCE_DATE_EPOCH:=$(git -C "$source" log -1 --format=%ct 2>/dev/null || stat -c %Y "$source/CHANGELOG.md")}"
export SOURCE_DATE_EPOCH
: "${MAINTAINER:=The Reprise authors <maintainers@reprise.example>}"  # who answers for the package
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
rm -f "$destination"/reprise[-_]*.{tar.gz,deb} "$destination/SHA256SUMS"

# What is linked into the command, by the Debian package it comes from. Their licences go along, and their versions are declared.
linked_in="libsqlite3-dev libssl-dev libyaml-dev libre2-dev libfmt-dev libboost1.81-dev libcli11-dev"

third_party_notices() {
  echo "The reprise command contains parts of the following libraries, and of GCC's runtime library (GPL-3 with the runtime library exception)."
  local package
  for package in $linked_in; do
    [ -e "/usr/share/doc/$package/copyright" ] || continue
    printf '\n\n==== %s %s ====\n\n' "$package" "$(dpkg-query -W -f '${Version}' "$package")"
    cat "/usr/share/doc/$package/copyright"
  done
}

install_into() {  # prefix
  cmake --install "$build" --prefix "$1" >/dev/null
  strip --remove-section=.comment --remove-section=.note "$1/bin/reprise"
  strip --strip-debug --remove-section=.comment --remove-section=.note --enable-deterministic-archives "$1/$libdir"/libreprise*.a
  mkdir -p "$1/share/doc/reprise/examples"
  install -m 644 "$source/examples/quickstart.yaml" "$source/examples/quickstart.schema.json" "$1/share/doc/reprise/examples"
  third_party_notices >"$1/share/doc/reprise/third-party-notices"
}

make_tarball() {
  local name=reprise-$version-linux-$machine
  install_into "$stage/$name"
  install -m 644 "$source/LICENSE" "$source/CHANGELOG.md" "$source/SECURITY.md" "$stage/$name"
  install -m 644 "$source/docs/install.md" "$stage/$name/INSTALL.md"
  tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -9n >"$destination/$name.tar.gz"
}

needed_libraries() {  # as dpkg names them; asks in a folder of its own, as a source package has it
  mkdir -p "$stage/ask/debian"
  printf 'Source: reprise\n\nPackage: reprise\nArchitecture: any\n' >"$stage/ask/debian/control"
  (cd "$stage/ask" && dpkg-shlibdeps -O "$1") | sed -n 's/^shlibs:Depends=//p'
}

built_using() {
  local package
  for package in $linked_in; do
    dpkg-query -W -f '${source:Package} (= ${source:Version}), ' "$package"
  done | sed 's/, $//'
}

control_file() {  # folder of the package
  cat <<END
Package: reprise
Version: $version-1
Architecture: $(dpkg --print-architecture)
Maintainer: $MAINTAINER
Section: utils
Priority: optional
Installed-Size: $(du -k -s --apparent-size "$1/usr" | cut -f1)
Depends: $(needed_libraries "$1/usr/bin/reprise"), libcurl4 (>= 7.87) | libcurl3-gnutls (>= 7.87)
Recommends: ca-certificates
Suggests: g++ (>= 4:12), cmake (>= 3.25), libyaml-dev, libre2-dev, libfmt-dev, libsqlite3-dev, libssl-dev
Built-Using: $(built_using)
Description: runs unreliable work until it is done, and explains every retry
 A command and a C++ library. Commands, HTTP requests and flows of steps in a
 YAML file are retried by policies; every attempt and every decision is
 recorded, so that runs survive crashes and every retry can be explained.
 .
 The C++ library and its headers are in this package, too. Reprise::reprise
 needs a compiler only; Reprise::text and Reprise::engine need the development
 packages that are suggested.
END
}

make_deb() {
  local root=$stage/deb
  local doc=$root/usr/share/doc/reprise
  install_into "$root/usr"
  mkdir -p "$root/DEBIAN" "$root/usr/share/lintian/overrides"
  gzip -9n "$root"/usr/share/man/man1/*.1 "$doc/third-party-notices"
  gzip -9nc "$source/CHANGELOG.md" >"$doc/changelog.gz"
  printf 'reprise (%s-1) stable; urgency=medium\n\n  * Release %s. What is new stands in changelog.gz.\n\n -- %s  %s\n' \
    "$version" "$version" "$MAINTAINER" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
  install -m 644 "$source/contrib/debian/copyright" "$doc/copyright"
  install -m 644 "$source/contrib/debian/lintian-overrides" "$root/usr/share/lintian/overrides/reprise"
  control_file "$root" >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$destination/reprise_$version-1_$(dpkg --print-architecture).deb" >/dev/null
}

make_tarball
if command -v dpkg-deb dpkg-shlibdeps >/dev/null; then make_deb; fi
(cd "$destination" && sha256sum reprise[-_]* >SHA256SUMS && cat SHA256SUMS)
