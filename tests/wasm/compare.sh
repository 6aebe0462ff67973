#!/bin/sh
# compare.sh FOLDER NATIVE: runs compare.mjs, where it can be run, on the folder's posenc.wasm and
# posenc-models.wasm. 77: skipped, and why.
skip() { echo "skipped: $1"; exit 77; }
here=$(dirname "$0")
command -v node >/dev/null 2>&1 || skip "there is no node here to run the module"
[ -e "$1/posenc.wasm" ] && [ -e "$1/posenc-models.wasm" ] || skip "$1/posenc.wasm is not built; make wasm builds it"
node -e 'process.exit(process.features.typescript ? 0 : 1)' || [ -d "$here/../../web/node_modules/typescript" ] ||
  skip "node $(node --version) needs the TypeScript of web/ to read npm/src; make site fetches it"
exec node "$here/compare.mjs" "$1/posenc.wasm" "$1/posenc-models.wasm" "$2"
