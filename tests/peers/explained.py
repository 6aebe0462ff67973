"""What posenc makes of a configuration, layer by layer, in the words of hugging_face.py."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

# The built command, or another that the environment names.
POSENC = os.environ.get("POSENC", Path(__file__).resolve().parents[2] / "build/release/posenc")


class Refused(Exception):
    """posenc does not take the configuration."""


def explain(raw, length=None):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(raw, file)
        file.flush()
        at = ["--at", str(length)] if length else []
        done = subprocess.run([POSENC, "explain", file.name, "--json", *at], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr.strip()[:500])
    return json.loads(done.stdout)


def run(raw, length=None):
    """([{rotation, window, chunked, causal, scaling, head_dim}] by layer, the warnings' codes)."""
    model = explain(raw, length)
    layers = {}
    for group in model["groups"]:
        if group["stack"] in ("vision", "audio"):
            continue
        rotate, logits = group["plan"]["rotate"], group["plan"]["logits"]
        has_attention = group["mixer"] == "attention"
        seen = None
        if has_attention:
            seen = {
                "rotation": rotate
                and {
                    "pairing": rotate["pairing"],
                    "first_dim": rotate["first_dim"],
                    "rotary_dim": rotate["rotary_dim"],
                    "attention_factor": rotate["amplitude"],
                    "inv_freq": rotate["frequencies"][0],
                },
                "window": group["window"],
                "chunked": group["chunked"],
                "causal": group["causal"],
                "scaling": group["head_dim"] and logits["multiplier"] / group["head_dim"] ** 0.5,
                "head_dim": group["head_dim"],
                "logits": logits,
            }
        for layer in group["layers"]:
            layers[layer] = seen
    return [layers[i] for i in sorted(layers) if layers[i]], [w["code"] for w in model["warnings"]]


def structure(raw):
    """(what structure.py sees of a model, as posenc says it: [{stack, layers, head_dim, table}], the warnings' codes)."""
    model = explain(raw)
    stacks = []
    for group in model["groups"]:
        cross = (group["cache_note"] or "").startswith("keys and values are the picture's")
        if group["mixer"] != "attention" or cross:
            continue
        add = group["plan"]["add"] or {}
        same = {
            "stack": group["stack"],
            "head_dim": group["head_dim"],
            "table": [add["rows"], add["width"]] if add.get("kind") == "rows" else None,
        }
        for stack in stacks:
            if all(stack[key] == same[key] for key in same):
                stack["layers"] += len(group["layers"])
                break
        else:
            stacks.append({**same, "layers": len(group["layers"])})
    return stacks, [w["code"] for w in model["warnings"]]
