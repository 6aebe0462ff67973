#!/bin/sh
# install.sh BUILD ROOT CMAKE CXX CC: installs elsewhere, then uses it from C and C++, through CMake and pkg-config, shared
# and static.
# shellcheck disable=SC2046  # flags are words
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
libdir=$(pkg-config --variable=libdir posenc)
shared=$(find "$libdir" -name 'libposenc.so')
with_library() { env LD_LIBRARY_PATH="$libdir" "$@"; }

# Plain pkg-config links C and C++, whatever library there is; --static what is not there twice.
run 'pkg-config, C: build' "$cc" "$root/examples/rotate.c" -o "$work/rotate" $(pkg-config --cflags --libs posenc)
run 'pkg-config, C: run' with_library "$work/rotate"
expect 'position 0: '
run 'pkg-config, C++: build' "$cxx" -std=c++23 "$root/examples/find_package/main.cc" -o "$work/main" \
  $(pkg-config --cflags --libs posenc)
run 'pkg-config, C++: run' with_library "$work/main"
expect 'RoPE, head_dim 128: 64 pairs'
run 'pkg-config, parts: build' "$cxx" -std=c++23 "$root/examples/find_package/more.cc" -o "$work/uses_more" \
  $(pkg-config --cflags --libs posenc-claims posenc-bench)
run 'pkg-config, parts: run' with_library "$work/uses_more"
expect '^1a agrees'
if [ -e "$libdir/libposenc.a" ]; then
  run 'pkg-config, static: build' "$cc" "$root/examples/rotate.c" -o "$work/rotate_static" \
    $(pkg-config --static --cflags --libs posenc | sed 's/-lposenc/-l:libposenc.a/')
  run 'pkg-config, static: run' "$work/rotate_static"
  expect 'position 0: '
fi

# find_package from C alone, and the static library by its component.
consumer() {  # $1: name, $2: language, $3: component, $4: source
  mkdir "$work/$1"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' "project(uses LANGUAGES $2)" "find_package(posenc 0.1 REQUIRED $3)" \
    "add_executable(uses $4)" 'target_link_libraries(uses PRIVATE posenc::posenc)' >"$work/$1/CMakeLists.txt"
  run "find_package, $1: configure" "$cmake" -G Ninja -S "$work/$1" -B "$work/$1/build" -D CMAKE_PREFIX_PATH="$prefix" \
    -D CMAKE_CXX_COMPILER="$cxx" -D CMAKE_C_COMPILER="$cc" -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
  run "find_package, $1: build" "$cmake" --build "$work/$1/build"
  run "find_package, $1: run" "$work/$1/build/uses"
}
if [ -n "$shared" ]; then
  consumer c C '' "$root/examples/rotate.c"
  expect 'position 0: '
  # Of the shared library others see c.h and the public headers, and nothing of what these are made of.
  nm -D --defined-only -C "$shared" | sed 's/^[0-9a-f]* //' | grep -vE '^[A-Za-z] (posenc_[a-z0-9_]+|POSENC_[0-9.]+|(.* )?posenc::[^ ]*.*)(@@POSENC_[0-9.]+)?$' >"$work/log" &&
    { echo 'libposenc.so has symbols of others:'; cat "$work/log"; exit 1; }
  # fields.h calls one function of detail.
  nm -D --defined-only -C "$shared" | grep -E 'posenc::detail|nlohmann|hwy::|N_[A-Z]' | grep -v ' posenc::detail::split(' >"$work/log" &&
    { echo 'libposenc.so shows what is inside:'; cat "$work/log"; exit 1; }
  [ -L "$shared" ] || { echo "$shared must lead to its version"; exit 1; }
fi
if [ -e "$libdir/libposenc.a" ]; then
  consumer static CXX 'COMPONENTS static' "$root/examples/find_package/main.cc"
  expect 'RoPE, head_dim 128: 64 pairs'
  ! ldd "$work/static/build/uses" | grep -q libposenc || { echo 'static: libposenc.so is linked'; exit 1; }
fi

if [ -x "$build/posenc" ]; then
  run 'installed command' "$prefix/bin/posenc" --version
  expect "$(pkg-config --modversion posenc)"
  for page in man/man1/posenc.1 man/man1/posenc-plot-heatmap.1 bash-completion/completions/posenc zsh/site-functions/_posenc \
    fish/vendor_completions.d/posenc.fish; do
    [ -s "$prefix/share/$page" ] || { echo "share/$page is not installed"; exit 1; }
  done
fi
documents=$(dirname "$(find "$prefix" -name README.md -path '*doc/posenc/README.md')")
grep -oE '\]\([^)# ]+' "$documents/README.md" | cut -c3- | grep -v '^http' | while read -r link; do
  [ -e "$documents/$link" ] || { echo "the installed README links to $link, which is not there"; exit 1; }
done
find "$prefix" -name LICENSE | grep -q . || { echo 'LICENSE is not installed'; exit 1; }
