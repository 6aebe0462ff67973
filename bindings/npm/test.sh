#!/bin/sh
# test.sh TGZ [NODE...]: installs the package in an empty folder, and tests it there in each NODE (one of PATH when none is named), as
# types, and in Chromium where there is one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
package=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
web=$here/../../web/node_modules
shift
[ $# -gt 0 ] || set -- node
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$here"/test/* "$folder"
ln -s "$here/../../tests/data" "$folder/data"
cd "$folder"
npm install --silent --offline --no-save --no-fund --no-audit "$package"
log=$folder/log
quietly() { "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }; }
for node; do
  quietly "$node" --test in_node.mjs
  echo "ok    Node $("$node" --version): $(sed -n 's/^. pass //p' "$log") tests"
done
quietly "$web/.bin/tsc" --project . --typeRoots "$web/@types"
quietly "$web/.bin/tsc" --project tsconfig.bundler.json
echo "ok    types, in Node's resolution and a bundler's"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "skip  in a browser: there is no chromium"; exit 0; }
node in_chromium.mjs "$web"
