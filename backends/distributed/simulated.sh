#!/bin/sh
# simulated.sh BUILD OUT: `posenc bench ring` of 2 to 64 ranks, on machines that SimGrid simulates (Debian: libsimgrid-dev),
# as rows in OUT/*.json. The program is the same; a machine takes as long for arithmetic as this one does, measured here
# (SPEED, GFLOP/s of a core; MEMORY, its GB/s), and messages take what a switched network of the given speed takes. Two ranks
# are run for real beside it, and both are printed.
#   core  a core a rank on 10 GbE (20 µs), 4096 tokens
#   node  16 cores a rank, taken for 16 times as fast as one with 8 times its memory's speed, on 10 GbE, 32768 tokens
build=$1 out=$2
run=$(dirname "$0")/run.sh
[ -x "$build/posenc-simulated" ] && command -v smpirun >/dev/null ||
  { echo "nothing is simulated: SimGrid is missing (apt-get install libsimgrid-dev)"; exit 77; }
mkdir -p "$out"
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
trap 'exit 130' INT TERM

# simulated RANKS GFLOPS MEMORY NETWORK LATENCY ARGUMENTS...: rows. NETWORK in bytes a second; LATENCY of a wire, twice on a way.
simulated() {
  ranks=$1
  cat >"$here/platform.xml" <<XML
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="machines" prefix="machine-" suffix="" radical="0-$((ranks - 1))" speed="${2}Gf" bw="$4" lat="$5"
           sharing_policy="SPLITDUPLEX"><prop id="memory" value="${3}e9"/></cluster>
</platform>
XML
  : >"$here/hosts"
  machine=0
  while [ $machine -lt "$ranks" ]; do echo "machine-$machine" >>"$here/hosts"; machine=$((machine + 1)); done
  shift 5
  smpirun -np "$ranks" -platform "$here/platform.xml" -hostfile "$here/hosts" --cfg=smpi/simulate-computation:no \
    --cfg=smpi/tmpdir:/dev/shm --log=root.thresh:error "$build/posenc-simulated" "$@" --json
}
# What one JSON array after another holds, as one array.
joined() { sed -e 's/^\[/ /' -e 's/\]$/,/' | sed -e '1s/^ /[/' -e '$s/,$/]/'; }
product() { echo "$1 $2" | awk '{print $1 * $2}'; }
# Rows as a table: efficiency is the share of a rank's time that one process would have needed for its part.
table() {
  printf '%-9s %6s %-11s %-8s %10s %11s %8s\n' '' ranks layout strategy seconds efficiency hidden
  tr '{' '\n' <"$1" | awk -F'[,:"]+' -v what="$2" '/ranks/ {
    for (n = 1; n < NF; ++n) { if ($n == "layout" || $n == "strategy" || $n == "ranks" || $n == "seconds" ||
                                   $n == "of_whole" || $n == "hidden") value[$n] = $(n + 1) }
    printf "%-9s %6d %-11s %-8s %10.4f %11.2f %8.2f\n", what, value["ranks"], value["layout"], value["strategy"],
           value["seconds"], 1 / (value["of_whole"] * value["ranks"]), value["hidden"] }'
}

# Two ranks for real; of them one process' speed: 4 · pairs · heads · head_dim operations.
"$run" 2 "$build/posenc-mpi" bench ring --json ${QUICK:+--quick} >"$here/real.json" || exit 1
speed=${SPEED:-$(tr '{' '\n' <"$here/real.json" | awk -F'[][,:"]+' '/"ranks"/ && !done {
  for (n = 1; n < NF; ++n) { if ($n == "seconds" || $n == "of_whole") value[$n] = $(n + 1)
                             if ($n == "pairs_per_rank") pairs = $(n + 1) + $(n + 2) }
  print 4 * pairs * 16 * 128 / (value["seconds"] / value["of_whole"]) / 1e9; done = 1 }')}
memory=${MEMORY:-$("$build/posenc" bench rotate --quick --json | sed 's/.*\[{[^}]*"limit_gbps":\([0-9.]*\).*/\1/;q')}
echo "a core of this machine: $speed GFLOP/s in attention, $memory GB/s of memory"
echo
echo "Two ranks on this machine, and two simulated ones whose messages are copies in memory:"
simulated 2 "$speed" "$memory" "$(product "$memory" 1e9)Bps" 1us >"$out/two.json" || exit 1
table "$here/real.json" real
table "$out/two.json" simulated

for ranks in ${RANKS:-2 4 8 16 32 64}; do
  for what in "--strategies ring" "--strategies gather,heads --layouts zigzag"; do
    # shellcheck disable=SC2086  # a list of words
    simulated "$ranks" "$speed" "$memory" 1.25GBps 10us --length 4096 $what >>"$here/core" || exit 1
    # shellcheck disable=SC2086
    simulated "$ranks" "$(product "$speed" 16)" "$(product "$memory" 8)" 1.25GBps 10us --length 32768 $what >>"$here/node" || exit 1
  done
done
for machines in core node; do
  joined <"$here/$machines" >"$out/$machines.json"
  echo
  table "$out/$machines.json" $machines
done
