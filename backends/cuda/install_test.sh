#!/bin/bash
# install_test.sh BUILD: a build with posenc_cuda, installed and found by a project that has no CUDA: it builds, and where there is no
# device it says so.
set -eu
build=$1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
run() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
run cmake --install "$build" --prefix "$work/there"
mkdir "$work/uses"
cat >"$work/uses/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(uses LANGUAGES CXX)
find_package(posenc 0.1 REQUIRED COMPONENTS cuda)
add_executable(uses main.cc)
target_link_libraries(uses PRIVATE posenc::cuda)
END
cat >"$work/uses/main.cc" <<'END'
#include <posenc/cuda.h>
#include <posenc/posenc.h>

#include <cstdio>

int main() {
  const auto plan = posenc::compile(posenc::Rope{}, {.heads = 1, .kv_heads = 1, .head_dim = 64});
  const auto rotations = posenc::cuda::Rotations::make(std::span(&*plan, 1));
  std::puts(rotations ? "a device" : rotations.error().message().c_str());
}
END
run cmake -S "$work/uses" -B "$work/uses/build" -D CMAKE_PREFIX_PATH="$work/there" -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
run cmake --build "$work/uses/build"
said=$("$work/uses/build/uses")
case $said in
  'a device' | 'cuda: there must be a CUDA device, got '*) echo "find_package(posenc COMPONENTS cuda): $said" ;;
  *) echo "install_test.sh: $said"; exit 1 ;;
esac
hidden=$(nm -DC --defined-only "$(find "$work/there" -name libposenc_cuda.so)" | grep -c 'posenc::cuda::RotateCall' || true)
[ "$hidden" = 0 ] || { echo "install_test.sh: libposenc_cuda.so shows what is inside"; exit 1; }
