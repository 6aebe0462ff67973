#!/usr/bin/env bash
# release.sh DIST: makes and checks all that a release has, in DIST, with checksums and a list of what is inside; then tags the commit.
# TRY=1: without the tag, of a tree that may be dirty. STEPS="wheels deb": makes those anew and takes the rest as it is in DIST.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$1 logs=build/release-logs
version=$(sed -nE 's/^project\(posenc VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
refuse() { echo "release: $1; $2" >&2; exit 2; }

if [ -z "${TRY:-}" ]; then
  [ -z "$(git status --porcelain)" ] || refuse "what is released must be committed" "commit it, or TRY=1"
  grep -qE "^## \[$version\] - 20[0-9]{2}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
    refuse "CHANGELOG.md must give $version a date" "write the day, or TRY=1"
  ! git rev-parse -q --verify "v$version" >/dev/null ||
    [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ] || refuse "the tag v$version is elsewhere" "raise the version"
fi
tests/repo/versions.sh . >/dev/null || refuse "the version must be one everywhere" "tests/repo/versions.sh . tells where it is not"
mkdir -p "$dist" "$logs"

wanted() { [ -z "${STEPS:-}" ] || [[ " $STEPS " == *" $1 "* ]]; }
step() {  # NAME COMMAND...: says how long it took, and shows its output only if it fails
  local name=$1 began=$SECONDS
  shift
  wanted "$name" || { echo "$name: as it is in $dist"; return; }
  [ ! -t 1 ] || printf '%s …\r' "$name"
  "$@" >"$logs/$name.log" 2>&1 || { tail -40 "$logs/$name.log"; refuse "$name must pass" "the whole log is $logs/$name.log"; }
  echo "$name: $((SECONDS - began)) s"
}
other_language() {  # NAME TOOL MADE: a package that only who has its language's TOOL can make and test
  wanted "$1" || { step "$1"; return; }
  rm -f "$dist/$3"  # what another commit left is not this release's
  command -v "$2" >/dev/null || { echo "$1: skipped: there is no $2 here, so $3 is not in $dist"; return; }
  step "$1" make "$1"
  [ -f "$dist/$3" ] || echo "$1: $(grep -m 1 '^skipped: ' "$logs/$1.log"), so $3 is not in $dist"
}
venv=build/release-venv
tools() {
  [ -x $venv/bin/python ] || python3 -m venv $venv
  $venv/bin/pip install -q build twine 'cyclonedx-python-lib[json-validation]'
}
sources() {
  git archive --format=tar --prefix="posenc-$version/" HEAD | gzip -n9 >"$dist/posenc-$version-source.tar.gz"
  $venv/bin/python -m build --sdist --outdir "$dist" .
}
page() {
  make play
  cp build/posenc.html "$dist/posenc-$version.html"
  tar -C build --sort=name --owner=0 --group=0 --mtime=@0 --transform "s/^site/posenc-$version-playground/" -c site |
    gzip -n9 >"$dist/posenc-$version-playground.tar.gz"
}
sbom() {
  packaging/sbom.py "$dist/posenc-$version.cdx.json"
  $venv/bin/python - "$dist/posenc-$version.cdx.json" <<'PYTHON'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(wrong) if wrong else 0)
PYTHON
}
check() {
  local missing=0 wheel
  for made in posenc-"$version"{.tar.gz,-source.tar.gz,.html,-playground.tar.gz,.cdx.json,.tgz} \
    posenc_"$version"_'*'.deb libposenc-dev_"$version"_'*'.deb posenc-"$version"-cp310-abi3-'manylinux*_x86_64'.whl \
    posenc-"$version"-cp312-abi3-{manylinux_2_28_{x86_64,aarch64},musllinux_1_2_{x86_64,aarch64},win_amd64,macosx_11_0_{arm64,x86_64}}.whl; do
    # shellcheck disable=SC2086  # a pattern
    ls "$dist"/$made >/dev/null 2>&1 || { echo "$made is not in $dist"; missing=1; }
  done
  [ $missing = 0 ] || return 1
  $venv/bin/twine check --strict "$dist/posenc-$version.tar.gz" "$dist"/posenc-"$version"-*.whl
  for wheel in "$dist"/posenc-"$version"-*.whl; do
    python3 -m zipfile -l "$wheel" >"$logs/wheel.txt"  # whole: a reader that stops early breaks the pipe
    for inside in LICENSE highway.txt playground.txt; do
      grep -q "licenses/.*$inside" "$logs/wheel.txt" || { echo "$wheel has no $inside"; return 1; }
    done
  done
}

step tools tools
step page page  # before the tests, which open it where it is
step test make test
step python make python
step npm make npm
other_language rust cargo "posenc-$version.crate"
other_language go go "posenc-go-$version.zip"
step wheels make wheels
step deb make deb
step sources sources
step sbom sbom
step check check
(cd "$dist" && sha256sum -- *"$version"* >SHA256SUMS)
echo "$dist/SHA256SUMS: $(wc -l <"$dist/SHA256SUMS") files"
if [ -n "${TRY:-}" ]; then echo "TRY: no tag"; else
  git rev-parse -q --verify "v$version" >/dev/null || git tag -a "v$version" -m "posenc $version"
  echo "tagged v$version: git push origin v$version publishes it"
fi
