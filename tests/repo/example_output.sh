#!/bin/sh
# example_output.sh PAGE EXAMPLE PROGRAM: the text block that follows a link to the example in the page
# is what the program prints. Lines may be broken elsewhere; rounding errors, which differ between
# instruction sets, may be up to twice as large or small.
set -eu
said=$(awk -v link="[$2]" '
  /^```/ { if (block) exit; block = linked && $0 == "```text"; next }
  index($0, link) { linked = 1 }
  block' "$1")
[ -n "$said" ] || { echo "$1: no text block after a link to $2"; exit 1; }
printed=$("$3")
# A word a line, each of the page beside that of the program.
words() { printf '%s\n' "$1" | tr -s ' ' '\n' | sed '/^$/d'; }
one=$(mktemp) two=$(mktemp)
trap 'rm -f "$one" "$two"' EXIT
words "$said" >"$one"
words "$printed" >"$two"
paste -d '\t' "$one" "$two" | awk -F '\t' -v page="$1" -v example="$2" '
  function error_size(word) { return word ~ /^[0-9]\.[0-9]e[-+][0-9][0-9]$/ }
  $1 == $2 { next }
  error_size($1) && error_size($2) && $1 + 0 <= 2 * $2 && $2 + 0 <= 2 * $1 { next }
  { printf "%s says \"%s\" where %s prints \"%s\" (word %d)\n", page, $1, example, $2, NR; exit failed = 1 }
  END { if (!failed) printf "%d words are as %s prints them\n", NR, example }'
