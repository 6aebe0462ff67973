"""Plans of every kind, compiled for a few heads, and the tensors that they act on: what tests of attention run through."""

import torch

import posenc

HEADS, KV_HEADS, LENGTH, DIM = 4, 2, 12, 16


def tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def compiled(scheme, heads=HEADS, kv_heads=KV_HEADS, length=LENGTH):
    return posenc.plan(scheme, heads=heads, kv_heads=kv_heads, head_dim=DIM, length=length)


def with_tables(scheme, *parts, heads=HEADS, kv_heads=KV_HEADS, length=LENGTH):
    plan = compiled(scheme, heads, kv_heads, length)
    rows = 1 + max(plan.relative_rows(-length, length)) if plan.to_dict()["relative"] else 8
    for seed, part in enumerate(parts):
        plan = plan.with_table(
            part, tensor(heads if part == "bias" else rows, rows if part == "bias" else DIM, seed=seed)
        )
    return plan


def _row_of_a_picture(heads=HEADS, kv_heads=KV_HEADS, length=LENGTH):
    plan = posenc.plan(
        posenc.Decomposed(), heads=heads, kv_heads=kv_heads, head_dim=DIM, grid_height=1, grid_width=length
    )
    return plan.with_table("key", tensor(1 + 2 * length - 1, DIM))


def _temperature_of_heads(heads=HEADS, **sizes):
    return compiled(posenc.Rope(), heads, **sizes).with_table("temperature", tensor(2, heads))


PLANS = {
    "none": lambda **sizes: compiled(posenc.NoPe(), **sizes),
    "RoPE": lambda **sizes: compiled(posenc.Rope(), **sizes),
    "YaRN": lambda **sizes: compiled(posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64)), **sizes),
    "ALiBi": lambda **sizes: compiled(posenc.Alibi(), **sizes),
    "ALiBi before the scale": lambda **sizes: compiled(posenc.Alibi(before_scale=True), **sizes),
    "KERPLE": lambda **sizes: compiled(posenc.Kerple(), **sizes),
    "Sandwich": lambda **sizes: compiled(posenc.Sandwich(), **sizes),
    "T5": lambda **sizes: with_tables(posenc.T5(num_buckets=8, max_distance=16), "bias", **sizes),
    "Shaw": lambda **sizes: with_tables(posenc.Shaw(max_distance=5, use_values=False), "key", **sizes),
    "DeBERTa": lambda **sizes: with_tables(posenc.Deberta(position_buckets=8, max_relative_positions=16), "key", "query", **sizes),
    "one row of a picture": _row_of_a_picture,
    "softcap": lambda **sizes: compiled(posenc.Rope(), **sizes).with_logits(softcap=2.0, multiplier=3.0),
    "temperature": lambda **sizes: compiled(posenc.Rope(), **sizes).with_logits(temperature="log", beta=0.3, floor=4),
    "temperature of heads": _temperature_of_heads,
}  # fmt: skip
