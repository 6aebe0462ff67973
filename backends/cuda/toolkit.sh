#!/bin/sh
# toolkit.sh FOLDER: NVIDIA's compiler from PyPI into FOLDER/nvidia/cu13, once: 110 MB fetched, 270 MB there.
set -e
[ -x "$1/nvidia/cu13/bin/nvcc" ] && exit 0
echo "fetching nvcc 13.0 from PyPI into $1" >&2
python3 -m pip install -q --no-deps --target "$1.new" nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
  nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 \
  nvidia-cuda-cuobjdump==13.2.* nvidia-cuda-nvdisasm==13.2.*
rm -rf "$1" && mv "$1.new" "$1"
