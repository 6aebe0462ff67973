#!/bin/sh
# build.sh: bindings/webgpu/dist, the package's JavaScript and its types, where something is newer than they are.
# 77: something that it is made of is not there.
cd "$(dirname "$0")" || exit 1
../npm/build.sh || exit $?
# Tests that run side by side ask for it, and one builds.
exec 9<tsconfig.json && flock 9
[ -e dist/index.js ] && [ -z "$(find src tsconfig.json ../npm/dist/index.d.ts -newer dist/index.js)" ] && exit 0
rm -rf dist dist.new
../../web/node_modules/.bin/tsc --outDir dist.new && touch dist.new/index.js && mv dist.new dist
