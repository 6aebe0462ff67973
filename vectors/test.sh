#!/usr/bin/env bash
# test.sh POSENC VENV: the vectors are as they are made, as their schemas say and within 2 MB; each package is built, and tested as who
# installs it has it. Languages that are not there are left out, and named.
set -euo pipefail
cd "$(dirname "$0")"
posenc=$1 venv=$2
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q mpmath check-jsonschema build hatchling pytest
"$venv/bin/python" -m make --check "$posenc"
for file in *.json; do
  case $file in package*.json) continue ;; esac
  "$venv/bin/check-jsonschema" -q --schemafile "schemas/${file%.json}.schema.json" "$file"
done
size=$(cat [a-z]*.json | wc -c)
[ "$size" -le 2000000 ] || { echo "vectors must have at most 2,000,000 bytes, got $size; shorten what book.py writes" >&2; exit 1; }
echo "schemas hold, $((size / 1000)) kB"

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$venv/bin/python" -m build --wheel --no-isolation --outdir "$made" . >/dev/null
"$venv/bin/pip" install -q --force-reinstall --no-deps "$made"/*.whl
"$venv/bin/python" -m pytest -q -p no:cacheprovider | tail -1
without=
if command -v node >/dev/null && command -v npm >/dev/null; then
  npm pack --silent --pack-destination "$made" >/dev/null
  tar -xzf "$made"/posenc-vectors-*.tgz -C "$made"
  node js/test.mjs "$made/package/js/index.mjs"
else without+=" node"; fi
if command -v cargo >/dev/null; then
  cargo test -q --target-dir target | grep -v '^$' | tail -1
  cargo package -q --allow-dirty --no-verify --target-dir target
  cargo build -q --example adapter --target-dir target
  "$posenc" conform -- target/debug/examples/adapter | sed -n 1p
else without+=" cargo"; fi
if command -v go >/dev/null; then go test ./...; else without+=" go"; fi
"$posenc" conform -- python3 adapters/adapter.py | sed -n 1p
[ -z "$without" ] || echo "not tested, as they are not here:$without"
