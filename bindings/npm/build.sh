#!/bin/sh
# build.sh: bindings/npm/dist, the package's JavaScript, its types and the WebAssembly modules, where something is newer than they are.
# 77: something that it is made of is not there.
cd "$(dirname "$0")" || exit 1
skip() { echo "skipped: $1"; exit 77; }
modules="../../build/wasm/posenc.wasm ../../build/wasm/posenc-models.wasm"
# shellcheck disable=SC2086  # a list of words
ls $modules >/dev/null 2>&1 || skip "build/wasm/posenc.wasm is not built; make wasm builds it"
[ -d ../../web/node_modules/typescript ] || skip "bindings/npm/dist takes the TypeScript of web/; make site fetches it"
# Tests that run side by side ask for it, and one builds.
exec 9<tsconfig.json && flock 9
# shellcheck disable=SC2086
[ -e dist/index.js ] && [ -z "$(find src tsconfig.json $modules -newer dist/index.js)" ] && exit 0
rm -rf dist dist.new
# shellcheck disable=SC2086
../../web/node_modules/.bin/tsc --outDir dist.new && cp $modules src/common.cjs src/common.d.cts dist.new && touch dist.new/index.js && mv dist.new dist
