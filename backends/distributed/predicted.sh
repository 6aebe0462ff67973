#!/bin/sh
# predicted.sh BUILD: how far `posenc lint --cp --machine` is from what 2, 4 and 8 ranks take on this machine, whose cores they share:
# seconds of `posenc bench ring` beside those predicted for its speed (one process) and its memory, which messages are copied through.
#   RANKS="2 4 8"  LENGTH=8192
build=$1
run=$(dirname "$0")/run.sh
[ -x "$build/posenc-mpi" ] || { echo "nothing is measured: $build/posenc-mpi is missing (make distributed)"; exit 77; }
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
trap 'exit 130' INT TERM
length=${LENGTH:-8192}
# What the benchmark runs: one layer, 16 heads of 128, four of keys, float.
cat >"$here/model.json" <<JSON
{"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4, "num_hidden_layers": 1,
 "max_position_embeddings": $length, "torch_dtype": "float32", "rope_theta": 10000.0}
JSON
memory=$("$build/posenc" bench rotate --quick --json | sed 's/.*\[{[^}]*"limit_gbps":\([0-9.]*\).*/\1/;q')
for ranks in ${RANKS:-2 4 8}; do
  "$run" "$ranks" "$build/posenc-mpi" bench ring --length "$length" --json >"$here/$ranks.json" || exit 1
done
python3 - "$build/posenc" "$here" "$memory" "$length" "$(nproc)" ${RANKS:-2 4 8} <<'PYTHON'
import json, subprocess, sys
from pathlib import Path

posenc, here, memory, length, cores, *all_ranks = sys.argv[1:]
memory, length, cores = float(memory) * 1e9, int(length), int(cores)
words = {"ring": "{layout}:{ranks}:by=ring", "gather": "{layout}:{ranks}:by=gather", "heads": "ulysses:{ranks}"}
print("| ranks | layout | strategy | measured | predicted | off by |\n|---|---|---|---|---|---|")
worst = 0
for ranks in map(int, all_ranks):
    for row in json.loads((Path(here) / f"{ranks}.json").read_text()):
        if row["strategy"] == "heads" and row["layout"] != "contiguous":
            continue
        whole = row["seconds"] / row["of_whole"]  # of one process
        share = min(1, cores / ranks)
        speed = 4 * (length * (length + 1) / 2) * 16 * 128 / whole * share
        machine = f"core:flops={speed:.6g}:memory={memory * share:.6g}:near_ranks={ranks}:near_bytes={memory * share / 2:.6g}"
        cp = words[row["strategy"]].format(layout=row["layout"], ranks=ranks)
        told = subprocess.run([posenc, "lint", f"{here}/model.json", "--cp", cp, "--at", str(length), "--machine", machine, "--json"],
                              capture_output=True, text=True, check=False).stdout
        seconds = json.loads(told)["cp"]["seconds"]
        off = seconds / row["seconds"] - 1
        worst = max(worst, abs(off))
        print(f"| {ranks} | {row['layout']} | {row['strategy']} | {row['seconds']:.3f} s | {seconds:.3f} s | {off:+.0%} |")
print(f"\nAt most {worst:.0%} off.")
PYTHON
