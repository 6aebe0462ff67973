#!/usr/bin/env python3
"""Whether each cell of "Can I use" (docs/site/can_i_use.py) that is red, or has no class, is what the engine's own code does.

  tests/peers/cells.py              every engine whose package can be unpacked, a process each
  tests/peers/cells.py ENGINE …     these

Each model is made with fewer and narrower layers, whose heads rotate as the model's own do; the engine's class and `posenc
explain` get the same file. A line a cell; 1 where the engine does what the page denies, or cannot be run though it should.
POSENC names the command (build/release/posenc). Packages: tests/peers/engines.py --fetch.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import engines
from engines import ENGINES, ROOT

POSENC = os.environ.get("POSENC", ROOT / "build/release/posenc")
NOT_HERE = {
    "ollama": "it is a program in Go",
    "tensorrt-llm": "it is on no package index",
    "tgi": "it is on no package index",
    "lightllm": "it is on no package index, and imports CUDA",
    "deepspeed": "its rotation is a CUDA kernel",
}


def cells():
    """(engine, version, model, cell) of all that are red or have no class."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "cells.json")
        page = [sys.executable, ROOT / "docs/site/can_i_use.py", out]
        subprocess.run(page, check=True, cwd=ROOT / "docs/site", env={**os.environ, "POSENC": str(POSENC)})
        rows = json.loads(out.read_text())
    for row in rows:
        for cell in row["engines"]:
            if cell["outcome"] in ("other", "refused", "no_class"):
                yield cell["engine"], cell["version"], row["model"], cell


def smaller(config):
    """The same heads, in few layers of little width."""
    text = config.get("text_config") or config
    if "hidden_size" not in text:  # other names, of families that no engine here has
        return config
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    kinds = text.get("layer_types") or []
    pattern = text.get("sliding_window_pattern") or 1
    layers = max([2, min(pattern + 1, 8)] + [kinds.index(kind) + 1 for kind in kinds])
    text.update(
        num_hidden_layers=layers,
        num_attention_heads=2,
        hidden_size=2 * head_dim,
        intermediate_size=64,
        vocab_size=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    if "num_key_value_heads" in text:
        text["num_key_value_heads"] = 2 if text.get("qk_rope_head_dim") else 1
    for name, few in {
        **{"moe_intermediate_size": 64, "n_routed_experts": 4, "num_local_experts": 4, "num_experts": 4, "topk_group": 1},
        **{"n_group": 1, "num_experts_per_tok": 2, "q_lora_rank": 32, "kv_lora_rank": 32, "vocab_size_per_layer_input": 64},
        **{"intermediate_size_mlp": 64, "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 0},
    }.items():
        if text.get(name):
            text[name] = few
    for name in ("layer_types", "no_rope_layers", "moe_layers"):
        if text.get(name):
            text[name] = text[name][:layers] if name != "moe_layers" else [i for i in text[name] if i < layers]
    # Keys that files here, which are abridged, lack and classes ask for.
    for name, usual in {"rms_norm_eps": 1e-6, "dim_model_base": 64, "scale_emb": 1, "scale_depth": 1}.items():
        text.setdefault(name, usual)
    config.pop("quantization_config", None)
    return config


def explained(config, length):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.json")
        file.write_text(json.dumps(config))
        at = ["--at", str(length)] if length else []
        out = subprocess.run([POSENC, "explain", file, "--json", *at], capture_output=True, text=True)
    if out.returncode:
        raise ValueError(out.stderr.strip())
    groups = json.loads(out.stdout)["groups"]
    return {layer: g for g in groups if g["stack"] in ("text", "decoder") for layer in g["layers"]}


def near(a, b, share):
    return abs(a - b) <= share * max(abs(b), 1e-9)


def differs(layer, plan):
    """What the engine's layer does otherwise than the plan of the file, "" where nothing."""
    if "error" in layer:
        return "refused: " + layer["error"]
    rotate = plan and plan["rotate"]
    if not rotate:
        return "rotates a layer that the file does not"
    meant = rotate["frequencies"][0]
    if layer["rotary_dim"] != rotate["rotary_dim"] or layer["pairing"] != rotate["pairing"]:
        return f"{layer['rotary_dim']} channels by {layer['pairing']}, not {rotate['rotary_dim']} by {rotate['pairing']}"
    wrong = [r for r, (a, b) in enumerate(zip(layer["frequency"], meant)) if not near(a, b, 5e-6)]
    if wrong:
        return f"pairs {wrong[0]}–{wrong[-1]} of {len(meant)} have other frequencies"
    if not near(layer["amplitude"], rotate["amplitude"], 1e-4):
        return f"cos and sin by {layer['amplitude']:.5g}, not {rotate['amplitude']:.5g}"
    if not near(layer.get("logits", 1), plan["logits"]["multiplier"], 1e-3):
        return f"logits by {layer.get('logits', 1):.5g}, not {plan['logits']['multiplier']:.5g}"
    return ""


def seen(engine, config):
    """What the engine's own code does otherwise than the file says, "" where nothing."""
    from engine import Refused

    text = config.get("text_config") or config
    for length in engines.lengths({"max_position_embeddings": 4096, **text}):
        try:
            layers = list(engine.run(json.loads(json.dumps(config)), length))
        except Refused as refused:
            return "refused: " + str(refused).split("\n")[0]
        ours = explained(config, length)
        for index, layer in enumerate(layers):
            if index in ours and (said := differs(layer, ours[index]["plan"])):
                return said + (f" (started for {length:,} tokens)" if length else "")
    return ""


def model(name):
    """The file, with the class that transformers has for its family where it names none."""
    from transformers.models.auto import modeling_auto as auto

    found = (ROOT / folder / f"{name}.json" for folder in ("models", "tests/data/zoo"))
    config = json.loads(next(path for path in found if path.exists()).read_text())
    for classes in (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_MAPPING_NAMES):
        config.setdefault("architectures", [classes.get(config["model_type"])])
        if config["architectures"] == [None]:
            del config["architectures"]
    return config


def run(name, wanted):
    """The cells of one engine, in this process: two of them want different versions of one package."""
    module, needs = ENGINES[name]
    sys.path[:0] = [str(ROOT / "build/engines" / engines.folder_of(package)) for package in needs]
    engine = importlib.import_module(f"engine.{module}")
    wrong = 0
    for which, config, cell in wanted:
        try:
            said = seen(engine, smaller(config))
        except Exception as error:
            said, mark = f"{type(error).__name__}: {error}", "!"
        else:
            mark = "✓" if said and said.startswith("refused") == (cell["outcome"] != "other") else "✗"
        wrong += mark != "✓"
        print(f"{mark} {name:18} {which:22} {(said or 'does what the file says')[:110]}", flush=True)
        if mark == "✗":
            print(f"  {'':18} {'the page:':22} {cell['why'][0][:110]}", flush=True)
    return wrong


def harness(engine, version):
    return "transformers-4" if engine == "transformers" and version.startswith("4") else engine


def main():
    if sys.argv[1:2] == ["--cells"]:  # of one engine, from standard input
        sys.exit(min(run(sys.argv[2], json.load(sys.stdin)), 100))
    by_engine = {}
    for engine, version, which, cell in cells():
        by_engine.setdefault(harness(engine, version), []).append((which, model(which), cell))
    wrong = total = 0
    for name, wanted in sorted(by_engine.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        if name in NOT_HERE:
            print(f"- {name:18} {len(wanted)} cells are read, not run: {NOT_HERE[name]}", flush=True)
            continue
        ran = subprocess.run([sys.executable, __file__, "--cells", name], input=json.dumps(wanted), text=True)
        wrong, total = wrong + ran.returncode, total + len(wanted)
    print(f"{total - wrong} of {total} cells are what the engine's own code does")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
