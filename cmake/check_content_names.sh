#!/bin/sh
# check_content_names.sh [ROOT]: who may name a scheme that reads the content: its own room, src/content, and the list,
# include/posenc/content.h, whose fields and tables tell other rooms what it needs. Exits 1 and names each type, or string or
# key of an object that is a name, elsewhere. Comments, tests and peers' own code may name any.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2046  # no file here has a space in its name
exec awk '
BEGIN {
  list = "^include/posenc/content\\.h$"
  # Lists of runs, and a binding of a function that is of one scheme by its name.
  others = "^(evidence/lab/train/experiments|bindings/python/src/formulas)\\.cc$"
  not_names["path"] = 1  # also where a file is
}

FILENAME ~ list {
  if (match($0, /std::variant<[^>]*>/)) {
    n = split(substr($0, RSTART + 13, RLENGTH - 14), words, /[ ,]+/)
    for (i = 1; i <= n; i++) types[words[i]] = 1
  }
  while (match($0, /(name|aliases) = "[^"]+"/)) {
    n = split(substr($0, RSTART, RLENGTH), words, /[ "]+/)
    for (i = 3; i <= n; i++) if (words[i] != "" && !(words[i] in not_names)) names[words[i]] = 1
    $0 = substr($0, RSTART + RLENGTH)
  }
  next
}
FILENAME ~ others { next }

FNR == 1 {
  in_comment = 0
  python = FILENAME ~ /\.py$/
  script = FILENAME ~ /\.(ts|mjs|svelte)$/
  opens = python ? "\"\"\"" : "/[*]"
  closes = python ? "\"\"\"" : "[*]/"
  comment = python ? "#" : "//"
}
{
  # Comments go; strings go, too, once none is a name alone.
  if (in_comment) {
    if (!match($0, closes)) next
    $0 = substr($0, RSTART + RLENGTH)
    in_comment = 0
  }
  if ($0 ~ "^[ \t]*(" opens ")") {
    sub(opens, "")
    if (!match($0, closes)) { in_comment = 1; next }
    $0 = substr($0, RSTART + RLENGTH)
  }
  while (match($0, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047|`[^`]*`/)) {
    if (index(substr($0, 1, RSTART), comment)) break
    said = substr($0, RSTART + 1, RLENGTH - 2)
    $0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + RLENGTH)
    n = split(said, words, " ")
    hits = 0
    for (k = 1; k <= n; k++) hits += words[k] in names
    if (hits && hits * 2 >= n) report("\"" said "\"")
  }
  sub(comment ".*$", "")
  if (script && match($0, /(^|[{,])[ \t]*[a-z_]+:/)) {
    key = substr($0, RSTART, RLENGTH)
    gsub(/[^a-z_]/, "", key)
    if (key in names) report(key)
  }
  if (script) next
  # pathlib has a Path of its own.
  if (python) gsub(/^(from|import) .*$|(^|[^.])Path/, "")
  n = split($0, words, /[^A-Za-z0-9_]+/)
  for (i = 1; i <= n; i++) if (words[i] in types) report(words[i])
}
function report(what) {
  print FILENAME ":" FNR ": " what " names a scheme that reads the content: ask its fields and tables"
  violations++
}

END {
  for (name in names) known++
  if (!known) { print "content names: found no list"; exit 2 }
  printf "content names: %d names, %d violations\n", known, violations
  exit violations > 0
}' include/posenc/content.h $(find . \( -name build -o -name dist -o -name node_modules -o -name peers -o -name test -o -name tests \
  -o -path ./.git -o -path ./src/content -o -path ./web/browser \) -prune -o -type f ! -name '*_test.*' ! -path ./include/posenc/content.h \
  \( -name '*.cc' -o -name '*.cu' -o -name '*.h' -o -name '*.mjs' -o -name '*.py' -o -name '*.svelte' -o -name '*.ts' \) -print |
  sed 's,^\./,,' | sort) </dev/null
