#!/bin/bash
# on_device.sh [PROGRAM] [OUT]: what only a machine with a device can show, in less than eight minutes, into OUT (out/cuda): the bits
# of every problem beside the emulated grid's, compute-sanitizer's memcheck and initcheck where it is installed, the tests of
# posenc.triton, the table of speeds, those of peers (backends/cuda/peers/peers.py, by PYTHON with torch; folders of their sources in PEERS, with NVCC), and which goals
# are held. PROGRAM is build/cuda/posenc_cuda_device of `make cuda`. EMULATED=1 goes through the script without a device.
# Exit codes: 0, 1 where something is wrong, 2 without a device. A goal that is missed is said, and is no error.
set -u
here=$(dirname "$0")
program=${1:-build/cuda/posenc_cuda_device}
out=${2:-out/cuda}
python=${PYTHON:-python3}
check=check bench=bench limit=60 peers=(--limit 140)
# A grid on processors that do other work too, under a sanitizer perhaps, is slow and not stuck.
[ -n "${EMULATED:-}" ] && check=emulated bench=bench-emulated limit=900 peers=(--cpu)
[ -n "${PEERS:-}" ] && peers+=(--sources "$PEERS")
[ -x "$program" ] || { echo "on_device.sh: there is no $program; make cuda builds it" >&2; exit 1; }
mkdir -p "$out"
date -u +%Y-%m-%dT%H:%M:%SZ >"$out/when.txt"
nvidia-smi -L >"$out/device.txt" 2>&1 || echo "no nvidia-smi" >"$out/device.txt"

timeout $limit "$program" "$check" >"$out/bits.txt" 2>"$out/error.txt"
status=$?
cat "$out/error.txt" >&2
[ $status = 2 ] && exit 2
same=$(grep -c 'the same bits' "$out/bits.txt") all=$(grep -cE 'bits$|BITS$' "$out/bits.txt")
echo "bits: $same of $all problems as on the emulated grid"
[ $status = 0 ] && [ "$all" -gt 0 ] && [ "$same" = "$all" ] || { grep 'OTHER BITS' "$out/bits.txt"; exit 1; }

wrong=0
for tool in memcheck initcheck; do
  command -v compute-sanitizer >/dev/null || { echo "$tool: compute-sanitizer is not installed"; continue; }
  if timeout 90 compute-sanitizer --tool $tool --error-exitcode 3 "$program" "$check" >"$out/$tool.txt" 2>&1
  then echo "$tool: no error"
  else echo "$tool: see $out/$tool.txt"; wrong=1
  fi
done

# posenc.triton, where the Python has it: its tests run on the device by themselves.
if [ -z "${EMULATED:-}" ] && "$python" -c 'import pytest, torch, triton, posenc' 2>/dev/null; then
  tests=$(cd "$here/../../bindings/python/tests" && pwd)
  (cd "$tests" && timeout 120 "$python" -m pytest -q -p no:cacheprovider test_triton.py) >"$out/triton.txt" 2>&1 || wrong=1
  echo "posenc.triton: $(tail -n 1 "$out/triton.txt")"
else
  echo "posenc.triton: not tested, as $python has no posenc, pytest and triton"
fi

timeout $limit "$program" "$bench" >"$out/speed.jsonl" || { echo "speed: $program $bench failed"; exit 1; }
echo "speed: $(grep -c '"us"' "$out/speed.jsonl") rows in $out/speed.jsonl"
: >"$out/peers.jsonl"
"$python" -c 'import numpy' 2>/dev/null || { echo "peers: $python has no numpy; PYTHON=... names one with torch"; python=; }
[ -z "$python" ] || timeout 150 "$python" "$here/peers/peers.py" "${peers[@]}" >"$out/peers.jsonl" 2>"$out/peers.txt" ||
  echo "peers: see $out/peers.txt"
"${python:-python3}" "$here/report.py" "$out/speed.jsonl" "$out/peers.jsonl" --json "$out/goals.json" | tee "$out/report.md"
[ "${PIPESTATUS[0]}" = 0 ] || wrong=1
exit $wrong
