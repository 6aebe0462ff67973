#!/usr/bin/env python3
"""Writes tests/data/golden/readings.json: configurations that are easily read otherwise than transformers reads
them, and what its own code makes of each (hugging_face.py). One line of CASES a configuration: model_type, keys, and
the warning that stands for agreement where posenc reads on purpose otherwise.

  tests/peers/readings.py          writes the file
  tests/peers/readings.py --show   says what posenc makes of each
"""

import json
import sys
from pathlib import Path

import compare
import hugging_face

OUT = Path(__file__).resolve().parents[1] / "data/golden/readings.json"
BASE = {
    "hidden_size": 256,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "num_hidden_layers": 8,
    "max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}
LINEAR = {"rope_type": "linear", "factor": 4.0}
LONG = {
    "type": "longrope",
    "short_factor": [1.0 + i / 32 for i in range(16)],
    "long_factor": [2.0 + i for i in range(16)],
    "original_max_position_embeddings": 1024,
}
LATENT = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "kv_lora_rank": 32, "v_head_dim": 16, "q_lora_rank": 32}
V4 = {"num_key_value_heads": 1, "head_dim": 64, "qk_rope_head_dim": 16, "compress_rope_theta": 40000.0, "sliding_window": 64}
V4_RATIOS = [0, 0, 4, 128, 4, 128, 4, 0]
ALL_FULL = ["full_attention"] * 8
SOME_SLIDE = ["sliding_attention", "full_attention"] * 4


def by_type(sliding, full):
    return {"sliding_attention": sliding, "full_attention": full}


CASES = {
    # DeepSeek-V4: base and scaling by what a layer compresses; labels that are no layer types.
    "deepseek_v4-hub": ("deepseek_v4", {**V4, "rope_scaling": {**YARN, "type": "yarn"}, "compress_ratios": V4_RATIOS}),
    "deepseek_v4-default": ("deepseek_v4", {"num_key_value_heads": 1, "head_dim": 512}),
    "deepseek_v4-partial": (
        "deepseek_v4",
        {**V4, "qk_rope_head_dim": None, "partial_rotary_factor": 0.5, "rope_parameters": LINEAR},
    ),
    "deepseek_v4-saved": (
        "deepseek_v4",
        {
            **V4,
            "layer_types": ["sliding_attention", "compressed_sparse_attention"] * 4,
            "rope_parameters": {
                "main": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.25},
                "compress": {**YARN, "rope_theta": 80000.0, "partial_rotary_factor": 0.25},
            },
        },
    ),
    # Who sees what, and how wide a head is, by keys that most families do not read.
    "llama4_text-all-full": ("llama4_text", {"head_dim": 32, "layer_types": ALL_FULL}),
    "glm4_moe_lite-head_dim": ("glm4_moe_lite", {**LATENT, "head_dim": 32}),
    "modernbert-decoder-flat-theta": (
        "modernbert-decoder",
        {"head_dim": 32, "local_rope_theta": 30000.0, "rope_scaling": {**LINEAR, "rope_theta": 500000.0}},
    ),
    # The class's own default is scaled.
    "gpt_oss-default": ("gpt_oss", {"head_dim": 32}),
    "gpt_oss-theta": ("gpt_oss", {"head_dim": 32, "rope_theta": 10000.0}),
    "gpt_oss-empty": ("gpt_oss", {"head_dim": 32, "rope_parameters": {}}),
    "apertus-default": ("apertus", {}),
    "apertus-theta": ("apertus", {"rope_theta": 500000.0}),
    "cwm-default": ("cwm", {"head_dim": 32}),
    "cwm-theta": ("cwm", {"head_dim": 32, "rope_theta": 500000.0}),
    "ministral3-default": ("ministral3", {"head_dim": 32}),
    "mistral4-default": (
        "mistral4",
        {"qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "kv_lora_rank": 32, "v_head_dim": 16},
    ),
    "gemma4_text-theta": ("gemma4_text", {"rope_theta": 500000.0, "head_dim": 32, "num_kv_shared_layers": 0}),
    "beam-default": ("beam", {"head_dim": 32}),
    "beam-full-rotates": (
        "beam",
        {
            "head_dim": 32,
            "layer_types": SOME_SLIDE,
            "rope_parameters": by_type(None, {"rope_type": "default", "rope_theta": 500.0}),
        },
    ),
    "mistral_large4_text-default": ("mistral_large4_text", LATENT),
    "mistral_large4_text-interval": ("mistral_large4_text", {**LATENT, "no_rope_layer_interval": 2}),
    "mistral_large4_text-layers": ("mistral_large4_text", {**LATENT, "no_rope_layers": [1, 0, 0, 1] * 2}),
    # Each code reads its own spelling.
    "gpt_neox-rope_theta": ("gpt_neox", {"rope_theta": 500000.0}),
    "gpt_neox-partial_rotary_factor": ("gpt_neox", {"partial_rotary_factor": 0.5}),
    "gpt_neox-both": (
        "gpt_neox",
        {"rope_theta": 500000.0, "rotary_emb_base": 20000, "partial_rotary_factor": 0.5, "rotary_pct": 1.0},
    ),
    "llama-rotary_pct": ("llama", {"rotary_pct": 0.5}),
    "llama-rotary_dim": ("llama", {"rotary_dim": 16}),
    "gemma-global_rope_theta": ("gemma", {"global_rope_theta": 500000.0}),
    "seed_oss-global_rope_theta": ("seed_oss", {"global_rope_theta": 500000.0}),
    "olmo3-global_rope_theta": ("olmo3", {"global_rope_theta": 10000.0}),
    "modernbert-rope_theta": ("modernbert", {"rope_theta": 500000.0}),
    "modernbert-scaling": ("modernbert", {"rope_scaling": LINEAR}),
    "minimax_m2-rotary_dim": ("minimax_m2", {"rotary_dim": 16, "head_dim": 32}),
    "persimmon-default": ("persimmon", {}),
    "cohere2_moe-rope_scaling": ("cohere2_moe", {"rope_scaling": LINEAR, "head_dim": 32}),
    # The part of a head that rotates.
    **{
        f"{kind}-partial": (kind, {"partial_rotary_factor": 0.5})
        for kind in (
            "mistral",
            "mixtral",
            "qwen2",
            "qwen3",
            "gemma2",
            "olmo2",
            "cohere2",
            "exaone4",
            "smollm3",
            "phimoe",
            "lfm2",
            "seed_oss",
            "starcoder2",
            "granite",
            "helium",
            "ernie4_5",
        )
    },
    "qwen3_moe-partial": ("qwen3_moe", {"partial_rotary_factor": 0.5, "head_dim": 32}),
    "llama-partial": ("llama", {"partial_rotary_factor": 0.5}, "partial_disputed"),
    "llama-partial-inside": (
        "llama",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
        "partial_disputed",
    ),
    "phi-partial-twice": (
        "phi",
        {"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}},
    ),
    "glm4-partial-twice": (
        "glm4",
        {"head_dim": 32, "partial_rotary_factor": 0.5, "rope_scaling": {**LINEAR, "partial_rotary_factor": 0.25}},
    ),
    "stablelm-partial-twice": (
        "stablelm",
        {"partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}},
    ),
    # Trained lengths, truncate, factors.
    "phi3-original-inside": ("phi3", {"rope_scaling": LONG}),
    "gemma3_text-truncate": (
        "gemma3_text",
        {
            "head_dim": 32,
            "rope_parameters": by_type(
                {"rope_type": "default", "rope_theta": 10000.0}, {**YARN, "rope_theta": 1000000.0, "truncate": False}
            ),
        },
    ),
    "olmo3-truncate": ("olmo3", {"rope_scaling": {**YARN, "truncate": False}}),
    "gemma3_text-flat": ("gemma3_text", {"head_dim": 32, "rope_parameters": {**LINEAR, "rope_theta": 20000.0}}),
    "gemma3_text-type": (
        "gemma3_text",
        {"head_dim": 32, "rope_scaling": {"type": "linear", "factor": 4.0}},
        "old_type",
    ),
    "olmo3-theta": ("olmo3", {"rope_theta": 20000.0}),
    "llama-yarn-without-factor": (
        "llama",
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "original_max_position_embeddings": 2048}},
        "factor_missing",
    ),
    "llama-yarn-null-factor": (
        "llama",
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": None,
                "original_max_position_embeddings": 2048,
            }
        },
    ),
    # Which layers slide, and which rotate.
    "dots1-window": ("dots1", {"sliding_window": 100, "max_window_layers": 5}),
    "qwen3_moe-window": (
        "qwen3_moe",
        {"head_dim": 32, "use_sliding_window": True, "sliding_window": 100, "max_window_layers": 5},
    ),
    "qwen2_moe-window": ("qwen2_moe", {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 5}),
    "qwen2-window": ("qwen2", {"use_sliding_window": True, "sliding_window": 100, "max_window_layers": 5}),
    "smollm3-window": ("smollm3", {"use_sliding_window": True, "sliding_window": 100}),
    "mistral-unread-switch": ("mistral", {"use_sliding_window": False, "sliding_window": 100}),
    "cohere2_moe-dense": ("cohere2_moe", {"head_dim": 32, "first_k_dense_replace": 2}),
    "cohere2_moe-dense-saved": (
        "cohere2_moe",
        {"head_dim": 32, "layer_types": SOME_SLIDE, "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 6},
    ),
    **{
        f"{kind}-all-full": (kind, {"layer_types": ALL_FULL, "sliding_window": 100, "head_dim": 32})
        for kind in ("cohere2", "exaone4", "exaone_moe", "afmoe")
    },
    "exaone4-no-window": ("exaone4", {"sliding_window": None, "layer_types": ALL_FULL, "head_dim": 32}),
    # Who sees whom, and keys of other families' windows.
    "llama-not-causal": ("llama", {"is_causal": False}),
    "gemma3_text-not-causal": ("gemma3_text", {"head_dim": 32, "is_causal": False, "sliding_window": 100}),
    "llama-bidirectional": ("llama", {"use_bidirectional_attention": True}),
    "gemma2-bidirectional": ("gemma2", {"use_bidirectional_attention": True}),
    "gemma3_text-bidirectional": ("gemma3_text", {"head_dim": 32, "use_bidirectional_attention": True}),
    "mistral-chunk": ("mistral", {"attention_chunk_size": 512}),
    "llama4_text-no-window": ("llama4_text", {"head_dim": 32, "sliding_window": None}),
    "gemma2-pattern": ("gemma2", {"sliding_window_pattern": 4}),
    "exaone4-every": ("exaone4", {"head_dim": 32, "global_attn_every_n_layers": 2}),
    "afmoe-every": ("afmoe", {"head_dim": 32, "global_attn_every_n_layers": 2}),
    "internlm3-default": ("internlm3", {}),
    "minicpm3-proportional": (
        "minicpm3",
        {
            "qk_nope_head_dim": 16,
            "qk_rope_head_dim": 16,
            "kv_lora_rank": 32,
            "v_head_dim": 32,
            "rope_parameters": {"rope_type": "proportional", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        },
    ),
    "mistral-all-full": ("mistral", {"layer_types": ALL_FULL}, "layer_types_unread"),
    "qwen2-switched-off": ("qwen2", {"layer_types": SOME_SLIDE, "sliding_window": 100}, "window_switched_off"),
    # Parameters by layer type, where the class knows none, or null.
    "mistral-by-type": (
        "mistral",
        {"rope_theta": 30000.0, "rope_parameters": by_type({"rope_theta": 10000.0}, {"rope_theta": 500000.0})},
        "layer_types_unread",
    ),
    # Families whose class says more than their files.
    **{
        f"{kind}-default": (kind, {"head_dim": 32})
        for kind in (
            "hy_v3",
            "solar_open",
            "minimax_m3_vl_text",
            "muse_glimmer_text",
            "muse_spark_text",
            "mimo_v2_flash",
            "laguna",
            "mellum",
            "lfm3",
            "kolibri1",
            "flint",
            "minimax",
            "openai_privacy_filter",
        )
    },
    **{
        f"{kind}-default": (kind, {})
        for kind in (
            "jais2",
            "csm",
            "diffllama",
            "esmc",
            "gte",
            "jina_embeddings_v3",
            "ultrabert",
            "granite_swa",
            "granitemoe_swa",
            "hyperclovax",
        )
    },
    "higgs_audio_v2-default": ("higgs_audio_v2", {"head_dim": 32}),
    "gptj-default": ("gptj", {"num_attention_heads": 2, "num_key_value_heads": 2}),
    "gptj-rotary_dim": ("gptj", {"rotary_dim": 16}),
    "codegen-default": ("codegen", {"hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 4}),
    "codegen-whole": ("codegen", {"rotary_dim": 32}),
    **{
        f"{kind}-bases": (
            kind,
            {"head_dim": 32, "layer_rope_theta": [0, 10000, 10000, 500000] * 2, "rope_theta": 10000.0},
        )
        for kind in ("muse_glimmer_text", "muse_spark_text", "granite_swa")
    },
    "muse_spark_text-multiplier": ("muse_spark_text", {"head_dim": 32, "qk_scale_factor": 2.0}),
    "granite_swa-multiplier": ("granite_swa", {"attention_multiplier": 0.25}),
    "hyperclovax-multiplier": ("hyperclovax", {"attention_multiplier": 0.25}),
    "kolibri1-all-full": ("kolibri1", {"head_dim": 32, "layer_types": ALL_FULL}),
    "flint-all-full": ("flint", {"head_dim": 32, "layer_types": ALL_FULL}),
    "ultrabert-window": ("ultrabert", {"sliding_window": 64, "layer_types": SOME_SLIDE}),
    "gemma4_unified_text-default": ("gemma4_unified_text", {"head_dim": 32, "global_head_dim": 64}),
    "gemma4_text-bidirectional": (
        "gemma4_text",
        {"head_dim": 32, "num_kv_shared_layers": 0, "use_bidirectional_attention": "all", "sliding_window": 100},
    ),
    "gemma4_unified_text-bidirectional": (
        "gemma4_unified_text",
        {"head_dim": 32, "use_bidirectional_attention": "all", "sliding_window": 100},
    ),
    "embedding_gemma2_text-default": ("embedding_gemma2_text", {"head_dim": 32, "global_head_dim": 64}),
    "zamba2-rope": (
        "zamba2",
        {"use_mem_rope": True, "layers_block_type": ["mamba", "hybrid"] * 4, "num_mem_blocks": 1},
    ),
    **{f"{kind}-default": (kind, {"head_dim": 32}) for kind in ("nanochat", "molmo2_text", "moshi")},
    "olmo_hybrid-default": ("olmo_hybrid", {}),
    "olmo_hybrid-parameters-null": ("olmo_hybrid", {"rope_parameters": None}),
    "olmo_hybrid-theta-null": ("olmo_hybrid", {"rope_parameters": {"rope_type": "default", "rope_theta": None}}),
    "zamba2-default": ("zamba2", {"layers_block_type": ["mamba", "hybrid"] * 4, "num_mem_blocks": 1}),
    # Nothing rotates.
    **{f"{kind}-default": (kind, {}) for kind in ("albert", "imagegpt", "layoutlm", "rembert", "tapas", "luke", "dpr")},
    # Latent attention.
    **{f"{kind}-default": (kind, LATENT) for kind in ("glm_moe_dsa", "axk1", "axk2", "hy_v4", "kimi_linear")},
    "bailing_hybrid-all-full": ("bailing_hybrid", {**LATENT, "layer_types": ALL_FULL}),
    "kimi_linear-all-full": ("kimi_linear", {**LATENT, "layer_types": ALL_FULL}),
    **{
        f"{kind}-yarn": (kind, {**LATENT, "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.707}})
        for kind in ("glm_moe_dsa", "axk1", "axk2", "hy_v4")
    },
    "axk1-halves": ("axk1", {**LATENT, "rope_interleave": False}),
    # Model types of transformers 5.24.
    **{f"{kind}-default": (kind, {"head_dim": 32}) for kind in ("sarvam_moe", "lara_mini", "dory")},
    **{f"{kind}-default": (kind, {}) for kind in ("exaone", "apertus1p5_text")},
    "sarvam_moe-partial": ("sarvam_moe", {"head_dim": 32, "partial_rotary_factor": 0.5}),
    "sarvam_mla-default": ("sarvam_mla", LATENT),
    "sarvam_mla-hub": (
        "sarvam_mla",
        {
            **LATENT,
            "head_dim": 48,
            "rope_scaling": {
                "type": "deepseek_yarn",
                "factor": 4,
                "original_max_position_embeddings": 2048,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
        },
    ),
    "hy_v4_vl_text-default": ("hy_v4_vl_text", {**LATENT, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]}}),
    "dory-blocks": (
        "dory",
        {
            "head_dim": 32,
            "num_hidden_layers": 16,
            "n_input_layers": 4,
            "n_output_layers": 4,
            "layer_types": [kind for each in SOME_SLIDE for kind in (each, "mlp")],
        },
    ),
    "lara_mini-all-full": ("lara_mini", {"head_dim": 32, "layer_types": ALL_FULL}),
    # Keys that a family's code passes over, and what they would say.
    **{
        f"{kind}-scaling": (kind, {"rope_scaling": LINEAR, "num_attention_heads": 2, "num_key_value_heads": 2})
        for kind in ("gptj", "codegen")
    },
    "gptj-partial": (
        "gptj",
        {"rotary_dim": 16, "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}},
    ),
    "esm-scaling": ("esm", {"position_embedding_type": "rotary", "rope_scaling": LINEAR}),
    # The part of a head that a class rotates where the file names none, by a type that has the key itself.
    **{
        f"{kind}-proportional": (kind, {"rope_scaling": {"rope_type": "proportional"}, **more})
        for kind, more in (
            ("glm", {"head_dim": 32}),
            ("glm4", {"head_dim": 32}),
            ("glm4_moe", {"head_dim": 32}),
            ("qwen3_next", {"head_dim": 32}),
            ("nemotron", {}),
            ("gpt_neox", {}),
        )
    },
    # Windows and chunks that a key turns off or counts otherwise.
    "llama4_text-no-chunk": ("llama4_text", {"head_dim": 32, "attention_chunk_size": None}),
    "mimo_v2_flash-hub": ("mimo_v2_flash", {"head_dim": 32, "sliding_window": 128, "sliding_window_size": 128}),
    "minimax_m3_vl_text-saved": (
        "minimax_m3_vl_text",
        {"head_dim": 32, "index_head_dim": 32, "layer_types": ["full_attention", "minimax_m3_sparse"] * 4},
    ),
    "minimax_m3_vl_text-frequency": (
        "minimax_m3_vl_text",
        {"head_dim": 32, "sparse_attention_config": {"sparse_attention_freq": [0, 1] * 4, "sparse_index_dim": 32}},
    ),
    # One set of parameters for all layers, and a file that has one for each type: the class fails.
    **{
        f"{kind}-by-type": (
            kind,
            {"head_dim": 32, "rope_parameters": by_type({"rope_theta": 10000.0}, {"rope_theta": 500000.0})},
            "layer_types_unread",
        )
        for kind in ("qwen3", "gpt_oss", "cohere2", "exaone4", "cwm", "afmoe")
    },
    "qwen2-by-type-null": ("qwen2", {"rope_parameters": by_type({"rope_theta": 10000.0}, None)}, "null_parameters"),
}


def main():
    show = "--show" in sys.argv
    records = []
    for name, (kind, more, *warning) in CASES.items():
        config = {"model_type": kind, **BASE, **more}
        if show:
            print(name, compare.judge(config))
            continue
        record = {"name": name, "config": config}
        if warning:
            record["warning"] = warning[0]
        try:
            layers = hugging_face.run(config)
        except hugging_face.Refused as refused:
            record["refused"] = str(refused)
            layers = []
        if any(layer["rotation"] == "unknown" for layer in layers) or not (layers or warning):
            sys.exit(f"{name}: {record.get('refused', 'a rotation that no rotary module has')}")
        sets = record["sets"] = []
        record["layers"] = []
        for layer in layers:
            if layer not in sets:
                sets.append(layer)
            record["layers"].append(sets.index(layer))
        records.append(record)
    if not show:
        text = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
        generator = f"transformers {hugging_face.VERSION}: each family's own model run without weights by tests/peers/readings.py"
        OUT.write_text('{"generator":' + json.dumps(generator) + ',\n"records":[\n' + text + "\n]}\n")


if __name__ == "__main__":
    main()
