#!/bin/sh
# test.sh POSENC_TGZ WEBGPU_TGZ: installs both packages in an empty folder, and tests them there: in Node without WebGPU; in Node with the
# npm package webgpu (Dawn), where WEBGPU_PACKAGE is the folder that holds it; and in Chromium, where there is one, on SwiftShader.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
web=$here/../../web/node_modules
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$here"/test/* "$folder"
ln -s "$here/../../tests/data" "$folder/data"
for package; do set -- "$@" "$(cd "$(dirname "$package")" && pwd)/$(basename "$package")"; shift; done
cd "$folder"
npm install --silent --offline --no-save --no-fund --no-audit "$@"
node in_node.mjs
[ -z "${WEBGPU_PACKAGE:-}" ] || node in_node.mjs "$WEBGPU_PACKAGE"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || { echo "skip  in a browser: there is no chromium"; exit 0; }
node in_chromium.mjs "$web"
