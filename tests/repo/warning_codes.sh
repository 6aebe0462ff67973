#!/bin/sh
# warning_codes.sh ROOT: docs/warnings.md has a row for every code of a warning in the sources, and no other, and
# `posenc lint` a rule for each.
cd "$1" || exit 2
page=docs/warnings.md
in_source=$(find src -name '*.cc' ! -name '*_test.cc' -exec cat {} + | tr -s '\n ' ' ' |
  grep -oE '(warn\( ?(model, )?|Warning [a-z]+\{ ?|warnings\.push_back\( ?\{ ?)"[a-z]+(_[a-z]+)+"' | grep -oE '[a-z_]+"$' | tr -d '"' | sort -u)
in_page=$(grep -oE '^\| `[a-z_]+`' "$page" | tr -d '|` ' | sort)
failed=0
for code in $in_source; do
  echo "$in_page" | grep -qx "$code" || { echo "$page has no row for $code"; failed=1; }
  grep -qF "{\"$code\"," src/tools/lint.cc || { echo "src/tools/lint.cc has no rule for $code"; failed=1; }
done
for code in $in_page; do
  echo "$in_source" | grep -qx "$code" || { echo "$page has a row for $code, which no source warns of"; failed=1; }
done
[ "$(echo "$in_page" | uniq -d)" = "" ] || { echo "$page has a code twice"; failed=1; }
[ "$failed" = 1 ] || echo "$(echo "$in_page" | wc -l) codes"
exit $failed
