#!/bin/sh
# pack.sh DIST: the package as npm publishes it, in the folder DIST.
set -eu
npm=$(cd "$(dirname "$0")" && pwd)
dist=$(mkdir -p "$1" && cd "$1" && pwd)
"$npm/build.sh"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cp -r "$npm/package.json" "$npm/README.md" "$npm/../../LICENSE" "$npm/dist" "$made"
chmod 644 "$made"/dist/* && chmod 755 "$made"/dist/bin.js
rm -f "$dist"/posenc-*.tgz
cd "$made"
ls -s --block-size=1K "$dist/$(npm pack --silent --pack-destination "$dist")"
