"""Position ids of a live model, compared with those that its arguments ask for: mask, cached tokens, packing, pictures."""

from __future__ import annotations

import torch

from .. import _posenc, positions, tools


def ids_findings(seen):
    """What is wrong with the ids that a model's rotary modules were given, of each call the first that they were given."""
    rules, checked = _Rules(seen.model.config), set()
    for record in seen.rotary:
        ids, call = record["ids"], record["call"]
        if call < 0 or call in checked or ids.dim() not in (2, 3):
            continue
        checked.add(call)
        said = seen.calls[call]
        expected, keep = rules.expected(said, ids)
        if expected is None:
            continue
        if said["mask"] is not None:
            ids = ids.expand(*ids.shape[:-2], len(said["mask"]), -1)  # one row for all, as a model makes it
        harmless = rules.harmless(said, ids, torch.as_tensor(expected.numpy()), keep)
        yield from _slips(ids, expected, keep, harmless)


def _slips(ids, expected, keep, harmless: bool):
    if ids.dim() == 3 and (ids == ids[:1]).all():
        ids = ids[0]  # text alone, or counted as if it were
    for each in ids if ids.dim() == 3 and expected.axes == 1 else [ids]:
        report = tools.check_positions(each.numpy(), expected, keep=None if keep is None else keep.numpy())
        for finding in report.findings:
            data = dict(finding.to_dict())
            if harmless:
                data["severity"] = "note"
                data["message"] += " Every token of a sequence is shifted alike, which a rotation does not see."
            yield data
        if report.findings:  # the axes of a text say the same
            return


class _Rules:
    """Which ids each call of a model should have, and what is known of its caches from calls before."""

    def __init__(self, config) -> None:
        self.config = config
        self._shifts: dict = {}  # of a cache: how far the tokens of each sequence are from what was expected
        self._deltas: dict = {}  # of a cache: how far text goes on from its number of tokens, behind pictures

    def expected(self, call: dict, ids):
        """The ids [batch, seq] or [axes, batch, seq], or None where nothing tells them; and which tokens count (None: all)."""
        mask, cached, tokens = call["mask"], call["cached"], ids.shape[-1]
        if call["bounds"] is not None:
            return positions.packed(call["bounds"]), None
        pictures = ids.dim() == 3 and (call["grids"] or self._has_pictures(call["tokens"]))
        if pictures and not cached:
            return self._with_pictures(call), None
        if ids.dim() == 3 and cached:
            delta = self._deltas.get(call["cache"])
            return (None if delta is None else positions.range(cached + delta, tokens)), None
        self._deltas[call["cache"]] = 0
        if mask is not None and mask.shape[-1] == cached + tokens:
            return positions.from_mask(mask.numpy(), cached), mask[:, cached:].to(torch.uint8).contiguous()
        packed = None if cached or mask is not None else _packed(call["given"])
        return packed or positions.range(cached, tokens), None

    def harmless(self, call: dict, ids, expected, keep) -> bool:
        """Whether every token of a sequence is shifted alike, those in the cache among them: no rotation sees that."""
        shifts = [_shift(ids, expected, keep, row) for row in range(ids.shape[-2])]
        before = self._shifts.get(call["cache"]) if call["cached"] else None
        self._shifts[call["cache"]] = shifts
        if None in shifts:
            return False
        return not call["cached"] or shifts == (before or _left_padding(call["mask"], len(shifts)))

    def _has_pictures(self, tokens) -> bool:
        marks = [getattr(self.config, name, None) for name in ("image_token_id", "video_token_id")]
        return tokens is not None and any(mark is not None and bool((tokens == mark).any()) for mark in marks)

    def _with_pictures(self, call: dict):
        """By the family's rule, where it and the pictures' grids are known (generate() of transformers 5 does not hand them on)."""
        rules = [name for name, _ in _posenc.vision_rules() if self.config.model_type.startswith(name)]
        if not call["grids"] or not rules or call["tokens"] is None or len(call["tokens"]) > 1:
            return None
        vision = getattr(self.config, "vision_config", None)
        marks = ("image_token_id", "video_token_id")
        expected, self._deltas[call["cache"]] = positions.vision(
            call["tokens"][0].numpy(),
            rule=max(rules, key=len),
            spatial_merge_size=getattr(vision, "spatial_merge_size", 2),
            tokens_per_second=getattr(vision, "tokens_per_second", None),
            **call["grids"],
            **{name: getattr(self.config, name) for name in marks if hasattr(self.config, name)},
        )
        return expected


def _packed(ids):
    """Packed sequences, where the caller's own ids say so: each counts from 0."""
    if ids is None or len(ids) != 1 or ids[0, 0] != 0:
        return None
    row = ids[0]
    if not ((row[1:] - row[:-1] == 1) | (row[1:] == 0)).all():
        return None
    return positions.packed([*(row == 0).nonzero().flatten().tolist(), len(row)])


def _shift(found, expected, keep, row: int) -> int | None:
    """How far the ids of a sequence are from the expected ones; None where that differs from token to token."""
    shift = found[..., row, :] - expected[..., row if expected.shape[-2] > 1 else 0, :]
    if keep is not None:
        shift = shift[..., keep[row].bool()]
    if not shift.numel():
        return 0
    first = shift.flatten()[0]
    return int(first) if (shift == first).all() else None


def _left_padding(mask, rows: int) -> list[int]:
    """How far a model shifts its sequences that counts the columns of a mask, where all padding is on the left."""
    if mask is None:
        return [0] * rows
    return [int(row.argmax()) if (row[row.argmax() :] == 1).all() else -1 for row in mask.long()]
