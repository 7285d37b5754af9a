#!/bin/sh
# Installs what drives the browser beside the build and tests pages with it: tests/browser/run.sh REPRISE WORK_FOLDER [--picture FILE]
set -eu
here=$(dirname "$0")
work=$2
mkdir -p "$work"
cp "$here/package.json" "$here/package-lock.json" "$work/"
npm ci --prefix "$work" --no-audit --no-fund --loglevel=error
exec node "$here/pages_test.mjs" "$@"
