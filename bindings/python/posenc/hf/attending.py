"""What the attention of a live model was given, and what its cache holds, compared with what its configuration says."""

from __future__ import annotations

import math

import torch

from .._posenc import Plan
from .rotations import finding, off_by, rotation_finding, slice_plan, tolerance


def attention_findings(record, group, plan: Plan, call, applied, ids):
    """The first thing wrong with one call of a layer's attention."""
    yield from _scale(record, plan)
    yield from _queries(record, plan, applied, ids)
    yield from _mask(record, group, call)


def _scale(record, plan: Plan):
    """Logits are multiplied as the configuration says. Scaling is None where a function takes 1/√head_dim by itself."""
    if record["scaling"] is None:
        return
    expected = plan.to_dict()["logits"]["multiplier"]
    found = record["scaling"] * math.sqrt(record["queries"].shape[-1])
    if not math.isclose(expected, found, rel_tol=1e-4):
        yield finding(
            "logits", [record["layer"]], "The attention multiplies its logits by another number than the configuration says.",
            "set the layer's scaling, or load the model with its own configuration",
            f"{expected:.6g}/√{record['queries'].shape[-1]}", f"{found:.6g}/√{record['queries'].shape[-1]}",
        )  # fmt: skip


def _queries(record, plan: Plan, applied, ids):
    """Whether the rotation was lost on its way from the rotating function, or came twice. A model may well do other things there
    (normalize, scale, join channels that do not rotate), so that another tensor alone is no finding."""
    given = record["queries"]
    if given is None or not applied or not plan.rotates or plan.refused_by("posenc.hf.check"):
        return
    before, after = applied[0]["before"][0], applied[-1]["after"][0]
    if before.shape != given.shape or after.shape != given.shape or torch.equal(given, after):
        return
    mine = slice_plan(plan, before.shape[-1])
    if before.shape[-1] < mine.first_dim + mine.rotary_dim or before.shape[2] != ids.shape[-1]:
        return
    limit = tolerance(given.dtype, int(ids.max()) + 1, plan) * 2 * after.double().abs().max().item()
    if off_by(given, after) <= limit:
        return
    if off_by(given, before) <= limit:
        yield finding(
            "not_rotated", [record["layer"]], "The layer rotates its queries, and its attention is given those from before.",
            "hand the rotated ones on", "a rotation", "none",
        )  # fmt: skip
    elif off_by(given, mine.rotate(after.double(), position_ids=ids)) <= limit:
        yield finding(
            "rotated_twice", [record["layer"]], "Queries are rotated, and once more on their way to the attention.", "rotate once", "1", "2"
        )  # fmt: skip


def _visible(record):
    """[batch, queries, keys], or None where the mask is in another form."""
    mask, queries, keys = record["mask"], record["count"], record["keys"]
    if mask is None:
        return torch.ones(1, queries, keys, dtype=torch.bool).tril(keys - queries)
    if not isinstance(mask, torch.Tensor) or mask.dim() != 4 or mask.shape[-1] < keys or mask.shape[1] != 1:
        return None
    mask = mask[..., :keys]  # some have room behind
    return mask[:, 0] if mask.dtype == torch.bool else mask[:, 0] > torch.finfo(mask.dtype).min / 2


def _mask(record, group, call):
    """Which keys the queries see: none that come later, none of padding, none beyond the window, and all others."""
    visible = _visible(record)
    queries, keys = record["count"], record["keys"]
    tokens = call["cached"] + queries
    if visible is None or keys > tokens or not group.causal or group.chunked:
        return
    keep = torch.ones(1, keys, dtype=torch.bool)
    if call["mask"] is not None and call["mask"].shape[-1] == tokens:
        keep = call["mask"][:, -keys:].bool()
    batch = max(len(visible), len(keep))
    visible, keep = visible.expand(batch, -1, -1), keep.expand(batch, -1)
    back = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)[None]
    asks = keep[:, -queries:, None]  # what padding sees is of no effect
    if (visible & (back < 0) & asks).any():
        yield finding(
            "causal",
            [record["layer"]],
            "Queries see keys that come later.",
            "is_causal, or the mask, is wrong",
            "causal",
            "both ways",
        )
        return
    if (visible & ~keep[:, None] & asks).any():
        yield finding(
            "padding", [record["layer"]], "Queries see the keys of padding.", "hand attention_mask on to the layer"
        )
        return
    window = group.window or tokens
    sees = visible & asks
    wanted = (back >= 0) & (back < window) & keep[:, None] & asks
    if bool((sees != wanted).any()):
        furthest = int(back.expand(batch, -1, -1)[sees].max()) + 1 if sees.any() else 0
        yield finding(
            "window", [record["layer"]], "Queries see another number of keys than the window holds.",
            "compare the layer's sliding_window and its kind (layer_types) with the configuration",
            str(group.window or "none"), str(furthest) if furthest < tokens else "none",
        )  # fmt: skip


def cache_findings(record, plan: Plan, call, applied, ids):
    """Keys of the cache: those that the layer rotated. Of a prompt that repeats one token their rotation is seen without them."""
    keys, tokens = record["keys"], ids.shape[-1]
    if not plan.rotates or plan.refused_by("posenc.hf.check") or keys.shape[2] < tokens:
        return
    newest = keys[:, :, -tokens:]
    if applied:
        before, after = applied[0]["before"][1], applied[-1]["after"][1]
        limit = tolerance(keys.dtype, tokens, plan) * before.double().abs().max().item()
        if before.shape == newest.shape and off_by(newest, before) <= limit < off_by(before, after):
            yield finding(
                "cached_keys", [record["layer"]], "The cache holds keys from before their rotation.",
                "cache them rotated, or rotate them when they are read", "rotated", "not rotated",
            )  # fmt: skip
        return
    mine = slice_plan(plan, keys.shape[-1])
    if (
        not call["alike"]
        or plan.axes > 1
        or call["cached"]
        or keys.shape[2] != tokens
        or int(ids.min())
        or keys.shape[-1] < mine.first_dim + mine.rotary_dim
    ):
        return
    # At position 0 nothing is rotated. Where what a layer hears differs by position besides, so do the lengths of its keys.
    lengths = newest.double().norm(dim=-1)
    if not torch.allclose(
        lengths, lengths[:, :, :1].expand_as(lengths), rtol=1e-2 if keys.dtype.itemsize < 4 else 1e-4
    ):
        return
    before = mine.rotate_inverse(newest[:, :, :1].double(), position_ids=0).expand_as(newest).contiguous()
    found = rotation_finding(mine, record["layer"], "keys in the cache", before, newest.double(), ids, newest.dtype)
    if found and mine.pairing == "interleaved":  # DeepSeek's are put in halves first
        halves = Plan.of_frequencies(mine.inv_freq, first_dim=mine.first_dim, attention_factor=mine.attention_factor)
        found = rotation_finding(
            halves, record["layer"], "keys in the cache", before, newest.double(), ids, newest.dtype
        )
    if found:
        yield found
