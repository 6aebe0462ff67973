#!/bin/sh
# pack.sh DIST: the module with what git does not have, the WebAssembly, as a zip in the folder
# DIST; unpacked, its tests pass.
set -eu
go=$(cd "$(dirname "$0")" && pwd)
dist=$(mkdir -p "$1" && cd "$1" && pwd)
version=$(sed -nE 's/^project\(posenc VERSION ([0-9.]+).*/\1/p' "$go/../../CMakeLists.txt")
"$go/build.sh"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/posenc-go-$version"
cp "$go"/*.go "$go"/*.wasm "$go/go.mod" "$go/go.sum" "$go/README.md" "$go/../../LICENSE" "$made/posenc-go-$version"
rm -f "$dist"/posenc-go-*.zip
cd "$made"
python3 -m zipfile -c "$dist/posenc-go-$version.zip" "posenc-go-$version"
cd "posenc-go-$version" && go test ./... >"$made/log" 2>&1 || { cat "$made/log"; exit 1; }
ls -s --block-size=1K "$dist/posenc-go-$version.zip"
