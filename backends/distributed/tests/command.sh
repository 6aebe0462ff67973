#!/bin/sh
# command.sh RUN POSENC: `posenc attend --mpi` writes what `posenc attend` writes, and says once what is wrong.
run=$1 posenc=$2
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT
fail() { echo "$*"; exit 1; }
for x in q k v; do "$posenc" table $x.npy --scheme sinusoidal --width 32 --positions 0:90 || exit 1; done
input="--q q.npy --k k.npy --v v.npy --scheme rope --packed 0,30,90"
# shellcheck disable=SC2086  # a list of words
{
  "$posenc" attend whole.npy $input || exit 1
  for ranks in 1 3; do
    for layout in auto contiguous zigzag striped by-document; do
      "$run" $ranks "$posenc" attend out.npy --mpi --strategy gather --layout $layout $input || exit 1
      cmp whole.npy out.npy || fail "gather, $layout, $ranks ranks"
    done
  done
  "$run" 2 "$posenc" attend out.npy --mpi --strategy ring $input || exit 1
  [ "$(wc -c <out.npy)" = "$(wc -c <whole.npy)" ] || fail "a ring's output has another size"
  said=$("$run" 2 "$posenc" attend out.npy --mpi --layout zig $input 2>&1) && fail "a layout that is none"
  [ "$(echo "$said" | grep -c 'must be a layout')" = 1 ] || fail "said more than once: $said"
}
"$run" 2 "$posenc" bench ring --length 64 --heads 4 --kv_heads 2 --head_dim 16 --quick --json >rows.json || exit 1
grep -q '"ranks":2,"layout":"zigzag","strategy":"ring"' rows.json || fail "$(cat rows.json)"
