#!/bin/sh
# build.sh: copies the WebAssembly modules to where the package embeds them. 77: they are not built.
cd "$(dirname "$0")" || exit 1
for module in ../../build/wasm/posenc.wasm ../../build/wasm/posenc-models.wasm; do
  [ -f "$module" ] || { echo "skipped: build/wasm/$(basename "$module") is not built; make wasm builds it"; exit 77; }
done
# What is the same stays, so that nothing is compiled again. Tests run side by side: a copy appears
# at once.
for module in posenc.wasm posenc-models.wasm; do
  cmp -s "../../build/wasm/$module" "$module" || {
    cp "../../build/wasm/$module" "$module.$$" && chmod 644 "$module.$$" && mv "$module.$$" "$module" || exit 1
  }
done
