#!/bin/sh
# headers.sh INCLUDE CXX CC: every public header compiles alone, and c.h also as C; posenc.h has
# all that belong to the library posenc.
include=$1 cxx=$2 cc=$3
failed=0
for header in "$include"/posenc/*.h; do
  echo "#include \"posenc/${header##*/}\"" |
    $cxx -std=c++23 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" -x c++ - || failed=1
  case ${header##*/} in posenc.h | c.h | claims.h | bench.h) continue ;; esac
  grep -q "\"posenc/${header##*/}\"" "$include/posenc/posenc.h" ||
    { echo "posenc.h lacks ${header##*/}"; failed=1; }
done
if [ -e "$include/posenc/c.h" ]; then
  echo '#include "posenc/c.h"' |
    $cc -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$include" -x c - || failed=1
fi
exit $failed
