"""Every scheme as a score_mod of FlexAttention, which runs on any device: the rotation before it, the rest within. posenc.torch has
the public names."""

from __future__ import annotations

from collections.abc import Callable

import torch

from . import _posenc
from ._posenc import Plan
from .errors import Error
from .torch_rotation import rotate
from .values import Value

# A log gate below minus this lets nothing through that a logit in float could bring back.
_STEEP = 2.0**20


def _refused(rule: str):
    return Error(f"posenc.torch.flex_attention: {rule}; posenc.torch.attention takes any", "flex_attention", rule)


def _bias(plan: Plan, heads: int, length: int, device):
    """What is added at each distance, [heads, distance + length - 1], and whether before the scale; None where nothing is."""
    said = plan.to_dict()["bias"]
    if not said:
        return None, False
    back, ahead = (torch.as_tensor(plan.bias(query, length, heads=heads))[:, 0] for query in ([length - 1], [0]))
    numbers = torch.cat((ahead.flip(-1)[:, :-1], back.flip(-1)), -1)
    return numbers.to(device), bool(said["before_scale"])


def _relative(plan: Plan, x, part: str, length: int, device):
    """x · the vectors of a table, [batch, head, token, row], and the rows of each distance, a list each; None where there is no table."""
    learned = plan.table(part)
    if learned is None:
        return None
    table = torch.as_tensor(learned, dtype=x.dtype, device=device)
    lists = range(1 + len(plan.to_dict()["relative"].get("further_rows", [])))
    rows = [torch.tensor(plan.relative_rows(-(length - 1), length - 1, each), device=device) for each in lists]
    return x @ table.transpose(-1, -2), rows


def _scale(plan: Plan, heads: int, length: int, device):
    """What logits of each query are multiplied by beside 1/√head_dim, [heads or 1, length]; None where it is 1."""
    logits = plan.to_dict()["logits"]
    rows = heads if logits["temperature"] == "heads" else 1
    scale = torch.as_tensor(plan.query_scale(list(range(length)), rows), dtype=torch.float32, device=device)
    return None if (scale == 1).all() else scale


def _content(scheme, length: int, device):
    """What a scheme that reads the content adds, as score_mod's last step."""
    if scheme is None:
        return None
    about = getattr(scheme, "_value", scheme)
    if about.reads == "positions":
        added = torch.as_tensor(_posenc.fire_bias(scheme, length), device=device)
        return lambda batch, head, i, j: added[head, i, j]
    if about.reads == "gates":
        gates = scheme.table(about.tables[0])
        if gates is None:
            raise _refused(f"{scheme.name} needs {about.tables[0]} of each token")
        gates = torch.as_tensor(gates, dtype=torch.float64, device=device)
        gates = gates.reshape(-1, *gates.shape[-2:])
        # A difference of sums is as good as the larger one, so gates that hide all before them are summed apart.
        steep = gates < -_STEEP
        kept = gates.masked_fill(steep, 0).cumsum(-1)
        parts = steep.cumsum(-1)
        rows = len(kept)

        def forgotten(batch, head, i, j):
            at_i, at_j = (batch % rows, head, i), (batch % rows, head, j)
            parted = (parts[at_i] - parts[at_j]) * -_STEEP
            return (kept[at_i] - kept[at_j] + parted).float()

        return forgotten
    raise _refused(f"{scheme.name} weighs a key by those between, which no score_mod sees")


def score_mod(
    plan: Plan,
    heads: int,
    length: int,
    device: torch.device | str | None = None,
    *,
    q: torch.Tensor | None = None,
    k: torch.Tensor | None = None,
    scheme: Value | None = None,
    places: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> Callable[..., torch.Tensor]:
    """All that a plan does to a logit, as FlexAttention takes it: score_mod(score, batch, head, q_idx, kv_idx). `length` tokens at
    most, the first at position 0; rotate q and k with `rotate` first.

    places: positions of the queries and of the keys, int64 [batch or 1, tokens], each from 0 to length - 1, where they are not those
    that tokens have in their order (a rank's tokens of a text that is shared out, packed texts).

    q, k [batch, heads, length, head_dim], unrotated: for vectors by distance (Shaw, DeBERTa), which meet them. scheme: one
    beside the plan that reads positions or log gates (posenc.Fire, posenc.Forgetting). Those that weigh a key by others, and vectors
    added to the output, are refused: no score_mod says them.
    """
    plan.check("posenc.flex.score_mod")
    relative = plan.to_dict()["relative"]
    if relative and relative["uses_value"]:
        raise _refused("vectors by distance that are added to the output are no part of a logit")
    if relative and (q is None or k is None):
        raise _refused("a plan with vectors by distance needs q= and k=")
    bias, before_scale = _bias(plan, heads, length, device)
    of_queries = _relative(plan, q, "key", length, device) if relative else None
    of_keys = _relative(plan, k, "query", length, device) if relative else None
    scale, content = _scale(plan, heads, length, device), _content(scheme, length, device)
    # Numbers are tensors: torch.compile takes a float that differs between two plans for one that varies, and then refuses it.
    softcap = torch.tensor(cap, device=device) if (cap := plan.to_dict()["logits"]["softcap"]) else None
    root = torch.tensor((q.shape[-1] if q is not None else plan.head_dim or 1) ** 0.5, device=device)
    shared = heads // k.shape[1] if k is not None else 1
    if places is not None and content is not None:
        raise _refused("a scheme that reads the content takes tokens in the order of their text, and no places=")

    def modified(score, batch, head, q_idx, kv_idx):
        q_at, kv_at = q_idx, kv_idx
        if places is not None:
            q_at, kv_at = (at[batch % len(at), index] for at, index in zip(places, (q_idx, kv_idx), strict=True))
        distance = q_at - kv_at + length - 1
        for rows in of_queries[1] if of_queries is not None else ():
            score = score + of_queries[0][batch, head, q_idx, rows[distance]] / root
        for rows in of_keys[1] if of_keys is not None else ():
            score = score + of_keys[0][batch, head // shared, kv_idx, rows[distance]] / root
        if before_scale:
            score = score + bias[head, distance] / root
        if scale is not None:
            score = score * scale[head % len(scale), q_at]
        if softcap is not None:
            score = softcap * torch.tanh(score / softcap)
        if bias is not None and not before_scale:
            score = score + bias[head, distance]
        return score if content is None else score + content(batch, head, q_idx, kv_idx)

    return modified


def flex_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: Plan,
    *,
    scheme: Value | None = None,
    causal: bool = True,
    window: int = 0,
    compiled: bool = False,
) -> torch.Tensor:
    """Attention with any plan by torch's FlexAttention, on the device of q [batch, heads, length, head_dim] and k, v of as many heads
    or fewer, unrotated. window: a query sees so many keys, itself among them. compiled: by torch.compile, as FlexAttention is meant to
    be run; what it refuses is said by `score_mod`."""
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as flex

    plan.check("posenc.flex.flex_attention")
    length, heads = q.shape[2], q.shape[1]
    modified = score_mod(plan, heads, length, q.device, q=q, k=k, scheme=scheme)

    def seen(batch, head, q_idx, kv_idx):
        near = (q_idx - kv_idx < window) & (kv_idx - q_idx < window) if window else q_idx == q_idx
        return near & (q_idx >= kv_idx) if causal else near

    mask = create_block_mask(seen, None, None, length, length, device=q.device) if causal or window else None
    if plan.rotates:
        q, k = rotate(plan, q), rotate(plan, k)
    run = torch.compile(flex) if compiled else flex
    return run(q, k, v, score_mod=modified, block_mask=mask, enable_gqa=k.shape[1] != heads)
