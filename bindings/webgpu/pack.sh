#!/bin/sh
# pack.sh DIST: the package as npm publishes it, in the folder DIST.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dist=$(mkdir -p "$1" && cd "$1" && pwd)
"$here/build.sh"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cp -r "$here/package.json" "$here/README.md" "$here/../../LICENSE" "$here/dist" "$made"
chmod 644 "$made"/dist/*
rm -f "$dist"/posenc-webgpu-*.tgz
cd "$made"
ls -s --block-size=1K "$dist/$(npm pack --silent --pack-destination "$dist")"
