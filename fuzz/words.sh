#!/bin/sh
# words.sh FILE...: the words within their string literals, as a libFuzzer dictionary: "rope_theta".
# Keys and names have no capitals, no blanks and a letter in front; sentences give a few words more.
grep -hv '^#include' "$@" | grep -oh '"[a-z0-9_. ]*"' | tr -d '"' | tr ' ' '\n' |
  grep -E '^[a-z][a-z0-9_.]{2,39}$' | sort -u | sed 's/.*/"\\"&\\""/'
