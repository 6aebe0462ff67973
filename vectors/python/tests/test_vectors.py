"""The judge and the plugin, from the installed package."""

import posenc_vectors
import pytest

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("operation", posenc_vectors.operations())
def test_right_answers_pass_and_each_mistake_is_named(operation):
    for vector in posenc_vectors.load(operation):
        document = posenc_vectors.judge.__globals__["_read"](operation)
        test = next(t for t in document["tests"] if t["id"] == vector.id)
        assert posenc_vectors.judge(vector, test["output"])
        for name, wrong in test["mistakes"].items():
            verdict = posenc_vectors.judge(vector, {**test["output"], **wrong})
            assert not verdict and name in [m.name for m in verdict.shows], (vector.id, name)


def test_two_mistakes_at_once_are_both_named():
    vector = next(v for v in posenc_vectors.load("frequencies") if v.id == "yarn/rope_type")
    test = next(t for t in posenc_vectors.judge.__globals__["_read"]("frequencies")["tests"] if t["id"] == vector.id)
    answer = {"inv_freq": test["mistakes"]["ramp_reversed"]["inv_freq"], "attention_factor": 1}
    assert {m.name for m in posenc_vectors.judge(vector, answer).shows} == {"ramp_reversed", "factor_dropped"}


def test_an_answer_without_outputs_is_refused():
    with pytest.raises(ValueError, match="must have one of inv_freq, attention_factor"):
        posenc_vectors.judge(posenc_vectors.load("frequencies")[0], {"freqs": [1.0]})


def test_a_vector_has_its_inputs_as_attributes():
    vector = posenc_vectors.load("bias")[0]
    assert vector.heads == vector.asked["heads"] and vector.operation == "bias"


ENGINE = """
import math
import posenc_vectors

def rotate(x, v, pairing):
    half, out = v.rotary_dim // 2, [[list(head) for head in token] for token in x]
    for t, token in enumerate(x):
        for h, head in enumerate(token):
            for r, f in enumerate(v.inv_freq):
                a, b = (r, r + half) if pairing == "halves" else (2 * r, 2 * r + 1)
                a, b = a + v.first_dim, b + v.first_dim
                c, s = math.cos(v.positions[t] * f) * v.attention_factor, math.sin(v.positions[t] * f) * v.attention_factor
                out[t][h][a], out[t][h][b] = head[a] * c - head[b] * s, head[b] * c + head[a] * s
    return out

@posenc_vectors.rotary(dtype="float64", only="PAIRING/whole")
def test_rotary(vector):
    return {"q": rotate(vector.q, vector, "halves"), "k": rotate(vector.k, vector, "halves")}
"""


def test_the_plugin_passes_an_engine_that_is_right(pytester):
    pytester.makepyfile(ENGINE.replace("PAIRING", "halves"))
    pytester.runpytest().assert_outcomes(passed=3)


def test_the_plugin_names_what_is_wrong(pytester):
    pytester.makepyfile(ENGINE.replace("PAIRING", "interleaved"))
    ran = pytester.runpytest()
    ran.assert_outcomes(failed=3)
    ran.stdout.fnmatch_lines(["*mistakes that the vectors show*", "wrong_pairing (3 of the failures): *", "*cure: *"])


def test_what_has_tolist_is_an_answer():
    class Array:
        def tolist(self):
            return [0.0625, 0.00390625]

    vector = next(v for v in posenc_vectors.load("bias") if v.id == "slopes/2")
    assert posenc_vectors.judge(vector, {"slopes": Array()})
