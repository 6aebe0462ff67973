"""The plan of an engine's rotary module, and keys that turn by it on any device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from .. import _posenc
from .._posenc import Plan
from ..errors import Error

WHERE = "posenc.serving"


def refuse(rule: str, got: str, cure: str = "") -> None:
    raise Error(f"{WHERE}: {rule}, got {got}" + (f"; {cure}" if cure else ""), WHERE, rule, got, cure)


def plan_of(rotary: Any, length: int | None = None, first_dim: int = 0) -> Plan:
    """The plan by which a rotary module of vLLM or SGLang rotates: by its table of cosines and sines, whatever scaling made it.

    rotary: with cos_sin_cache [position, rotary_dim] and is_neox_style; mrope_section, and mrope_interleaved, where it has several axes;
    base, whose powers are taken where the table holds them. length: of the text, for LongRoPE's two tables. first_dim: the first
    channel that rotates, of rows that hold more (DeepSeek's latents). Raises posenc.Error for tables of other shapes, or short ones.
    """
    if isinstance(rotary, Plan):
        return rotary
    table = _table(rotary, length)
    frequencies, amplitude = _frequencies(table.to("cpu", torch.float64))
    pairs = len(frequencies)
    base = getattr(rotary, "base", None)
    if isinstance(base, (int, float)) and base > 1:
        powers = [float(base) ** (-i / pairs) for i in range(pairs)]
        # Closer than any scaling is, or than rounded cosines tell up to the table's end.
        rounding = 2 * torch.finfo(table.dtype).eps / len(table)
        if all(abs(f - power) <= max(1e-5 * power, rounding) for f, power in zip(frequencies, powers, strict=True)):
            frequencies = powers
    on_axes = axes_of(
        frequencies, getattr(rotary, "mrope_section", None), bool(getattr(rotary, "mrope_interleaved", False))
    )
    return Plan.of_frequencies(
        torch.tensor(on_axes, dtype=torch.float64),
        pairing="halves" if rotary.is_neox_style else "interleaved",
        first_dim=first_dim,
        attention_factor=amplitude,
    )


def axes_of(frequencies: Sequence[float], section: Sequence[int] | None, interleaved: bool) -> list[list[float]]:
    """Frequencies [axis][pair]: of one axis, or of the three that section shares the pairs out to, in runs or in turn."""
    pairs = len(frequencies)
    if not section:
        return [list(frequencies)]
    if sum(section) != pairs:
        refuse("mrope_section must share out all pairs", f"{list(section)} for {pairs}")
    axes = [axis for axis, count in enumerate(section) for _ in range(count)]
    if interleaved:
        # Time has all pairs but those of rows and columns, which are every third up to their number.
        axes = [0] * pairs
        for axis in range(1, len(section)):
            for pair in range(axis, min(pairs, len(section) * section[axis]), len(section)):
                axes[pair] = axis
    return [[f if axes[pair] == axis else 0.0 for pair, f in enumerate(frequencies)] for axis in range(len(section))]


def _table(rotary: Any, length: int | None) -> Any:
    both = getattr(rotary, "long_short_cos_sin_cache", None)
    if both is not None:
        trained = int(rotary.original_max_position_embeddings)
        if length is None:
            refuse(
                "of LongRoPE's two tables the length of the text says which rotated the keys",
                "no length",
                f"up to {trained} it is the short one; pass old_length and new_length",
            )
            raise AssertionError
        table = both[:trained] if length <= trained else both[trained:]
    else:
        table = getattr(rotary, "cos_sin_cache", None)
    if table is None or table.dim() != 2 or table.shape[1] % 2 or table.shape[0] < 2:
        refuse(
            "a rotary module must have cos_sin_cache [position, rotary_dim]",
            type(rotary).__name__ if table is None else str(list(table.shape)),
            "pass a posenc.Plan in its place",
        )
    return table.detach()


def _frequencies(table: torch.Tensor) -> tuple[list[float], float]:
    """Of each pair, by the angle at position 1 and, each time twice as far out, by what is left of it there."""
    cosines, sines = table.chunk(2, -1)
    amplitude = float(torch.hypot(cosines[0], sines[0]).mean())
    found = torch.atan2(sines[1], cosines[1])
    at = 2
    while at < len(table):
        left = torch.atan2(sines[at], cosines[at]) - at * found
        found = found + (left - 2 * math.pi * torch.round(left / (2 * math.pi))) / at
        at *= 2
    return found.tolist(), amplitude if abs(amplitude - 1) > 1e-6 else 1.0


def as_ids(positions: torch.Tensor) -> torch.Tensor:
    """[seq] of one axis, or [axes, batch, seq] of positions [axes, seq]."""
    positions = positions.detach()
    return positions if positions.dim() == 1 else positions[:, None]


def moved(keys: torch.Tensor, before: Plan, old: torch.Tensor, after: Plan, new: torch.Tensor) -> torch.Tensor:
    """Keys [seq, head, head_dim] that stood at `old` by one plan, as they stand at `new` by another: a new tensor."""
    if keys.device.type == "cpu":
        return _posenc.rekey(keys.detach(), before, as_ids(old.cpu()), after, as_ids(new.cpu()), layout="shd")
    return turned(keys, before, old, after, new)


def turned(keys: torch.Tensor, before: Plan, old: torch.Tensor, after: Plan, new: torch.Tensor) -> torch.Tensor:
    """The same by torch's own operations, wherever the keys are."""
    if (before.pairing, before.first_dim, before.rotary_dim, before.axes) != (
        after.pairing, after.first_dim, after.rotary_dim, after.axes,
    ):  # fmt: skip
        refuse("on a device both plans must rotate the same channels in the same pairs", f"{before!r} and {after!r}")
    device = keys.device

    def angles(plan: Plan, positions: torch.Tensor) -> torch.Tensor:
        rates = torch.as_tensor(plan.inv_freq, dtype=torch.float64, device=device).reshape(plan.axes, -1)
        return torch.atleast_2d(positions.to(device, torch.float64)).mT @ rates

    by = angles(after, new) - angles(before, old)
    factor = after.attention_factor / before.attention_factor
    wide = torch.promote_types(keys.dtype, torch.float32)
    cosines, sines = ((f(by) * factor).to(wide)[:, None] for f in (torch.cos, torch.sin))
    first, count = before.first_dim, before.rotary_dim
    part = keys[..., first : first + count].to(wide)
    halves = before.pairing == "halves"
    a, b = part.chunk(2, -1) if halves else (part[..., ::2], part[..., 1::2])
    pairs = (a * cosines - b * sines, b * cosines + a * sines)
    made = keys.clone()
    made[..., first : first + count] = (torch.cat(pairs, -1) if halves else torch.stack(pairs, -1).flatten(-2)).to(
        keys.dtype
    )
    return made
