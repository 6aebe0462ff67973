#!/bin/sh
# wasm_layout.sh CLANG C_H: how clang lays out the structs of c.h for WebAssembly, as JSON:
#   {"posenc_mask": {"size": 40, "members": {"struct_size": [0, "uint32"], ..., "keep": [32, "uint32"]}}, ...}
# Arrays have their count behind the kind, and pointers are uint32. bindings/npm/src/memory.ts fills structs by it.
set -e
layouts=$("$1" --target=wasm32-wasi -Wno-deprecated -fsyntax-only -Xclang -fdump-record-layouts-complete -x c "$2")
printf '%s\n' "$layouts" | awk '
# c.h first, for its typedefs of numbers: posenc_dtype is an int32_t.
FILENAME != "-" {
  if ($1 == "typedef" && NF == 3) number[substr($3, 1, length($3) - 1)] = $2
  next
}
# "16 |   int64_t[4] shape": a member of the struct named last. Members of members stand deeper and are refused.
/^ *[0-9]+ \| struct posenc_/ { name = $4; members = ""; next }
/^ *[0-9]+ \| [^ ]/ { name = ""; next }
name && /^ *[0-9]+ \|   [^ ]/ {
  type = $0
  sub(/^[^|]*\| */, "", type)
  sub(/ *[^ ]+$/, "", type)
  count = ""
  if (match(type, /\[[0-9]+\]$/)) {
    count = ", " substr(type, RSTART + 1, RLENGTH - 2)
    type = substr(type, 1, RSTART - 1)
  }
  if (type in number) type = number[type]
  if (type ~ /\*$/ || type == "size_t") type = "uint32_t"
  if (type == "double") type = "float64_t"
  if (type == "float") type = "float32_t"
  if (type !~ /^(u?int(32|64)|uint8|float(32|64))_t$/) {
    print "wasm_layout.sh: " name "." $NF " is a " type ", of which JavaScript knows nothing" >"/dev/stderr"
    exit failed = 1
  }
  sub(/_t$/, "", type)
  members = members (members ? ", " : "") "\"" $NF "\": [" $1 ", \"" type "\"" count "]"
}
name && /\[sizeof=/ {
  size = $0
  gsub(/.*sizeof=|,.*/, "", size)
  all = all (all ? ",\n" : "") " \"" name "\": {\"size\": " size ", \"members\": {" members "}}"
  name = ""
}
END {
  if (failed) exit 1
  if (!all) { print "wasm_layout.sh: no struct found" >"/dev/stderr"; exit 1 }
  print "{" substr(all, 2) "}"
}' "$2" -
