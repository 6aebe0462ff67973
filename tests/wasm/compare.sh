#!/bin/sh
# compare.sh FOLDER NATIVE: runs compare.mjs, where it can be run, on the folder's posenc.wasm and
# posenc-models.wasm. 77: skipped, and why.
command -v node >/dev/null 2>&1 || { echo "skipped: there is no node here to run the module"; exit 77; }
[ -e "$1/posenc.wasm" ] && [ -e "$1/posenc-models.wasm" ] ||
  { echo "skipped: $1/posenc.wasm is not built; make wasm builds it"; exit 77; }
exec node "$(dirname "$0")/compare.mjs" "$1/posenc.wasm" "$1/posenc-models.wasm" "$2"
