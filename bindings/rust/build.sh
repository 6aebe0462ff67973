#!/bin/sh
# build.sh: copies the WebAssembly modules and the licence to where the crate includes them. 77:
# they are not built.
cd "$(dirname "$0")" || exit 1
for module in ../../build/wasm/posenc.wasm ../../build/wasm/posenc-models.wasm; do
  [ -f "$module" ] || { echo "skipped: build/wasm/$(basename "$module") is not built; make wasm builds it"; exit 77; }
done
mkdir -p wasm
# What is the same stays, so that nothing is compiled again. Tests run side by side: a copy appears
# at once.
put() { cmp -s "$1" "$2" || { cp "$1" "$2.$$" && chmod 644 "$2.$$" && mv "$2.$$" "$2"; }; }
put ../../build/wasm/posenc.wasm wasm/posenc.wasm &&
  put ../../build/wasm/posenc-models.wasm wasm/posenc-models.wasm && put ../../LICENSE LICENSE
