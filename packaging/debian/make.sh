#!/bin/sh
# make.sh DIST: builds the packages of Debian into DIST, of the files that git knows, and runs lintian on them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
dist=$(mkdir -p "$1" && cd "$1" && pwd)
"$root"/cmake/need.sh "to build Debian packages" dpkg-buildpackage:dpkg-dev dh:debhelper lintian:lintian
version=$(sed -n 's/^project(posenc VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
build=$root/build/deb
rm -rf "$build"
mkdir -p "$build/posenc-$version"
git -C "$root" ls-files -z | (cd "$root" && tar --null -T - -c) | tar -x -C "$build/posenc-$version"
cd "$build/posenc-$version"
cp -r packaging/debian debian
cat >debian/changelog <<EOF
posenc ($version) unstable; urgency=medium

  * Release $version: see CHANGELOG.md.

 -- posenc developers <posenc@example.org>  $(git -C "$root" log -1 --format=%cD)
EOF
dpkg-buildpackage --no-sign --build=binary >"$build/log" 2>&1 || { tail -40 "$build/log"; exit 1; }
lintian --fail-on error ../*.changes
mv ../*.deb "$dist"
ls -s --block-size=1K "$dist"/*.deb
