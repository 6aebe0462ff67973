#!/bin/sh
# hip.sh: compiles the kernels' text as HIP for gfx942 by clang, without ROCm, and shows the registers of each. Exits 1 where it does not
# compile, or where a kernel keeps vectors in memory that are not registers.
set -eu
cd "$(dirname "$0")/../.."
made=$(mktemp) && trap 'rm -f "$made"' EXIT
clang++-22 -x hip --offload-arch=gfx942 --cuda-device-only -nogpuinc -nogpulib -O2 -std=c++20 -ffp-contract=off -Wall -Werror \
  -I. -Iinclude -S backends/cuda/amd.hip -o "$made"
awk '
  $1 == ".name:" { name = $2 }
  $1 == ".vgpr_count:" { registers = $2 }
  $1 == ".vgpr_spill_count:" {
    match(name, /[0-9](by_words|by_elements|moved|sum|bias)I/); kind = substr(name, RSTART + 1, RLENGTH - 2)
    match(name, /(Double|Single|Half|Bfloat16)/); type = substr(name, RSTART, RLENGTH)
    other = kind == "by_elements" ? ", special" : ", neighbours"; gsub("_", " ", kind)
    printf "gfx942  %-9s %-22s %4d registers%s\n", type, kind (name ~ /Lb1E/ ? other : ""), registers, $2 ? ", " $2 " spilled" : ""
    count++; spilled += $2 > 0
  }
  END { if (count != 32) print "hip.sh: " count " kernels, not 32"; exit count != 32 || spilled > 0 }' "$made"
