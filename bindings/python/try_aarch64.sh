#!/bin/sh
# try_aarch64.sh WHEEL DIR [PYTEST ARGUMENT...]: installs a manylinux wheel for aarch64 beside Debian 13's Python for it, unpacked in DIR,
# and runs the package's tests by qemu-user: the vectors are NEON's. SLOW=1: all tests, else those that take seconds there.
set -eu
wheel=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
root=$dir/root
shift 2
"$here/../../cmake/need.sh" "to run programs for aarch64" qemu-aarch64-static:qemu-user-static python3:python3 pip3:python3-pip
fail() { cat "$dir/log"; echo "$1" >&2; exit 1; }
if [ ! -e "$dir/done" ]; then
  mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/apt/parts" "$root/usr/lib" "$root/usr/bin" "$dir/wheels"
  : >"$dir/apt/status"
  uri=$(sed -n -e 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources | head -n 1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri trixie main" >"$dir/apt/sources.list"
  get() {
    apt-get -q -y --no-install-recommends -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts="$dir/apt/parts" \
      -o Dir::State::lists="$dir/apt/lists" -o Dir::Cache="$dir/apt/cache" -o Dir::State::status="$dir/apt/status" \
      -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root "$@" >"$dir/log" 2>&1 || fail "Debian's mirror must have trixie for arm64"
  }
  get update
  get install --download-only python3 libstdc++6
  for package in "$dir"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  for folder in bin lib lib64; do [ -e "$root/$folder" ] || ln -s "usr/$folder" "$root/$folder"; done
  pip3 download -q --only-binary :all: --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
    --python-version 3.13 -d "$dir/wheels" numpy ml_dtypes pytest >"$dir/log" 2>&1 || fail "PyPI must have numpy and pytest for aarch64"
  touch "$dir/done"
fi
rm -rf "$dir/site"
mkdir -p "$dir/site"
for each in "$dir"/wheels/*.whl "$wheel"; do python3 -m zipfile -e "$each" "$dir/site"; done
# The package's tests run Python again, which the kernel would not hand to qemu.
python=$dir/python
printf '#!/bin/sh\nexec qemu-aarch64-static -L "%s" -0 "%s" "%s" "$@"\n' "$root" "$python" "$root/usr/bin/python3.13" >"$python"
chmod +x "$python"
quick='not notebook and not is_quick'
[ -n "${SLOW:-}" ] || quick='not (docs or live or census or fork or notebook or is_quick)'
cd "$here/../.."
# numpy's OpenBLAS takes qemu's processor for one with SVE, and multiplies wrongly there.
export OPENBLAS_CORETYPE=ARMV8
PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONPATH=$dir/site PYTHONHOME=$root/usr exec "$python" -m pytest -p no:cacheprovider -q -k "$quick" "$@"
