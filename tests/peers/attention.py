#!/usr/bin/env python3
"""The attention of families whose softmax is not the usual one, on random queries, keys and values: each family's own
rotary module and its own eager attention, in double, recorded in tests/data/golden/attention.json with what went in.

  tests/peers/attention.py > tests/data/golden/attention.json
"""

import json
import os
import sys
import types

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from transformers.models.beam import configuration_beam, modeling_beam
from transformers.models.gemma2 import configuration_gemma2, modeling_gemma2
from transformers.models.gpt_oss import configuration_gpt_oss, modeling_gpt_oss
from transformers.models.mistral_large4 import configuration_mistral_large4, modeling_mistral_large4

torch.set_default_dtype(torch.float64)

BATCH, HEADS, KV_HEADS, TOKENS, HEAD_DIM = 1, 4, 2, 7, 8


def numbers(x):
    return x.detach().flatten().tolist()


def random(*shape):
    """Numbers of few digits."""
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float64)


def mask_of(window):
    """What transformers adds to the logits of a causal layer, that slides where there is a window."""
    at = torch.arange(TOKENS)
    away = at[:, None] - at[None, :]
    seen = (away >= 0) & (away < (window or TOKENS))
    return torch.zeros(TOKENS, TOKENS).masked_fill(~seen, float("-inf"))[None, None]


def record(family, config, layer, module, rotary, apply, attention, window, inputs, **more):
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    cos, sin = rotary(v, torch.arange(TOKENS)[None])
    q, k = apply(q, k, cos.double(), sin.double())
    out, _ = attention(module, q, k, v, mask_of(window), **more)
    shapes = {"batch": BATCH, "heads": HEADS, "kv_heads": KV_HEADS, "tokens": TOKENS, "head_dim": HEAD_DIM}
    return {
        "family": family,
        "config": config,
        "layer": layer,
        "window": window,
        **shapes,
        **{name: numbers(each) for name, each in inputs.items()},
        "out": numbers(out.transpose(1, 2)),
    }


def inputs(**more):
    return {
        "q": random(BATCH, HEADS, TOKENS, HEAD_DIM),
        "k": random(BATCH, KV_HEADS, TOKENS, HEAD_DIM),
        "v": random(BATCH, KV_HEADS, TOKENS, HEAD_DIM),
        **more,
    }


SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": HEADS * HEAD_DIM,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": HEAD_DIM,
}


def gpt_oss():
    config = {"model_type": "gpt_oss", **SIZES, "sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}
    made = configuration_gpt_oss.GptOssConfig(**config)
    rotary = modeling_gpt_oss.GptOssRotaryEmbedding(made)
    for layer, window in ((0, 3), (1, None)):
        given = inputs(sink_logits=random(HEADS))
        module = types.SimpleNamespace(
            sinks=given["sink_logits"], num_key_value_groups=HEADS // KV_HEADS, training=False
        )
        yield record(
            "gpt_oss", config, layer, module, rotary, modeling_gpt_oss.apply_rotary_pos_emb,
            modeling_gpt_oss.eager_attention_forward, window, given, scaling=HEAD_DIM**-0.5,
        )


def gemma2():
    config = {"model_type": "gemma2", **SIZES, "sliding_window": 3, "query_pre_attn_scalar": 5, "attn_logit_softcapping": 1.5}
    made = configuration_gemma2.Gemma2Config(**config)
    rotary = modeling_gemma2.Gemma2RotaryEmbedding(made)
    module = types.SimpleNamespace(num_key_value_groups=HEADS // KV_HEADS, training=False, head_dim=HEAD_DIM)
    for layer, window in ((0, 3), (1, None)):
        yield record(
            "gemma2", config, layer, module, rotary, modeling_gemma2.apply_rotary_pos_emb,
            modeling_gemma2.eager_attention_forward, window, inputs(),
            scaling=made.query_pre_attn_scalar**-0.5, softcap=made.attn_logit_softcapping,
        )


def beam():
    config = {
        "model_type": "beam",
        **SIZES,
        "sliding_window": 3,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": None,
        },
    }
    made = configuration_beam.BeamConfig(**config)
    rotary = modeling_beam.BeamRotaryEmbedding(made)
    module = types.SimpleNamespace(num_key_value_groups=HEADS // KV_HEADS, training=False)
    scales = modeling_beam.compute_attention_scaling(torch.arange(TOKENS)[None]).double()
    for layer, window in ((0, 3), (1, None)):
        kind = made.layer_types[layer]
        slides = kind == "sliding_attention"

        def rotate(q, k, cos, sin, slides=slides):
            return modeling_beam.apply_rotary_pos_emb(q, k, cos, sin) if slides else (q * scales, k)

        yield record(
            "beam", config, layer, module,
            lambda v, ids: rotary(v, ids, "sliding_attention"), rotate,
            modeling_beam.eager_attention_forward, window, inputs(), scaling=HEAD_DIM**-0.5,
        )


def mistral_large4():
    """Its heads expanded, as its attention has them behind its latent projections."""
    nope, rope = 4, 4
    config = {
        "model_type": "mistral_large4_text",
        **{**SIZES, "num_key_value_heads": HEADS, "head_dim": rope},
        "qk_nope_head_dim": nope,
        "qk_rope_head_dim": rope,
        "v_head_dim": HEAD_DIM,
        "kv_lora_rank": 8,
        "no_rope_layers": [1, 0],
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 4,
            "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0, "mscale_all_dim": 0.7,
        },
    }
    made = configuration_mistral_large4.MistralLarge4TextConfig(**config)
    family = modeling_mistral_large4
    rotary = family.MistralLarge4TextRotaryEmbedding(made)
    module = types.SimpleNamespace(num_key_value_groups=1, training=False)
    temperature = family.MistralLarge4TextSoftmaxScaling(HEADS)
    for layer in (0, 1):
        given = inputs(temperature=random(2, HEADS))
        given["k"] = random(BATCH, HEADS, TOKENS, HEAD_DIM)
        given["v"] = random(BATCH, HEADS, TOKENS, HEAD_DIM)
        temperature.scale.data, temperature.bias.data = given["temperature"]

        def rotate(q, k, cos, sin, rotates=made.no_rope_layers[layer], temperature=temperature):
            if rotates:
                last_q, last_k = family.apply_rotary_pos_emb_interleave(q[..., nope:], k[..., nope:], cos, sin)
                q, k = torch.cat((q[..., :nope], last_q), -1), torch.cat((k[..., :nope], last_k), -1)
            return temperature(q, torch.arange(TOKENS)[None], head_dim_first=True), k

        made_record = record(
            "mistral_large4_text", config, layer, module, rotary, rotate, family.eager_attention_forward, None, given,
            scaling=family.yarn_apply_mscale(made.rope_parameters, HEAD_DIM**-0.5),
        )
        yield {**made_record, "kv_heads": HEADS}


FAMILIES = [gpt_oss, gemma2, beam, mistral_large4]


def main():
    torch.manual_seed(1)
    records = [each for family in FAMILIES for each in family()]
    generator = f"tests/peers/attention.py, transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
    lines = ",\n".join(json.dumps(each) for each in records)
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
