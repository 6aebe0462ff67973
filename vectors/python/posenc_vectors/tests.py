"""Decorators that make pytest tests of vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from posenc_vectors.judge import Vector, judge, load

shown: list[tuple[str, str]] = []  # of this session: the vector, and the mistake that it showed


def vectors_of(operation: str) -> Callable[..., Any]:
    """A decorator for an operation, bare or with dtype=, only= (the beginning of ids) and skip= (a tuple of beginnings)."""

    def decorate(
        function: Callable[[Vector], Mapping[str, Any]] | None = None,
        *,
        dtype: str = "float32",
        only: str = "",
        skip: tuple[str, ...] = (),
    ) -> Any:
        if function is None:
            return functools.partial(decorate, dtype=dtype, only=only, skip=skip)
        import pytest

        tests = [v for v in load(operation) if v.id.startswith(only) and not v.id.startswith(skip or ("\0",))]

        @pytest.mark.parametrize("vector", tests, ids=[v.id for v in tests])
        def test(vector: Vector) -> None:
            verdict = judge(vector, function(vector), dtype)
            if verdict:
                return
            for mistake in verdict.shows:
                shown.append((f"{operation}/{vector.id}", mistake.name))
            pytest.fail(f"{operation}/{vector.id}: {verdict}", pytrace=False)

        test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
        return test

    return decorate


frequencies = vectors_of("frequencies")
cos_sin = vectors_of("cos_sin")
rotary = vectors_of("rotate")
model = vectors_of("model")
rekey = vectors_of("rekey")
position_ids = vectors_of("positions")
attention_bias = vectors_of("bias")
attention_mask = vectors_of("mask")
attention_scores = vectors_of("scores")
added = vectors_of("added")
