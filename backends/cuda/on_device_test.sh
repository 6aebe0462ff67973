#!/bin/bash
# on_device_test.sh PROGRAM: the script for a machine with a device goes through on the emulated grid; without a device it says so and
# ends with 2; and its report judges goals by rows of an H100 that never was.
set -eu
cd "$(dirname "$0")/../.."
program=$1
command -v python3 >/dev/null || { echo 'skipped: on_device.sh needs python3'; exit 77; }
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
wrong() { echo "on_device_test.sh: $*"; cat "$work"/said*; exit 1; }
has() { grep -qF -- "$1" "$2" || wrong "$2 lacks: $1"; }

status=0
CUDA_VISIBLE_DEVICES='' backends/cuda/on_device.sh "$program" "$work/none" >"$work/said" 2>&1 || status=$?
[ $status = 2 ] || wrong "without a device the exit code is $status"
has 'no CUDA device' "$work/said"

EMULATED=1 backends/cuda/on_device.sh "$program" "$work/out" >"$work/said" 2>&1 || wrong 'the emulated grid did not go through'
has '76 of 76 problems' "$work/said"
has 'device: emulated grid' "$work/said"
has 'goals: are of an H100 or H200' "$work/said"
has '"verdict": "not judged"' "$work/out/goals.json"

# Rows as the program writes them, of another device and other times.
python3 - "$work" <<'END'
import json, sys
from pathlib import Path

work = Path(sys.argv[1])
rows = [json.loads(line) for line in (work / "out/speed.jsonl").read_text().splitlines()]
rows[0] = {"device": "NVIDIA H100 80GB HBM3"}
fake, peers = [rows[0]], []
for row in rows[1:]:
    if row["work"] == "cosines":
        fake.append(row)
        continue
    row["tokens"] = {1: 1, 3: 128, 130: 65536}[row["tokens"]]
    row["scale_us"], row["us"] = 96, 100
    if row["work"] == "append" and row["pairing"] == "halves":
        row["us"] = 105  # 0.914
    fake.append(row)
    if row["work"] == "rotate" and row["dtype"] == "bfloat16" and row["pairing"] == "halves":
        for peer, us in {1: (("fast", 95), ("slow", 200)), 128: (("fast", 80),), 65536: (("slow", 101),)}[row["tokens"]]:
            peers.append({k: row[k] for k in ("work", "dtype", "pairing", "tokens")} | {"peer": peer, "us": us, "cos_error": {"1e3": 0.25}})
peers.append({"peer": "other", "work": "rotate", "wrong": 1.5})
peers.append({"peer": "absent", "absent": "there is no package"})
(work / "fake.jsonl").write_text("".join(json.dumps(row) + "\n" for row in fake))
(work / "peers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in peers))
END
backends/cuda/report.py "$work/fake.jsonl" "$work/peers.jsonl" >"$work/said"
has 'goal held         rotation, bfloat16, halves: 0.95 of the in-place scale: 0.960' "$work/said"
has 'goal held         backwards, float32, interleaved: 0.95 of the in-place scale: 0.960' "$work/said"
has 'goal missed       with the append, bfloat16, halves: 0.92 of the in-place scale: 0.914' "$work/said"
has 'goal held         with the append, bfloat16, interleaved: 0.92 of the in-place scale: 0.960' "$work/said"
has "goal held         rotate, bfloat16, halves, 1 tokens: at most 1.1 of the fastest peer: 1.05 of fast's 95 µs" "$work/said"
has 'goal missed       rotate, bfloat16, halves, 128 tokens: at most 1.1 of the fastest peer: 1.25' "$work/said"
has "goal held         rotate, bfloat16, halves, 65,536 tokens: before every peer: 0.99 of slow's 101 µs" "$work/said"
has 'goals: 12 held, 3 missed, 0 not measured' "$work/said"
has '| rotate | bfloat16, halves | 1 | fast | 95 | 1.01 | 0.25 |' "$work/said"
has 'other, rotate: WRONG by 1.5, not timed' "$work/said"
has 'absent: not timed: there is no package' "$work/said"

# Without peers the goal of decoding is not measured, and without rows none is.
backends/cuda/report.py "$work/fake.jsonl" >"$work/said"
has 'goal not measured 1 to 128 tokens: at most 1.1 of the fastest peer' "$work/said"
head -n 1 "$work/fake.jsonl" >"$work/empty.jsonl"
backends/cuda/report.py "$work/empty.jsonl" >"$work/said"
has 'goals: 0 held, 0 missed, 13 not measured' "$work/said"
