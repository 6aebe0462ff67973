#!/bin/sh
# headers.sh INCLUDE: posenc.h has every public header of the library posenc. That each compiles alone, the build shows.
failed=0
for header in "$1"/posenc/*.h; do
  case ${header##*/} in posenc.h | c.h | claims.h | bench.h) continue ;; esac
  grep -q "\"posenc/${header##*/}\"" "$1/posenc/posenc.h" ||
    { echo "posenc.h lacks ${header##*/}"; failed=1; }
done
exit $failed
