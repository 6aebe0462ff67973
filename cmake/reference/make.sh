#!/bin/sh
# make.sh OUT: the API reference in OUT/html, its front page from docs/linking.md. Whatever Doxygen warns of is an error,
# but for members without a comment of their own, whose names say enough. Exits 77 where there is no Doxygen.
command -v doxygen >/dev/null || { echo 'there is no doxygen (Debian: doxygen)'; exit 77; }
cd "$(dirname "$0")/../.." || exit 2
out=$1
mkdir -p "$out" || exit 2
{
  echo '/** @mainpage Headers'
  # Headers become links to their pages; the links of a repository lead nowhere from here.
  sed -n '/^```cpp$/,$p' docs/linking.md | sed -E \
    -e 's/\[([^]]*)\]\(([a-z_]*\.md|\.\.)[^)]*\)/`\1`/g' -e '/^\|/s/`([a-z]+\.h)`/\1/g'
  echo '*/'
} >"$out/front.dox"
said=$({ cat cmake/reference/Doxyfile; echo "INPUT += $out/front.dox"; echo "OUTPUT_DIRECTORY = $out"
         sed -nE 's/^project\(posenc VERSION ([0-9.]+).*/PROJECT_NUMBER = \1/p' CMakeLists.txt; } | doxygen - 2>&1 |
       grep -v 'warning: Member .* is not documented')
[ -z "$said" ] || { echo "$said"; exit 1; }
[ -e "$out/html/index.html" ]
