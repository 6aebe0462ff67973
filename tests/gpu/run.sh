#!/bin/bash
# run.sh POSENC PYTHON TOOLKIT: kernels that posenc emits, as they are run, or at least compiled, on a machine without a GPU. A row a plan:
# ok, what it says where it is wrong, or - where the target refuses it. Exits 1 where something is wrong, or where bits differ.
set -u
posenc=$(realpath "$1") python=$(realpath -s "$2") toolkit=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
faults=0

plans=(
  "llama-3.1-8b"
  "qwen2.5-7b-yarn4 --at 128k"
  "qwen2.5-vl-7b --stack text"
  "gemma-3-4b --layer 5"
  "deepseek-v3"
  "bloom-176b"
  "t5-small --stack decoder"
  "--scheme rope --head_dim 64 --pairing interleaved --partial_rotary_factor 0.5"
  "--scheme alibi --heads 12"
)

run_c() { cc -std=c99 -O2 -Wall -Wextra -Werror -D POSENC_TEST k.c -lm -o k_c && ./k_c; }
run_host() { c++ -O2 -ffp-contract=off -Wall -Wextra -Werror -Wno-unused-function -D POSENC_TEST -x c++ k.cu -o k_host && ./k_host; }
run_nvcc() { "$toolkit/bin/nvcc" -arch=sm_90 -cubin -D POSENC_TEST k.cu -o k.cubin; }
run_hip() { clang++-22 -x hip --offload-arch=gfx942 --cuda-device-only -nogpuinc -nogpulib -O2 -Wall -Werror -S k.cu -o k.s; }
run_opencl() { cc -D CL_TARGET_OPENCL_VERSION=120 -Wall -Wextra -Werror -x c k.cl -x none -lOpenCL -lm -o k_cl && ./k_cl; }
run_triton() { TRITON_INTERPRET=1 "$python" k_triton.py; }
run_pallas() { JAX_PLATFORMS=cpu "$python" k_pallas.py; }
run_flex() { "$python" k_flex.py; }

# way TARGET FILE NAME: emits the plan and runs it; what it prints must be what the C printed.
way() {
  if ! "$posenc" emit $plan --to "$1" --out "$2" 2>refused; then
    printf '%8s' -
    return
  fi
  if ! "run_$3" >said 2>&1 || { [ -s said ] && [ -s first ] && ! diff -q first said >/dev/null; }; then
    faults=$((faults + 1))
    { echo "$3, posenc emit $plan --to $1:"; tail -n 20 said; } >>wrong
    printf '%8s' WRONG
    return
  fi
  [ -s first ] || cp said first
  printf '%8s' ok
}

printf '%-34s%8s%8s%8s%8s%8s%8s%8s%8s\n' 'posenc emit' C host nvcc HIP OpenCL Triton Pallas flex
for plan in "${plans[@]}"; do
  : >first
  printf '%-34s' "${plan:0:32}"
  way c k.c c
  way cuda k.cu host
  way cuda k.cu nvcc
  way cuda k.cu hip
  way opencl k.cl opencl
  way triton k_triton.py triton
  way pallas k_pallas.py pallas
  way score_mod k_flex.py flex
  echo
done
[ $faults = 0 ] && exit 0
cat wrong
exit 1
