#!/usr/bin/env python3
"""The attention of families whose softmax is not the usual one, in double, recorded in tests/data/golden/attention.json with
what went in. Some by each family's own rotary module and eager attention on random queries, keys and values; the newest by
the family's whole model with random weights, of which attention is recorded as it runs.

  tests/peers/attention.py > tests/data/golden/attention.json      needs diffusers beside transformers
"""

import json
import os
import sys
import types

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from axes import grid_ids
from diffusers.models.attention_processor import Attention
from diffusers.models.transformers import transformer_flux, transformer_qwenimage
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


# --- whole models, recorded as they run ----------------------------------------------------------------


class Recorder:
    """Attention of a model in two runs, forward(still): as it is, and with nothing rotated. In the second, attention gives what
    it gave in the first, so that every layer is asked the same."""

    def __init__(self):
        self.calls, self.plain, self.turned = [], None, []

    def run(self, forward):
        with torch.no_grad():
            forward(False)
            self.plain = []
            forward(True)
        return zip(self.calls, self.plain)

    def attend(self, attention, q, k, v, mask, module=None, **more):
        """attention: the family's own, of q, k and v."""
        if self.plain is None:
            out = attention(q, k, v, mask)
            self.calls.append({"module": module, "out": out[0] if isinstance(out, tuple) else out, "mask": mask})
            return out
        call = self.calls[len(self.plain)]
        self.plain.append({"q": q, "k": k, "v": v})
        return (call["out"], None)


    def turned_back(self, _, inputs):
        """What comes behind attention and is rotated back: the same in both runs, too."""
        if self.plain is None:
            self.turned.append(inputs[0])
            return None
        return (self.turned[len(self.plain) - 1],)


def seen_by(mask, queries, keys):
    """'1' where a query sees a key."""
    if mask is None:
        return ["1" * keys] * queries
    rows = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return ["".join("1" if key else "0" for key in row) for row in rows[0, 0].tolist()]


def recorded(family, config, layer, plain, out, mask, ids, key_ids, **more):
    """q, k, v [batch, head, token, channel] before rotation, out [batch, token, head, channel]."""
    q, k, v = plain["q"], plain["k"], plain["v"]
    return {
        "family": family, "config": config, "layer": layer, "batch": q.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1],
        "tokens": q.shape[2], "keys": k.shape[2], "head_dim": q.shape[3], "value_dim": v.shape[3], "axes": len(ids),
        "ids": [i for axis in ids for i in axis], "key_ids": [i for axis in key_ids for i in axis],
        "seen": seen_by(mask, q.shape[2], k.shape[2]), "q": numbers(q), "k": numbers(k), "v": numbers(v),
        "out": numbers(out.transpose(1, 2)), **more,
    }  # fmt: skip


def neighbours(x, channels):
    """Channels whose code moves the first of each pair before the second, in the order of the checkpoint."""
    head, pairs = x[..., :-channels], x[..., -channels:].unflatten(-1, (2, channels // 2))
    return torch.cat((head, pairs.transpose(-1, -2).flatten(-2)), -1)


def of_transformers(config, key_ids=lambda layer, keys: list(range(TOKENS)), turned_back=False, reordered=0):
    """One record a layer. key_ids: where each key of a layer stands. turned_back: the output is rotated back behind attention.
    reordered: channels of a head that the code reorders before it rotates them."""
    recorder = Recorder()
    raw = {key: value for key, value in config.items() if key != "model_type"}
    made = transformers.AutoConfig.for_model(config["model_type"], **raw)

    model = transformers.AutoModel.from_config(
        made, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager"
    ).eval()
    code = sys.modules[type(model).__module__]
    own = code.eager_attention_forward

    def attend(module, query, key, value, mask, **more):
        return recorder.attend(lambda *qkv: own(module, *qkv, **more), query, key, value, mask, module=module)

    def forward(still):
        for module in model.modules():
            for name, buffer in module.named_buffers(recurse=False):
                if still and name.endswith("inv_freq"):
                    buffer.zero_()
        model(input_ids=tokens, use_cache=False)

    for weight in model.parameters():
        weight.data = torch.randn(weight.shape) * 0.3
    for module in model.modules():
        if turned_back and hasattr(module, "o_a_proj"):
            module.o_a_proj.register_forward_pre_hook(recorder.turned_back)
    tokens = torch.randint(0, made.vocab_size, (1, TOKENS))
    code.eager_attention_forward = attend
    try:
        layers = list(recorder.run(forward))
    finally:
        code.eager_attention_forward = own
    for layer, (call, plain) in enumerate(layers):
        heads = plain["q"].shape[1]
        if reordered:
            plain |= {name: neighbours(plain[name], reordered) for name in "qk"}
        out = recorder.turned[layer].reshape(BATCH, TOKENS, heads, -1) if turned_back else call["out"]
        sinks = getattr(call["module"], "sinks", None)
        more = {} if sinks is None else {"sink_logits": numbers(sinks)}
        at = [list(range(TOKENS))]
        mask = call["mask"]
        yield recorded(config["model_type"], config, layer, plain, out, mask, at, [key_ids(layer, plain["k"].shape[2])], **more)


TINY = {"vocab_size": 16, "hidden_size": 16, "intermediate_size": 8, "moe_intermediate_size": 8, "pad_token_id": 0}
EXPERTS = {"n_routed_experts": 2, "num_experts_per_tok": 1, "n_shared_experts": 1, "n_group": 1, "topk_group": 1}


def deepseek_v4():
    rates = {"compressed_sparse_attention": 2, "heavily_compressed_attention": 3}
    kinds = ["sliding_attention", *rates]
    config = {
        "model_type": "deepseek_v4", **TINY, **EXPERTS, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 8, "qk_rope_head_dim": 4, "q_lora_rank": 8, "o_groups": 2, "o_lora_rank": 4, "index_n_heads": 2,
        "index_head_dim": 8, "index_topk": 2, "hc_mult": 2, "sliding_window": 3, "layer_types": kinds, "compress_rates": rates,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    }  # fmt: skip

    def key_ids(layer, keys):
        return [*range(TOKENS), *(rates.get(kinds[layer], 0) * i for i in range(keys - TOKENS))]

    yield from of_transformers(config, key_ids, turned_back=True)


def glm_moe_dsa():
    """Its indexer picks three tokens for each query."""
    yield from of_transformers(
        {
            "model_type": "glm_moe_dsa", **TINY, **EXPERTS, "num_hidden_layers": 2, "num_attention_heads": 2,
            "num_key_value_heads": 2, "q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4,
            "v_head_dim": 6, "index_topk": 3, "index_head_dim": 8, "index_n_heads": 2,
        },
        reordered=4,
    )  # fmt: skip


def mimo_v2_flash():
    yield from of_transformers(
        {
            "model_type": "mimo_v2_flash", **TINY, **EXPERTS, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 1, "head_dim": 12, "v_head_dim": 4, "sliding_window": 3,
            "layer_types": ["full_attention", "sliding_attention"],
        }
    )  # fmt: skip


def gemma4():
    yield from of_transformers(
        {
            "model_type": "gemma4_text", **TINY, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
            "head_dim": 8, "global_head_dim": 16, "sliding_window": 3, "hidden_size_per_layer_input": 0,
            "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"],
        }
    )  # fmt: skip


def longcat_flash():
    """One layer, which attends twice."""
    yield from of_transformers(
        {
            "model_type": "longcat_flash", **{k: v for k, v in TINY.items() if "intermediate" not in k}, "ffn_hidden_size": 8, "expert_ffn_hidden_size": 8,
            "n_routed_experts": 3, "moe_topk": 2, "zero_expert_num": 1, "num_layers": 1, "num_attention_heads": 2,
            "q_lora_rank": 8, "kv_lora_rank": 8, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "head_dim": 4, "v_head_dim": 6,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 4,
                "mscale": 0.7, "mscale_all_dim": 0.7,
            },
        },
        reordered=4,
    )  # fmt: skip


def minimax_m3():
    """One layer that sees all, and one whose indexer picks two blocks of two tokens."""
    yield from of_transformers(
        {
            "model_type": "minimax_m3_vl_text", **TINY, "num_local_experts": 2, "num_experts_per_tok": 1, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "index_n_heads": 1, "index_head_dim": 8,
            "index_block_size": 2, "index_topk_blocks": 2, "layer_types": ["full_attention", "minimax_m3_sparse"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5},
        }
    )  # fmt: skip


# --- diffusers ------------------------------------------------------------------------------------------


def of_diffusers(config, module, attention, call, at, no_rotation):
    """call(rotation) runs the attention of a transformer; module: where its dispatch_attention_fn stands."""
    recorder = Recorder()
    own = module.dispatch_attention_fn

    def attend(query, key, value, **more):
        # [batch, token, head, channel] here
        given = (each.transpose(1, 2) for each in (query, key, value))
        heads_last = lambda q, k, v, _: own(*(each.transpose(1, 2) for each in (q, k, v)), **more)
        out = recorder.attend(heads_last, *given, None)
        return out[0] if isinstance(out, tuple) else out

    for weight in attention.parameters():
        weight.data = torch.randn(weight.shape) * 0.3
    module.dispatch_attention_fn = attend
    try:
        (record,) = recorder.run(lambda still: call(no_rotation if still else None))
    finally:
        module.dispatch_attention_fn = own
    ids = at.T.tolist()
    yield recorded(config["_class_name"], config, 0, record[1], record[0]["out"], None, ids, ids)


def flux():
    axes, heads = [4, 2, 2], 2
    config = {"_class_name": "FluxTransformer2DModel", "attention_head_dim": 8, "axes_dims_rope": axes, "num_attention_heads": heads}
    attention = transformer_flux.FluxAttention(8 * heads, heads=heads, dim_head=8, added_kv_proj_dim=8 * heads, bias=True)
    text, picture = torch.zeros(2, 3, dtype=torch.int64), grid_ids((1, 2, 3))
    at = torch.cat((text, picture))
    rotation = transformer_flux.FluxPosEmbed(theta=10000, axes_dim=axes)
    hidden, words = torch.randn(1, len(picture), 8 * heads), torch.randn(1, len(text), 8 * heads)
    yield from of_diffusers(
        config, transformer_flux, attention,
        lambda still: attention(hidden, words, image_rotary_emb=rotation(still if still is not None else at)),
        at, torch.zeros_like(at),
    )  # fmt: skip


def qwen_image():
    """The picture stands around its middle, the text behind it on all axes."""
    axes, heads, grid = [4, 2, 2], 2, (1, 2, 3)
    config = {"_class_name": "QwenImageTransformer2DModel", "attention_head_dim": 8, "axes_dims_rope": axes, "num_attention_heads": heads}
    rotation = transformer_qwenimage.QwenEmbedRope(theta=10000, axes_dim=axes, scale_rope=True)
    attention = Attention(
        8 * heads, added_kv_proj_dim=8 * heads, dim_head=8, heads=heads, out_dim=8 * heads, context_pre_only=False, bias=True,
        processor=transformer_qwenimage.QwenDoubleStreamAttnProcessor2_0(), qk_norm="rms_norm",
    )  # fmt: skip
    picture, text = rotation([grid], max_txt_seq_len=2, device=torch.device("cpu"))
    middle = torch.tensor([0, grid[1] - grid[1] // 2, grid[2] - grid[2] // 2])
    first = max(grid[1] // 2, grid[2] // 2)
    at = torch.cat((first + torch.arange(2)[:, None].expand(2, 3), grid_ids(grid) - middle))
    hidden, words = torch.randn(1, picture.shape[0], 8 * heads), torch.randn(1, 2, 8 * heads)
    still = (torch.ones_like(picture), torch.ones_like(text))
    yield from of_diffusers(
        config, transformer_qwenimage, attention,
        lambda none: attention(hidden, encoder_hidden_states=words, encoder_hidden_states_mask=None,
                               image_rotary_emb=none if none is not None else (picture, text)),
        at, still,
    )  # fmt: skip


FAMILIES = [
    gpt_oss, gemma2, beam, mistral_large4, deepseek_v4, glm_moe_dsa, mimo_v2_flash, gemma4, flux, qwen_image,
    longcat_flash, minimax_m3,
]  # fmt: skip


def main():
    torch.manual_seed(1)
    records = [each for family in FAMILIES for each in family()]
    generator = f"tests/peers/attention.py, transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}"
    lines = ",\n".join(json.dumps(each) for each in records)
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
