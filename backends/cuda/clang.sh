#!/bin/bash
# clang.sh TOOLKIT OUT: a second compiler's opinion of the kernels' text. clang 22, where it is installed, compiles device.cu for sm_90 from
# the same headers of CUDA, and its code is held to what inspect.py asks of nvcc's but for spills, of which it has some. C++23, as the rest of posenc: nvcc 13.0 has C++20.
set -eu
toolkit=$(realpath "$1") out=$2 here=$(dirname "$0")
command -v clang++-22 >/dev/null || { echo 'clang.sh: clang-22 is not installed, nvcc stands alone'; exit 0; }
mkdir -p "$out"
: >"$out/curand_mtgp32_kernel.h"  # clang's wrapper includes it, and the wheels of nvcc have none
clang++-22 -x cuda --cuda-device-only --cuda-path="$toolkit" --cuda-gpu-arch=sm_90 -std=c++23 -O3 -ffp-contract=off \
  -Wall -Wextra -Wno-unknown-cuda-version -Wno-missing-field-initializers -isystem "$out" -I"$here/../.." -I"$here" -I"$here/../../include" \
  "$here/device.cu" -o "$out/device.cubin"
echo 'clang 22:'
"$here/inspect.py" "$toolkit/bin/cuobjdump" "$out/device.cubin" spills
