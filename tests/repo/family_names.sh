#!/bin/sh
# The check of family names must find a reader that names a family, and nothing else. Each case is a
# small tree.
check=$(cd "$(dirname "$0")/../.." && pwd)/cmake/check_family_names.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect STATUS TEXT LINE [FILE]: a reader with LINE must give the status and a line with the text.
expect() {
  file=${4:-src/model/layers.cc}
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/src/model/families"
  cat >"$tree/src/model/families/rows_a.cc" <<'ROWS'
    {.types = "gemma9 gemma9_text", .other = "mamba"},
    {.types = "a-long-name of-many "
              "on_two_lines", .sections = "8 12 12"},
ROWS
  echo '    {.names = "gemma9-gguf mamba", .family = "gemma9"},' >"$tree/src/model/gguf_architectures.cc"
  printf '%s\n' "$3" >>"$tree/$file"
  said=$("$check" "$tree")
  if [ $? -ne "$1" ] || ! echo "$said" | grep -qF "$2"; then
    printf 'FAILED: %s in %s\n  expected %s: %s\n  got: %s\n' "$3" "$file" "$1" "$2" "$said"
    failures=$((failures + 1))
  fi
}

none=', 0 violations'
expect 0 "$none" 'if (config.has("layer_types 8")) return "mamba";'
expect 0 "$none" '  // as "gemma9" does'
expect 0 "$none" '  int x;  // "gemma9"'
expect 0 "$none" 'refuse("name a known family, such as gemma9");'
expect 0 "$none" '    {.types = "gemma10"},' src/model/families/rows_b.cc
expect 0 "$none" 'EXPECT_EQ(type, "gemma9");' src/model/families/layers_test.cc

expect 1 'layers.cc:1: "gemma9_text" names a family' 'if (contains_word(family.types, "gemma9_text"))'
expect 1 '"gemma9 other" names a family' 'contains_word("gemma9 other", type)'
expect 1 '"on_two_lines" names a family' 'return type == "on_two_lines";'
expect 1 '"of-many" names a family' 'find_family("of-many")' src/model/families/helper.cc
expect 1 '"gemma9-gguf" names a family' 'if (arch_ == "gemma9-gguf")' src/model/gguf.cc
expect 1 'a.h:1: "gemma9"' 'constexpr auto x = "gemma9";' src/model/a.h

rm -rf "${tree:?}"/*
mkdir -p "$tree/src/model"
echo 'int x;' >"$tree/src/model/a.cc"
"$check" "$tree" >/dev/null && { echo 'FAILED: a tree without rows passes'; failures=$((failures + 1)); }

exit $failures
