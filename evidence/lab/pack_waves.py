#!/usr/bin/env python3
"""Which waves each head of a real model uses, small enough for the playground's panels `heads` and `extend`.

  posenc lab waves MODEL.gguf book.txt --skip 20000 --json | evidence/lab/pack_waves.py      writes web/src/assets/waves.bin

A byte for each head and pair, by layer, head and pair: the pair's share of the head's |q||k| over the largest share, times 255.
"""

import json
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / "web/src/assets/waves.bin"

heads = json.load(sys.stdin)["heads"]
heads.sort(key=lambda head: (head["layer"], head["head"]))
OUT.write_bytes(bytes(round(255 * share / max(head["waves"])) for head in heads for share in head["waves"]))
print(f"{OUT.name}: {len(heads)} heads, {OUT.stat().st_size} bytes")
