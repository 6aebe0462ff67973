#!/bin/sh
# The include check must find what it is there for, and nothing else. Each case is a small tree.
check=$(cd "$(dirname "$0")/../.." && pwd)/cmake/check_includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect STATUS TEXT FILE INCLUDES...: a tree with FILE must give the status and a line with the text.
expect() {
  status=$1 text=$2 file=$3
  shift 3
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include/posenc" "$tree/src/model" "$tree/src/kernels" "$tree/src/wasm" "$tree/cli" "$tree/${file%/*}"
  touch "$tree/include/posenc/plan.h" "$tree/include/posenc/c.h" "$tree/include/posenc/claims.h" \
    "$tree/include/posenc/bench.h" "$tree/cli/table.h" "$tree/src/model/json.h" "$tree/src/wasm/decimal.h"
  echo '#include "inner.h"' >"$tree/src/kernels/outer.cc"
  touch "$tree/src/kernels/inner.h"
  echo '#include "posenc/plan.h"' >"$tree/include/posenc/schemes.h"
  echo '#include "posenc/schemes.h"' >"$tree/include/posenc/posenc.h"
  for name; do echo "#include $name"; done >>"$tree/$file"
  said=$("$check" "$tree")
  if [ $? -ne "$status" ] || ! echo "$said" | grep -qF "$text"; then
    printf 'FAILED: %s with %s\n  expected %s: %s\n  got: %s\n' "$file" "$*" "$status" "$text" "$said"
    failures=$((failures + 1))
  fi
}

none=', 0 violations'
expect 0 "$none" src/kernels/rotate.cc '"posenc/plan.h"' '"hwy/highway.h"' '<cmath>'
expect 0 "$none" src/schemes/rope.cc '"posenc/schemes.h"' '"posenc/plan.h"'
expect 0 "$none" src/model/config.cc '"posenc/schemes.h"' '<nlohmann/json.hpp>' '"src/model/json.h"'
expect 0 "$none" src/kernels/rotate_test.cc '"posenc/posenc.h"' '<gtest/gtest.h>'
expect 0 "$none" cli/main.cc '"posenc/posenc.h"' '"cli/table.h"' '<fmt/core.h>'

expect 1 'src/kernels/rotate.cc: kernels see plans' src/kernels/rotate.cc '"posenc/schemes.h"'
expect 1 '(src/kernels/outer.cc > src/kernels/inner.h > include/posenc/schemes.h)' \
  src/kernels/inner.h '"posenc/schemes.h"'
expect 1 'src/attention/fused.cc: kernels see plans' src/attention/fused.cc '"../../include/posenc/posenc.h"'
expect 1 'include/posenc/plan.h: plans and what works on them' include/posenc/plan.h '"schemes.h"'
expect 1 'include/posenc/tensor.h: public headers' include/posenc/tensor.h '<nlohmann/json.hpp>'
expect 1 'include/posenc/c.h: c.h is C' include/posenc/c.h '<cstdint>'
expect 1 'src/schemes/rope.cc: SIMD' src/schemes/rope.cc '<hwy/highway.h>'
expect 1 'src/schemes/rope.cc: JSON' src/schemes/rope.cc '<nlohmann/json.hpp>'
expect 1 'src/schemes/rope.cc: may not include src/model/json.h' src/schemes/rope.cc '"src/model/json.h"'
expect 1 'src/model/gguf.cc: the core prints nothing' src/model/gguf.cc '<fmt/core.h>'
expect 1 'src/c/plans.cc: may not include src/model/json.h' src/c/plans.cc '"src/model/json.h"'
expect 1 'cli/main.cc: may not include src/model/json.h' cli/main.cc '"src/model/json.h"'
expect 1 'src/explain/show.cc: nothing includes cli' src/explain/show.cc '"cli/table.h"'
expect 1 'evidence/claims/a.cc: may not include src/model/json.h' evidence/claims/a.cc '"src/model/json.h"'
expect 1 'src/explain/a.cc: claims and bench stand on' src/explain/a.cc '"posenc/claims.h"'
expect 1 'include/posenc/posenc.h: claims and bench stand on' include/posenc/posenc.h '"posenc/bench.h"'
expect 1 'src/text/number.cc: src/wasm stands in' src/text/number.cc '"src/wasm/decimal.h"'
expect 1 'web/engine.cc: may not include include/posenc/plan.h' web/engine.cc '"posenc/plan.h"'
expect 1 'src/schemes/a.cc: nothing includes a test' src/schemes/a.cc '"src/schemes/b_test.cc"'
expect 1 'engine/a.cc: is in no room' engine/a.cc '<cmath>'

exit $failures
