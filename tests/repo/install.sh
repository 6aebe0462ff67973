#!/bin/sh
# install.sh BUILD ROOT CMAKE CXX CC: installs elsewhere, then uses it from C++ through CMake, and from C through pkg-config.
set -eu
build=$1 root=$2 cmake=$3 cxx=$4 cc=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/a/prefix

# run WHAT COMMAND...: shows what a step prints only when it fails.
run() {
  what=$1
  shift
  "$@" >"$work/log" 2>&1 || { echo "$what failed:"; cat "$work/log"; exit 1; }
}
expect() { grep -q "$1" "$work/log" || { echo "$what: expected '$1', got:"; cat "$work/log"; exit 1; }; }

run 'cmake --install' "$cmake" --install "$build" --prefix "$work/b"
mkdir "$work/a" && mv "$work/b" "$prefix"  # what is installed may be moved

run 'find_package: configure' "$cmake" -G Ninja -S "$root/examples/find_package" -B "$work/consumer" \
  -D CMAKE_PREFIX_PATH="$prefix" -D CMAKE_CXX_COMPILER="$cxx" -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
run 'find_package: build' "$cmake" --build "$work/consumer"
run 'find_package: run' "$work/consumer/uses_posenc"
expect 'RoPE, head_dim 128: 64 pairs'
run 'find_package: run' "$work/consumer/uses_more"
expect '^1a agrees'

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name posenc.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # flags are words
run 'pkg-config: build' "$cc" "$root/examples/rotate.c" -o "$work/rotate" \
  $(pkg-config --static --cflags --libs posenc)
run 'pkg-config: run' env LD_LIBRARY_PATH="$(pkg-config --variable=libdir posenc)" "$work/rotate"
expect 'position 0: '
# shellcheck disable=SC2046
run 'pkg-config: build' "$cxx" -std=c++23 "$root/examples/find_package/more.cc" -o "$work/uses_more" \
  $(pkg-config --static --cflags --libs posenc-claims posenc-bench)
run 'pkg-config: run' env LD_LIBRARY_PATH="$(pkg-config --variable=libdir posenc)" "$work/uses_more"
expect '^1a agrees'

if [ -x "$build/posenc" ]; then
  run 'installed command' "$prefix/bin/posenc" --version
  expect "$(pkg-config --modversion posenc)"
fi
find "$prefix" -name LICENSE | grep -q . || { echo 'LICENSE is not installed'; exit 1; }
