#!/bin/sh
# emulated.sh BIN BUILD: the package posenc_cuda without nvcc, its kernels in a loop on the host, from the folder of objects that
# bindings/python/wheel.sh left, into the environment whose programs are in BIN: the tests of posenc.torch and posenc.jax use it.
set -eu
bin=$1 build=$2
log=$build.cuda.log
{ cmake --build "$build" --target posenc_cuda_stub &&
  cmake --install "$build" --component posenc_cuda --prefix "$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')"
} >"$log" 2>&1 || { cat "$log"; exit 1; }
