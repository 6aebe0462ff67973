#!/bin/sh
# simulated.sh PROGRAM: simulated ranks hide their messages where the formula says, 4·kv_heads/heads·F/B tokens a rank, and
# the rows say that they are simulated.
program=$1
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT
fail() { echo "$*"; exit 1; }
cat >platform.xml <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="machines" prefix="machine-" suffix="" radical="0-7" speed="100Gf" bw="1GBps" lat="1us"
           sharing_policy="SPLITDUPLEX"/>
</platform>
XML
for n in 0 1 2 3 4 5 6 7; do echo "machine-$n"; done >hosts
# rows TOKENS: of 8 ranks; 100 tokens a rank are the formula's.
rows() {
  smpirun -np 8 -platform platform.xml -hostfile hosts --cfg=smpi/simulate-computation:no --log=root.thresh:error "$program" \
    --length "$1" --heads 8 --kv_heads 2 --head_dim 64 --layouts zigzag,striped --strategies ring --json
}
hidden() { tr '{' '\n' | sed -n 's/.*"layout":"'"$1"'".*"hidden":\([0-9.]*\),"simulated":true.*/\1/p'; }
many=$(rows 1600) && few=$(rows 320) || fail "smpirun: $many $few"
for layout in zigzag striped; do
  share=$(echo "$many" | hidden $layout)
  [ "$(echo "$share" | awk '{print ($1 >= 0.9)}')" = 1 ] || fail "$layout, 200 tokens a rank: $share of $many"
  share=$(echo "$few" | hidden $layout)
  [ "$(echo "$share" | awk '{print ($1 < 0.6)}')" = 1 ] || fail "$layout, 40 tokens a rank: $share of $few"
done
