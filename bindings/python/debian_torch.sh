#!/bin/sh
# debian_torch.sh BIN DIST: the tests of posenc.torch with the PyTorch that Debian has (1.13 in bookworm, which lacks operators),
# where it is installed. BIN is the environment whose pip fetches what else they take.
set -eu
bin=$1 dist=$2 beside=build/python-debian
/usr/bin/python3 -c 'import torch' 2>/dev/null || { echo "skipped: Debian's PyTorch is not installed (python3-torch)"; exit 0; }
"$bin/python" -m pip install -q --upgrade --target "$beside" "$dist"/posenc-*-cp310-abi3-*.whl pytest
PYTHONPATH=$beside exec /usr/bin/python3 -m pytest -p no:cacheprovider bindings/python/tests/test_torch.py
