#!/bin/sh
# words.sh ROOT: comments of C, C++ and CUDA fit 100 columns, and no text of the repository has the phrases that CONTRIBUTING.md
# (Words) has better ones for. 77: skipped.
cd "$1" || exit 2
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || { echo "skipped: this is no clone of git"; exit 77; }
export LC_ALL=C.UTF-8
failed=0
wide=$(git grep -nE '^[[:space:]]*(//|/\*).{100,}$' -- '*.cc' '*.h' '*.cu' '*.c' | grep -E '^[^:]+:[0-9]+:.{101,}$')
[ -z "$wide" ] || { echo "comments over 100 columns:"; echo "$wide"; failed=1; }
odd=$(git grep -nE "\\b(hangs?|hanging) on\\b|\\b[Ff]or who\\b|\\bgo(es)? by (the|a|an|it|its|position)\\b|\\bof one size\\b|\\bstands? so\\b" -- \
  . ':!tests/data' ':!tests/repo/words.sh' ':!CONTRIBUTING.md' ':!*.svg' ':!web/package-lock.json' ':!*.ipynb')
[ -z "$odd" ] || { echo "phrases that need two readings (CONTRIBUTING.md, Words):"; echo "$odd"; failed=1; }
[ "$failed" = 1 ] || echo "comments fit, and phrases are plain"
exit $failed
