#!/bin/sh
# headers.sh INCLUDE: posenc.h has every public header of the library posenc, and schemes.h each scheme's. That each
# compiles alone, the build shows.
cd "$1/posenc" || exit 2
failed=0
has() {  # $1: the header that has the other, $2
  grep -q "\"posenc/$2\"" "$1" || { echo "$1 lacks $2"; failed=1; }
}
for header in *.h; do
  case $header in posenc.h | c.h | claims.h | bench.h) ;; *) has posenc.h "$header" ;; esac
done
for header in schemes/*.h; do
  case $header in schemes/scheme.h) ;; *) has schemes.h "$header" ;; esac
done
exit $failed
