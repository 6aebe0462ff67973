#!/bin/sh
# words.sh OUT FILE...: the words within the files' string literals, as a libFuzzer dictionary.
# Keys and names have no capitals, no blanks and a letter in front; sentences give a few words more.
out=$1
shift
grep -hv '^#include' "$@" | grep -oh '"[a-z0-9_. ]*"' | tr -d '"' | tr ' ' '\n' |
  grep -E '^[a-z][a-z0-9_.]{2,39}$' | sort -u | sed 's/.*/"\\"&\\""/' >"$out"
