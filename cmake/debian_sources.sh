#!/bin/sh
# Usage: debian_sources.sh DIR: unpacks what cmake/dependencies.cmake fetches from Debian's source packages into DIR/NAME. Two of them are
# repacked by Debian, so that they are named as folders, -D FETCHCONTENT_SOURCE_DIR_NAME=DIR/NAME, and not as archives.
set -eu
mkdir -p "$1"
dir=$(cd "$1" && pwd)
[ -e "$dir/done" ] && exit 0
command -v apt-get >/dev/null || { echo "apt-get source must be there; elsewhere the build fetches the archives itself" >&2; exit 2; }

# A list of packages of its own: the machine's may have no sources in it, and stays as it is.
apt=$dir/apt
mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache"
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
for list in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
  [ -e "$list" ] || continue
  sed -e 's/^Types: deb$/Types: deb-src/' -e 's/^deb /deb-src /' "$list" >"$apt/parts/${list##*/}"
done
get() {
  apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/parts" -o Dir::State::lists="$apt/lists" \
    -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root "$@" >>"$dir/log" 2>&1 ||
    { cat "$dir/log"; echo "Debian $codename must give the sources of $*: is its mirror reached?"; exit 2; }
}
get update
cd "$apt/cache"
for pair in hwy:highway nlohmann_json:nlohmann-json3 CLI11:cli11 fmt:fmtlib utf8proc:utf8proc GTest:googletest; do
  name=${pair%%:*} package=${pair#*:}
  get source --download-only "$package"
  mkdir -p "$dir/$name"
  tar -xf "$(ls "$package"_*.orig.tar.*)" -C "$dir/$name" --strip-components 1
done
rm -rf "$apt"
touch "$dir/done"
