"""Errors say in Python's words what to pass."""

import pytest

import posenc


def raised(call) -> str:
    with pytest.raises(posenc.Error) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: posenc.plan(posenc.Rope()), "pass head_dim="),
        (lambda: posenc.plan(posenc.Alibi()), "pass heads="),
        (lambda: posenc.plan(posenc.Sinusoidal()), "pass width="),
        (lambda: posenc.plan(posenc.GridBias(), heads=2), "pass grid_height= and grid_width=: patches"),
        (lambda: posenc.positions.ids([-1]), "posenc.positions.from_mask"),
        (lambda: posenc.positions.packed([3, 1]), "give [0, n0, n0 + n1, ...]"),
        (
            lambda: posenc.positions.vision([1], rule="x"),
            "pass the family's, or advance=, step= and tokens_per_second=",
        ),
    ],
)
def test_a_cure_is_python(call, cure):
    assert raised(call).endswith(cure) or cure in raised(call)


def test_no_cure_is_a_flag():
    assert "--" not in raised(lambda: posenc.precision("qwen3-8b", at=-1))


def test_identify_asks_for_repeated_by_its_name(np):
    assert "(repeated=True)" in raised(lambda: posenc.identify(np.ones((1, 3, 8))))


@pytest.mark.parametrize(
    "ids", [range(3), [0, 1, 2], 3, posenc.positions.range(0, 3)], ids=lambda ids: type(ids).__name__
)
@pytest.mark.parametrize("verb", ["rotate", "rotate_"])
def test_ids_in_the_place_of_keys_are_told(np, verb, ids):
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    said = raised(lambda: getattr(plan, verb)(np.ones((1, 2, 3, 8)), ids))
    assert said.endswith(f"k must be keys, an array like q, got {type(ids).__name__}; pass ids as position_ids=")


def test_an_array_of_ids_in_the_place_of_keys_is_told(np):
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    assert "pass ids as position_ids=" in raised(lambda: plan.rotate(np.ones((1, 2, 3, 8)), np.arange(3)))


def test_a_scheme_as_json_has_it_is_compiled():
    said = {"type": "rope", "rope_theta": 1e6, "scaling": {"type": "linear", "factor": 2.0}}
    assert posenc.plan(said, head_dim=8) == posenc.plan(
        posenc.Rope(theta=1e6, scaling=posenc.Linear(factor=2)), head_dim=8
    )


def test_a_scheme_of_no_list_is_told():
    assert "one of: nope" in raised(lambda: posenc.plan({"type": "spiral"}, head_dim=8))


def test_a_keyword_of_another_function_names_the_function():
    with pytest.raises(TypeError, match=r"^plan\(\): incompatible function arguments"):
        posenc.plan(posenc.Rope(), hed_dim=8)


def test_a_length_may_be_written_as_the_command_takes_it():
    assert posenc.extend("qwen3-8b", "128k").to == posenc.extend("qwen3-8b", 131072).to == 131072
    assert "write it like 131072, '128k' or '1e6'" in raised(lambda: posenc.extend("qwen3-8b", "far"))
