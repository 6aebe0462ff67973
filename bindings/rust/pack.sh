#!/bin/sh
# pack.sh DIST: the crate as cargo publishes it, with the WebAssembly that git does not have, in the
# folder DIST.
set -eu
rust=$(cd "$(dirname "$0")" && pwd)
dist=$(mkdir -p "$1" && cd "$1" && pwd)
"$rust/build.sh"
cd "$rust"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$rust/../../build/rust}"
cargo package --quiet --locked --allow-dirty --no-verify
rm -f "$dist"/posenc-*.crate
crate=$(ls "$CARGO_TARGET_DIR"/package/posenc-*.crate)
for inside in wasm/posenc.wasm wasm/posenc-models.wasm LICENSE README.md; do
  tar tf "$crate" | grep -q "/$inside\$" || { echo "the crate is without $inside"; exit 1; }
done
cp "$crate" "$dist"
ls -s --block-size=1K "$dist/$(basename "$crate")"
