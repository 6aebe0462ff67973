"""Test vectors of transformers' positions: inputs, right answers, and the answers that known mistakes give.

    import posenc_vectors

    @posenc_vectors.rotary
    def test_rotary(vector):
        q, k = my_rotary(vector.q, vector.k, vector.positions, vector.inv_freq, interleaved=vector.pairing == "interleaved")
        return {"q": q, "k": k}

makes a pytest test of each vector. One that fails says what the engine does, if that is a known mistake: "wrong_pairing: the
wrong channels make a pair". Answers may be lists, or whatever has .tolist() (NumPy, torch, JAX).
"""

from posenc_vectors.judge import Mistake, Vector, Verdict, judge, load, mistakes, operations
from posenc_vectors.tests import (
    added,
    attention_bias,
    attention_mask,
    attention_scores,
    cos_sin,
    frequencies,
    model,
    position_ids,
    rekey,
    rotary,
    vectors_of,
)

__all__ = [
    "Mistake",
    "Vector",
    "Verdict",
    "added",
    "attention_bias",
    "attention_mask",
    "attention_scores",
    "cos_sin",
    "frequencies",
    "judge",
    "load",
    "mistakes",
    "model",
    "operations",
    "position_ids",
    "rekey",
    "rotary",
    "vectors_of",
]
