#!/bin/sh
# check_family_names.sh [ROOT]: only the rows of src/model name families. Exits 1 and names each string
# elsewhere in that room that is a model_type or an architecture, so that what is known of a family
# stands in its row and a reader serves the next family as it serves the first.
# A sentence may mention a family: a string is taken for names if at least half of its words are.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2046  # no file here has a space in its name
exec awk '
BEGIN {
  rows = "^src/model/(families/rows_[a-z]+|gguf_architectures)\\.cc$"
  # Lists of models that travel along, a dialect of one engine, which holds that one row itself, and
  # the classes that names of tensors, or keys and names that open_clip, timm and others have of their own tell.
  others = "^src/model/(bundled|params|checkpoint|open_clip|timm|other_names)\\.cc$"
  not_names["mamba"] = 1  # also a kind of layer
}
FNR == 1 { reading = 0 }
{ sub(/^[ \t]*\/\/.*/, "") }

# Names are the strings behind .types = and .names =, up to a comma outside of them.
FILENAME ~ rows {
  if (match($0, /\.(types|names) =/)) { reading = 1; $0 = substr($0, RSTART + RLENGTH) }
  while (reading && match($0, /^[ \t]*"[^"]*"/)) {
    n = split(substr($0, RSTART, RLENGTH), words, /[ "]+/)
    for (i = 1; i <= n; i++) if (words[i] != "" && !(words[i] in not_names)) names[words[i]] = 1
    $0 = substr($0, RSTART + RLENGTH)
  }
  if ($0 ~ /[^ \t]/) reading = 0
  next
}

FILENAME !~ others && !/^[ \t]*#include/ {
  while (match($0, /"([^"\\]|\\.)*"/)) {
    if (substr($0, 1, RSTART) ~ /\/\//) break  # a comment behind the code
    found[++count] = substr($0, RSTART + 1, RLENGTH - 2)
    place[count] = FILENAME ":" FNR
    $0 = substr($0, RSTART + RLENGTH)
  }
}

END {
  for (name in names) known++
  if (!known) { print "family names: found no row"; exit 2 }
  for (i = 1; i <= count; i++) {
    n = split(found[i], words, " ")
    hits = 0
    for (k = 1; k <= n; k++) hits += words[k] in names
    if (!hits || hits * 2 < n) continue
    print place[i] ": \"" found[i] "\" names a family: make it a field or a function of its row"
    violations++
  }
  printf "family names: %d names, %d violations\n", known, violations
  exit violations > 0
}' $(find src/model -type f \( -name '*.cc' -o -name '*.h' \) ! -name '*_test.cc' | sort) </dev/null
