#!/bin/sh
# The check of content schemes' names must find a room that names one, and nothing else. Each case is a small tree.
check=$(cd "$(dirname "$0")/../.." && pwd)/cmake/check_content_names.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect STATUS TEXT LINES [FILE]: a file with LINES must give the status and a line with the text.
expect() {
  file=${4:-cli/a.cc}
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include/posenc" "$tree/$(dirname "$file")"
  cat >"$tree/include/posenc/content.h" <<'LIST'
      name = "melt",
      aliases = "thaw melt-off", title = "melting",
  static constexpr std::string_view name = "path", aliases = "", title = "paths",
using ContentScheme = std::variant<Melt, Path>;
LIST
  printf '%s\n' "$3" >"$tree/$file"
  said=$("$check" "$tree")
  if [ $? -ne "$1" ] || ! echo "$said" | grep -qF "$2"; then
    printf 'FAILED: %s in %s\n  expected %s: %s\n  got: %s\n' "$3" "$file" "$1" "$2" "$said"
    failures=$((failures + 1))
  fi
}

none=', 0 violations'
expect 0 "$none" '  // as Melt does: "melt"'
expect 0 "$none" '/* Melt:
   "melt" */ int x;  // Melt'
expect 0 "$none" '"posenc attend out.npy --scheme melt"; fail("path"); MeltedAway x;'
expect 0 "$none" 'EXPECT_EQ(name, Melt::name);' backends/distributed/a_test.cc
expect 0 "$none" 'Melt melt{"melt"};' src/content/melt.cc
expect 0 "$none" '{"E1", "melt", "melt rate=2"}' evidence/lab/train/experiments.cc
expect 0 "$none" 'from pathlib import Path
"""As posenc.Melt,
posenc.Melt."""
Path("melt.npy")  # posenc.Path' bindings/python/posenc/a.py
expect 0 "$none" 'const melted = { path: 1 } // melt: 2' web/src/a.ts

expect 1 'a.cc:2: Melt names a scheme' '// Melt
if (auto* melt = std::get_if<Melt>(&scheme)) melt->rate = 1;'
expect 1 'std::holds' 'std::holds_alternative<Path>(x) || name == "std::holds thaw"'
expect 1 'a.cc:1: Path names' 'const Path path{.w = w};'
expect 1 '"melt-off" names' 'constexpr auto x = "melt-off";' examples/a.h
expect 1 '"melt rate=2" names' 'parse("melt rate=2")' evidence/bench/harness/a.cc
expect 1 'a.py:1: Melt names' 'isinstance(scheme, posenc.Melt)' bindings/python/posenc/a.py
expect 1 'a.py:1: "melt" names' "if scheme.name == 'melt':" bindings/python/posenc/a.py
expect 1 '"thaw" names' "if (type === 'thaw') return" web/src/a.ts
expect 1 'a.ts:2: melt names' '{
  melt: 8 * heads,' web/src/a.ts

rm -rf "${tree:?}"/*
mkdir -p "$tree/include/posenc" "$tree/cli"
echo 'int x;' >"$tree/include/posenc/content.h"
"$check" "$tree" >/dev/null 2>&1 && { echo 'FAILED: a tree without a list passes'; failures=$((failures + 1)); }

exit $failures
