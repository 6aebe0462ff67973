#!/bin/sh
# compare.sh FOLDER NATIVE: runs compare.mjs, where it can be run, on the folder's posenc.wasm and
# posenc-models.wasm. 77: skipped, and why.
skip() { echo "skipped: $1"; exit 77; }
here=$(dirname "$0")
command -v node >/dev/null 2>&1 || skip "there is no node here to run the module"
"$here/../../bindings/npm/build.sh" || exit $?
exec node "$here/compare.mjs" "$1/posenc.wasm" "$1/posenc-models.wasm" "$2"
