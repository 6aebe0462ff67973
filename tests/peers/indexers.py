#!/usr/bin/env python3
"""What picks the keys of sparse attention: the queries and keys of each family's own indexer on random weights, in double,
before and after their rotation, recorded in tests/data/golden/indexers.json.

  tests/peers/indexers.py > tests/data/golden/indexers.json
"""

import importlib
import json
import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

torch.set_default_dtype(torch.float64)

TOKENS = 9
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64,
        "mscale": 1.0, "mscale_all_dim": 1.0}  # fmt: skip
LATENT = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 8, "kv_lora_rank": 8,
          "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "num_hidden_layers": 2,
          "index_n_heads": 3, "index_head_dim": 12, "index_topk": 4, "max_position_embeddings": 256}  # fmt: skip
PLAIN = {"hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "head_dim": 12}
FAMILIES = {
    "deepseek_v32": {**LATENT, "rope_parameters": YARN},
    "axk2": LATENT,
    "glm_moe_dsa": LATENT,
    "mistral_large4_text": {
        **LATENT, "no_rope_layers": [1, 0],
        "rope_parameters": {**YARN, "factor": 8.0, "original_max_position_embeddings": 4, "attention_factor": 1.0},
    },
    "hy_v4": LATENT,
    "hy_v4_vl_text": {
        **LATENT,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1], "mrope_interleaved": True},
    },
    "glm5_next_text": {**LATENT, "layer_types": ["full_attention"] * 2, "qk_rope_head_dim": 0, "index_kpool": 2},
    "deepseek_v4": {
        "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "qk_rope_head_dim": 8,
        "q_lora_rank": 8, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "compressed_sparse_attention"],
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 3},
        "index_n_heads": 3, "index_head_dim": 12, "index_topk": 2, "sliding_window": 3,
    },
    "minimax_m3_vl_text": {
        **PLAIN, "layer_types": ["minimax_m3_sparse"] * 2, "index_n_heads": 2, "index_head_dim": 12, "index_topk_blocks": 2,
        "index_block_size": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "partial_rotary_factor": 0.67},
    },
}  # fmt: skip
NAMES = {"hy_v4_vl_text": "hy_v4_vl", "glm5_next_text": "glm5_next", "mistral_large4_text": "mistral_large4",
         "minimax_m3_vl_text": "minimax_m3_vl"}  # fmt: skip


def numbers(x):
    return [float(f"{number:.10g}") for number in x.detach().flatten().tolist()]


def neighbours(x, channels):
    """The first channels, whose code moves the first of each pair before the second, in the order of the checkpoint."""
    pairs, rest = x[..., :channels].unflatten(-1, (2, channels // 2)), x[..., channels:]
    return torch.cat((pairs.transpose(-1, -2).flatten(-2), rest), -1)


class Products:
    """What a run multiplies first: queries [batch, heads, token, channel] and keys [batch, token, channel]."""

    def __init__(self):
        self.q = self.k = None

    def __enter__(self):
        self.own, self.float = torch.matmul, torch.Tensor.float

        def matmul(a, b, **more):
            if self.q is None and a.dim() == 4:
                self.q, self.k = a.clone(), b.transpose(-1, -2).clone()
            return self.own(a, b, **more)

        torch.matmul, torch.Tensor.float = matmul, torch.Tensor.double
        return self

    def __exit__(self, *_):
        torch.matmul, torch.Tensor.float = self.own, self.float


def run(family, config, layer, indexer, rotary, still):
    """q [heads, token, channel] and k [token, channel] of one run; still: nothing rotates."""
    torch.manual_seed(layer)
    hidden, residual = torch.randn(1, TOKENS, 16), torch.randn(1, TOKENS, 8)
    ids = torch.arange(TOKENS)[None]
    causal = torch.zeros(1, TOKENS, TOKENS).masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), float("-inf"))
    seen = Products()
    with seen, torch.no_grad():
        if family == "deepseek_v4":
            own = type(indexer.rotary_emb).forward
            if still:
                type(indexer.rotary_emb).forward = lambda *a, **b: tuple(
                    f(x) for f, x in zip((torch.ones_like, torch.zeros_like), own(*a, **b), strict=True)
                )
            picked = indexer(hidden, residual, ids, None, layer)
            type(indexer.rotary_emb).forward = own
        elif family == "glm5_next_text":
            picked = indexer(hidden, residual, torch.ones(1, TOKENS, dtype=torch.bool), None)
        else:
            at = ids[None].expand(3, 1, TOKENS) if "mrope_section" in (config.rope_parameters or {}) else ids
            cos, sin = (each.double() for each in rotary(hidden, at))
            if still:
                cos, sin = torch.ones_like(cos), torch.zeros_like(sin)
            if family == "minimax_m3_vl_text":
                picked = indexer(hidden, (cos, sin), None, ids)
            elif family == "mistral_large4_text":
                picked = indexer(hidden, (cos, sin), causal, ids)
            else:
                picked = indexer(hidden, residual, (cos, sin), causal, ids)
    q, k = seen.q[0], seen.k[0]
    if k.dim() == 3:
        k = k[0]
    return (q if q.shape[0] == indexer_heads(indexer) else q.transpose(0, 1)), k, picked


def indexer_heads(indexer):
    return getattr(indexer, "n_heads", None) or indexer.num_heads


def record(family, given):
    name = NAMES.get(family, family)
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    settings = importlib.import_module(f"transformers.models.{name}.configuration_{name}")
    configs = [c for c in vars(settings).values() if getattr(c, "model_type", "") == family]
    config = configs[0](**given)
    (kind,) = [c for n, c in vars(module).items() if n.endswith("Indexer") and isinstance(c, type)]
    rotaries = [c for n, c in vars(module).items() if n.endswith("RotaryEmbedding") and "Vision" not in n]
    for layer in range(2):
        if layer != (family == "deepseek_v4") and family != "mistral_large4_text":  # whose layers differ
            continue
        torch.manual_seed(7)
        indexer = kind(config) if family == "deepseek_v4" else kind(config, layer)
        for weight in indexer.parameters():
            weight.data = torch.randn(weight.shape).double()
        rotary = rotaries[0](config) if rotaries and family != "deepseek_v4" else None
        q, k, picked = run(family, config, layer, indexer, rotary, False)
        plain_q, plain_k, _ = run(family, config, layer, indexer, rotary, True)
        rotates = family != "mistral_large4_text" or given["no_rope_layers"][layer]
        if family in ("glm_moe_dsa", "mistral_large4_text") and rotates:
            q, k, plain_q, plain_k = (neighbours(x, given["qk_rope_head_dim"]) for x in (q, k, plain_q, plain_k))
        yield {
            "family": family, "config": {"model_type": family, **given}, "layer": layer,
            "heads": q.shape[0], "tokens": q.shape[1], "keys": k.shape[0], "head_dim": q.shape[2],
            "every": given["compress_rates"]["compressed_sparse_attention"] if family == "deepseek_v4" else 1,
            "before": {"q": numbers(plain_q), "k": numbers(plain_k)}, "after": {"q": numbers(q), "k": numbers(k)},
            "picked": list(picked.shape)[-1],
        }  # fmt: skip


def main():
    records = [each for family, given in FAMILIES.items() for each in record(family, given)]
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__, "records": records}))


if __name__ == "__main__":
    main()
