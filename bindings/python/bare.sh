#!/bin/sh
# bare.sh DIR: makes a Debian in DIR/root that has g++, git and Python alone, and there installs posenc from its sdist by pip (which
# isolates the build), then by uv and uvx, and builds a program by CMake's FetchContent (PARTS="pip uv cmake"). A root that is there is used again.
set -eu
dir=$(mkdir -p "$1" && cd "$1" && pwd) here=$(cd "$(dirname "$0")/../.." && pwd)
root=$dir/root
[ "$(id -u)" = 0 ] || { echo "bare.sh must run as root, which debootstrap and chroot take: sudo make bare" >&2; exit 2; }
say() { echo "bare: $*"; }
if [ ! -e "$root/made" ]; then
  say "a Debian in $root"
  debootstrap --variant=minbase --include=ca-certificates,g++,git,python3,python3-dev,python3-venv bookworm "$root" >"$dir/debootstrap.log" 2>&1 ||
    { tail -5 "$dir/debootstrap.log"; exit 1; }
  touch "$root/made"
fi
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || { mkdir -p "$root${file%/*}" && cp -L "$file" "$root$file"; }
done
rm -rf "$root/try"
mkdir -p "$root/try"
cp -r "$here/build/sources" "$root/try/sources"
git clone -q "$here" "$root/try/clone"
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q build
(cd "$here" && "$dir/venv/bin/python" -m build --sdist -o "$root/try" . >"$dir/sdist.log" 2>&1) || { tail -5 "$dir/sdist.log"; exit 1; }

mkdir -p "$root/proc" "$root/dev"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount "$root/proc" "$root/dev"' EXIT
cp "$(dirname "$0")/bare_inside.sh" "$root/try/inside.sh"
chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PARTS="${PARTS:-pip uv cmake}" sh /try/inside.sh
