#!/bin/sh
# node.sh COMMAND...: runs COMMAND with a Node that Vite can use (20.19 or newer). Where the one here is older, as
# Debian 12's is, npm's package `node` brings one into build/node/, once.
root=$(cd "$(dirname "$0")/.." && pwd)
new_enough() {
  command -v node >/dev/null 2>&1 && node -e '
    const [major, minor] = process.versions.node.split(".").map(Number)
    process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'
}
if ! new_enough; then
  brought=$root/build/node
  PATH=$brought/node_modules/node/bin:$brought/node_modules/.bin:$PATH
  export PATH
  if ! new_enough; then
    echo "fetching Node 22 (npm's package node) into build/node" >&2
    mkdir -p "$brought"
    npm install --prefix "$brought" --no-save --no-package-lock --no-fund --no-audit --loglevel=error node@22 >&2 || exit 1
  fi
fi
exec "$@"
