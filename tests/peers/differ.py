#!/usr/bin/env python3
"""Changes configurations at random and compares what posenc and transformers' own code make of each.

A change keeps the structure of a file: a key is set to a value that files have, dropped, said in another spelling or
place, or made null. Frequencies, amplitude, the rotated slice, pairing, windows, masks and the logits' scale are
compared layer by layer (compare.py). What differs without a warning is an error of posenc.

  tests/peers/differ.py                 2000 of them; prints the table of docs/families.md
  tests/peers/differ.py --count 20000 --seed 7 --jobs 2
  tests/peers/differ.py --only olmo3 --list        each that does not agree, as JSON
"""

import argparse
import collections
import json
import multiprocessing
import random
from pathlib import Path

import compare

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_hidden_layers": 8,
    "max_position_embeddings": 8192,
}
LATENT = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "kv_lora_rank": 32, "v_head_dim": 32}
SECTIONS = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 6, 6]}}
# Families of transformers whose attention the probe reaches, and what their small file needs.
FAMILIES = {
    **dict.fromkeys(
        """llama mistral mixtral phi phi3 phimoe gemma gpt_neox stablelm starcoder2 persimmon nemotron olmo olmo2 olmoe
        flex_olmo apertus arcee aria_text bitnet minimax_m2 granite granitemoe granitemoeshared nomic_bert
        internlm3 helium ernie4_5 ernie4_5_moe qwen2 qwen2_moe dots1 gemma2 vaultgemma olmo3 smollm3 lfm2
        modernbert modernbert-decoder exaone apertus1p5_text jetmoe""".split(),
        {},
    ),
    **dict.fromkeys(
        """ministral3 seed_oss glm glm4 glm4_moe qwen3 qwen3_moe qwen3_next gemma3_text gpt_oss cwm exaone4
        exaone_moe afmoe cohere2 cohere2_moe llama4_text""".split(),
        {"head_dim": 32},
    ),
    **dict.fromkeys("qwen3_5_text qwen3_5_moe_text".split(), {"head_dim": 256}),
    **dict.fromkeys(
        """hy_v3 solar_open muse_glimmer_text muse_spark_text kolibri1 flint laguna mellum mimo_v2_flash
        gemma4_unified_text minimax minimax_m3_vl_text sarvam_moe lara_mini nanochat molmo2_text
        higgs_audio_v2""".split(),
        {"head_dim": 32},
    ),
    **dict.fromkeys("jais2 granite_swa granitemoe_swa hyperclovax csm diffllama esmc gte ultrabert".split(), {}),
    "qwen3_vl_text": {"head_dim": 128, "rope_theta": 10000.0},
    **dict.fromkeys("hunyuan_v1_dense hunyuan_v1_moe ministral".split(), {"head_dim": 32, "rope_theta": 10000.0}),
    **dict.fromkeys("cohere eurobert".split(), {"rope_theta": 10000.0}),
    "gemma4_text": {"head_dim": 32, "num_kv_shared_layers": 0},
    "dory": {"head_dim": 32, "n_input_layers": 2, "n_output_layers": 2},
    **dict.fromkeys("gptj codegen".split(), {"rotary_dim": 16}),
    "esm": {"position_embedding_type": "rotary"},
    "hy_v4_vl_text": {**LATENT, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]}},
    **dict.fromkeys("qwen2_vl_text qwen2_5_vl_text".split(), SECTIONS),
    **dict.fromkeys("deepseek_v2 deepseek_v3 glm4_moe_lite youtu minicpm3 mistral4 glm_moe_dsa axk1 axk2 hy_v4 sarvam_mla".split(), LATENT),
}


# --- changes ----------------------------------------------------------------------------------------


def rope(r, head_dim):
    """Rope parameters of one type, in some spelling."""
    kind = r.choice(
        ["default", "linear", "dynamic", "yarn", "yarn", "yarn", "longrope", "llama3", "llama3", "proportional"]
    )
    p = {r.choice(["rope_type", "rope_type", "rope_type", "type"]): kind}
    if kind not in ("default", "proportional"):
        p["factor"] = r.choice([2, 4.0, 8.0, 2.5, 32.0])
    if kind in ("yarn", "longrope", "llama3") and r.random() < 0.8:
        p["original_max_position_embeddings"] = r.choice([1024, 2048, 4096])
    if kind == "yarn":
        extra = {"beta_fast": [32, 16.0, 64], "beta_slow": [1, 2.0], "mscale": [1.0, 0.707, 0], "truncate": [False, True],
                 "mscale_all_dim": [1.0, 0.707, 0], "attention_factor": [1.0, 0.9, None], "factor": [None]}  # fmt: skip
        for key, values in extra.items():
            if r.random() < 0.2:
                p[key] = r.choice(values)
    if kind == "longrope":
        pairs = head_dim // 2
        p |= {"short_factor": [1.0 + i / pairs for i in range(pairs)], "long_factor": [2.0 + i for i in range(pairs)]}
        if r.random() < 0.5:
            del p["factor"]
    if kind == "llama3":
        p |= {"low_freq_factor": r.choice([1, 1.0, 2.0]), "high_freq_factor": r.choice([4.0, 4, 8.0])}
    if r.random() < 0.4:
        p["rope_theta"] = r.choice([10000.0, 500000, 1000000.0])
    if r.random() < 0.15 or kind == "proportional":
        p["partial_rotary_factor"] = r.choice([0.25, 0.5, 0.75, 1.0])
    return p


def layer_types(r, layers):
    kinds = r.choice([["full_attention"], ["sliding_attention"], ["sliding_attention", "full_attention"],
                      ["sliding_attention"] * 3 + ["full_attention"]])  # fmt: skip
    return [kinds[i % len(kinds)] for i in range(layers)]


def head_dim_of(c):
    return c.get("qk_rope_head_dim") or c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


CHANGES = {
    "rope_theta": lambda r, c: r.choice([10000.0, 500000, 1000000.0, 150000]),
    "partial_rotary_factor": lambda r, c: r.choice([0.25, 0.5, 0.75, 1.0, 1]),
    "rope_scaling": lambda r, c: r.choice([None, {}, *[rope(r, head_dim_of(c)) for _ in range(6)]]),
    "rope_parameters": lambda r, c: r.choice([None, {}, *[rope(r, head_dim_of(c)) for _ in range(6)]]),
    "original_max_position_embeddings": lambda r, c: r.choice([1024, 2048, 4096]),
    "max_position_embeddings": lambda r, c: r.choice([4096, 8192, 16384, 131072]),
    "head_dim": lambda r, c: r.choice([16, 32, 64]),
    "num_key_value_heads": lambda r, c: r.choice([1, 2, 4, 8]),
    "sliding_window": lambda r, c: r.choice([None, 100, 512, 4096]),
    "use_sliding_window": lambda r, c: r.random() < 0.7,
    "max_window_layers": lambda r, c: r.choice([0, 2, 5, 8]),
    "layer_types": lambda r, c: r.choice([None, layer_types(r, c["num_hidden_layers"])]),
    "sliding_window_pattern": lambda r, c: r.choice([2, 3, 4]),
    "global_attn_every_n_layers": lambda r, c: r.choice([2, 4]),
    "local_attention": lambda r, c: r.choice([64, 128]),
    "no_rope_layers": lambda r, c: [r.randint(0, 1) for _ in range(c["num_hidden_layers"])],
    "no_rope_layer_interval": lambda r, c: r.choice([2, 3, 4]),
    "attention_chunk_size": lambda r, c: r.choice([512, 1024]),
    "rotary_emb_base": lambda r, c: r.choice([10000, 500000.0]),
    "rotary_pct": lambda r, c: r.choice([0.25, 0.5, 1.0]),
    "rotary_dim": lambda r, c: r.choice([8, 16, 32]),
    "rope_local_base_freq": lambda r, c: r.choice([10000.0, 20000.0]),
    "global_rope_theta": lambda r, c: r.choice([160000.0, 10000.0]),
    "local_rope_theta": lambda r, c: r.choice([10000.0, 30000.0]),
    "query_pre_attn_scalar": lambda r, c: r.choice([256, 32, 144.0]),
    "attention_multiplier": lambda r, c: r.choice([1.0, 0.125]),
    "rope_interleave": lambda r, c: r.random() < 0.5,
    "is_causal": lambda r, c: r.random() < 0.5,
    "use_bidirectional_attention": lambda r, c: r.random() < 0.5,
    "mlp_layer_types": lambda r, c: ["dense"] * 2 + ["sparse"] * (c["num_hidden_layers"] - 2),
}
WEIGHTS = {"rope_scaling": 6, "rope_parameters": 6, "rope_theta": 3, "partial_rotary_factor": 2, "layer_types": 3,
           "sliding_window": 3, "use_sliding_window": 2}  # fmt: skip


def by_type(r, c):
    """Rope parameters for each kind of layer."""
    kinds = sorted(set(c.get("layer_types") or ["full_attention", "sliding_attention"]))
    return {kind: rope(r, head_dim_of(c)) for kind in kinds}


def mutant(family, seed):
    r = random.Random(f"{family} {seed}")
    c = {"model_type": family, **SIZES, **FAMILIES[family]}
    names = list(CHANGES)
    for _ in range(r.choice([1, 1, 2, 2, 3, 4])):
        if r.random() < 0.08:
            c["rope_parameters"] = by_type(r, c)
            continue
        if r.random() < 0.05:
            c.pop(r.choice([k for k in c if k not in ("model_type", "num_hidden_layers")]))
            c = {**c, **{k: v for k, v in SIZES.items() if k in ("hidden_size", "num_attention_heads")}}
            continue
        key = r.choices(names, [WEIGHTS.get(n, 1) for n in names])[0]
        c[key] = CHANGES[key](r, c)
    return c


# --- comparing --------------------------------------------------------------------------------------


def one(task):
    family, seed = task
    config = mutant(family, seed)
    outcome, why, warnings = compare.judge(config, by_modules=False)
    return outcome, why, warnings, config


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--only", help="one model_type")
    parser.add_argument("--list", action="store_true", help="each that does not agree, as JSON")
    options = parser.parse_args()

    families = [options.only] if options.only else sorted(FAMILIES)
    tasks = [(families[i % len(families)], options.seed * 1_000_000 + i) for i in range(options.count)]
    counts, kinds = collections.Counter(), collections.defaultdict(collections.Counter)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for outcome, why, warnings, config in pool.imap_unordered(one, tasks, chunksize=20):
            counts[outcome] += 1
            if outcome in (compare.WRONG, compare.WRONG_WARNED, compare.POSENC_ACCEPTS, compare.POSENC_REFUSES):
                short = why.split(": got")[0][-90:] if outcome == compare.POSENC_REFUSES else why[:60]
                kinds[outcome][f"{config['model_type']}: {short}"] += 1
                if options.list:
                    print(
                        json.dumps({"outcome": outcome, "why": why, "warnings": warnings, "config": config}), flush=True
                    )
    print(f"| of {options.count} changed files of {len(families)} families | |\n|---|---|")
    for outcome in compare.OUTCOMES:
        print(f"| {outcome} | {counts[outcome]} |")
    if not options.list:
        for outcome in (compare.WRONG, compare.WRONG_WARNED, compare.POSENC_ACCEPTS, compare.POSENC_REFUSES):
            for kind, count in kinds[outcome].most_common(15):
                print(f"{outcome}: {count} {kind}")


if __name__ == "__main__":
    main()
