#!/bin/sh
# symbols.sh LIBRARY [MORE...]: nothing in the libraries throws, catches or carries type information, and the
# first has none of the functions of the others.
found=$(nm -A "$@" 2>/dev/null | grep -E ' (__cxa_(throw|begin_catch|allocate_exception)|_ZT[IS]N6posenc)')
[ -z "$found" ] || { echo "the library was built with exceptions or RTTI:"; echo "$found"; exit 1; }
functions() { nm --defined-only "$1" 2>/dev/null | sed -n 's/^[0-9a-f]* T //p' | sort -u; }
first=$1
shift
for other; do
  twice=$({ functions "$first"; functions "$other"; } | sort | uniq -d)
  [ -z "$twice" ] || { echo "both in $first and in $other:"; echo "$twice"; exit 1; }
done
[ $# = 0 ] || ! nm -C --defined-only "$first" 2>/dev/null | grep -E ' posenc::(verify|all_claims|bench_cases|measure)\('
