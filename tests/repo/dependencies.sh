#!/bin/sh
# dependencies.sh BUILD ROOT CMAKE CXX: a project that adds posenc on a machine with none of Debian's libraries: what it fetches compiles,
# and its own `cmake --install` has nothing of posenc. The sources are those of `make sources`. 77: skipped.
set -eu
build=$1 root=$2 cmake=$3 cxx=$4
sources=$root/build/sources
[ -e "$sources/done" ] || { echo "skipped: the sources of what posenc is built of are not in $sources (make sources)"; exit 77; }
work=$build/without_debian
mkdir -p "$work"
fail() { echo "$1"; cat "$work/log"; exit 1; }

named=
for name in hwy nlohmann_json CLI11 fmt utf8proc; do
  named="$named -DFETCHCONTENT_SOURCE_DIR_$(echo "$name" | tr '[:lower:]' '[:upper:]')=$sources/$name"
done
cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
add_subdirectory(${POSENC} posenc)
add_executable(user user.cc)
target_link_libraries(user PRIVATE posenc::posenc)
install(TARGETS user)
END
echo 'int main() {}' >"$work/user.cc"
# shellcheck disable=SC2086  # flags are words
"$cmake" -G Ninja -S "$work" -B "$work/build" -D CMAKE_CXX_COMPILER="$cxx" -D POSENC="$root" -D POSENC_CLI=ON \
  -D FETCHCONTENT_FULLY_DISCONNECTED=ON $named >"$work/log" 2>&1 || fail "a project with the sources named must configure"
for name in hwy nlohmann_json CLI11 fmt utf8proc; do
  grep -q "posenc: $name is built from $sources/$name" "$work/log" || fail "$name must be built from $sources"
done
"$cmake" --build "$work/build" --target posenc_highway posenc_fmt posenc_utf8proc >"$work/log" 2>&1 ||
  fail "what is fetched must compile"
! grep -q 'warning:' "$work/log" || fail "what is fetched must compile without warnings"
! grep -q 'file(INSTALL' "$work/build/posenc/cmake_install.cmake" || fail "a parent must not install posenc's files"

# An archive that is not the one that was pinned is refused by name.
mkdir -p "$work/archives"
echo 'not an archive' >"$work/archives/json-3.11.2.tar.gz"
if "$cmake" -G Ninja -S "$root" -B "$work/refused" -D CMAKE_CXX_COMPILER="$cxx" -D POSENC_ARCHIVES="$work/archives" \
  -D FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER >"$work/log" 2>&1; then
  fail "an archive with another hash must be refused"
fi
grep -q 'd69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273' "$work/log" || fail "the refusal must say the hash"
echo "what is fetched compiles, and a parent installs nothing of posenc"
