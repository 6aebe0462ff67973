#!/bin/bash
# on_device.sh [PROGRAM] [OUT]: what only a machine with a device can show, in less than eight minutes, into OUT (out/cuda): the bits
# of every problem beside the emulated grid's, compute-sanitizer's memcheck and initcheck where it is installed, and the table
# of speeds as JSON lines. PROGRAM is build/cuda/posenc_cuda_device of `make cuda`. EMULATED=1 goes through the script without a device.
# Exit codes: 0, 1 where something is wrong, 2 without a device.
set -u
program=${1:-build/cuda/posenc_cuda_device}
out=${2:-out/cuda}
check=(check)
[ -n "${EMULATED:-}" ] && check=(emulated)
[ -x "$program" ] || { echo "on_device.sh: there is no $program; make cuda builds it" >&2; exit 1; }
mkdir -p "$out"
date -u +%Y-%m-%dT%H:%M:%SZ >"$out/when.txt"
nvidia-smi -L >"$out/device.txt" 2>&1 || echo "no nvidia-smi" >"$out/device.txt"

timeout 120 "$program" "${check[@]}" >"$out/bits.txt" 2>"$out/error.txt"
status=$?
cat "$out/error.txt" >&2
[ $status = 2 ] && exit 2
same=$(grep -c 'the same bits' "$out/bits.txt") all=$(grep -cE 'bits$|BITS$' "$out/bits.txt")
echo "bits: $same of $all problems as on the emulated grid"
[ $status = 0 ] && [ "$same" = "$all" ] || { grep 'OTHER BITS' "$out/bits.txt"; exit 1; }

wrong=0
for tool in memcheck initcheck; do
  command -v compute-sanitizer >/dev/null || { echo "$tool: compute-sanitizer is not installed"; continue; }
  if timeout 120 compute-sanitizer --tool $tool --error-exitcode 3 "$program" "${check[@]}" >"$out/$tool.txt" 2>&1
  then echo "$tool: no error"
  else echo "$tool: see $out/$tool.txt"; wrong=1
  fi
done

[ -n "${EMULATED:-}" ] && { echo "speed: an emulated grid has none"; exit $wrong; }
timeout 180 "$program" bench | grep '^{' >"$out/speed.jsonl"
echo "speed: $(wc -l <"$out/speed.jsonl") rows in $out/speed.jsonl"
cat "$out/speed.jsonl"
exit $wrong
