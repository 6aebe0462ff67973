#!/bin/sh
# make.sh FOLDER: a repository for Hugging Face's `kernels` in FOLDER: the same text for each kind of device, posenc.triton's kernel within.
# What `kernels` reads: build/VARIANT/metadata.json and build/VARIANT/__init__.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
version=1
rm -rf "$out"
for device in cuda rocm xpu cpu; do
  variant=$out/build/torch-$device
  mkdir -p "$variant"
  cp "$here"/posenc_rotary/*.py "$variant"
  cp "$here/../../bindings/python/posenc/triton_kernels.py" "$variant/kernel.py"
  printf '{"id": "posenc_rotary_%s_%s", "name": "posenc-rotary", "version": %s, "license": "Apache-2.0", "python-depends": [], "backend": {"type": "%s"}}\n' \
    "$device" "$version" "$version" "$device" >"$variant/metadata.json"
done
cp "$here/README.md" "$out/README.md"
