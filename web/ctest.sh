#!/bin/sh
# ctest.sh format|test|package|browser [PART/PARTS]: runs it where it can be run. 77: skipped, and why; with POSENC_NEED_PLAYGROUND 1 instead.
skip() { echo "skipped: $1"; exit "${POSENC_NEED_PLAYGROUND:-77}"; }
web=$(cd "$(dirname "$0")" && pwd)
cd "$web" || exit 1
[ -t 1 ] || export NO_COLOR=1
command -v node >/dev/null 2>&1 || skip "there is no node here"
[ -d node_modules ] || skip "npm ci has not been run in web/; make site runs it"
# The tests of a build must not fetch: an old Node is reason enough to skip.
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' \
  || [ -d ../build/node/node_modules ] || skip "node $(node --version) is older than 20.19; make site brings one"
[ "$1" = format ] || ../bindings/webgpu/build.sh || exit "${POSENC_NEED_PLAYGROUND:-$?}"
case $1 in
  format) exec ./node.sh npm --silent run prettier -- --check ;;
  test) ./node.sh npm --silent run check && exec ./node.sh npm --silent test ;;
  package)
    made=$(mktemp -d) && trap 'rm -rf "$made"' EXIT
    ../bindings/npm/pack.sh "$made" && ./node.sh ../bindings/npm/test.sh "$made"/posenc-*.tgz \
      && ../bindings/webgpu/pack.sh "$made" && ./node.sh ../bindings/webgpu/test.sh "$made"/posenc-[0-9]*.tgz "$made"/posenc-webgpu-*.tgz ;;
  # The sweeps take minutes: they are for `make web-test`, and for machines that must not skip.
  browser) exec ./node.sh npm --silent run browser -- --untimed $([ -n "${POSENC_NEED_PLAYGROUND:-}" ] || echo --brief) --part "${2:-1/1}" ;;
  *) echo "usage: ctest.sh format|test|package|browser [PART/PARTS]" >&2; exit 2 ;;
esac
