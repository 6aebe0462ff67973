"""Schemes as values, and what is refused."""

import copy
import pickle

import pytest

import posenc


def test_every_word_of_the_lists_is_a_class():
    words = {entry["name"] for entry in posenc.schemes()}
    classes = {getattr(posenc, name).name for name in posenc.values.__all__ if name != "Value"}
    assert classes == words


def test_fields_by_name_and_alias():
    rope = posenc.Rope(theta=1e6, scaling=posenc.Yarn(factor=4, original_max_position_embeddings=32768))
    assert rope.rope_theta == 1e6 and rope.scaling.factor == 4
    assert repr(rope) == "Rope(rope_theta=1000000.0, scaling=Yarn(factor=4.0, original_max_position_embeddings=32768))"
    assert rope == posenc.Rope(
        rope_theta=1e6, scaling={"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32768}
    )
    assert rope.replace(theta=1e4) == posenc.Rope(scaling=rope.scaling) != rope
    assert pickle.loads(pickle.dumps(rope)) == copy.copy(rope) == rope
    assert "pairing" in dir(rope) and "<code>" in rope._repr_html_()


def test_a_misspelt_field_is_refused_with_the_cure():
    with pytest.raises(posenc.Error) as refused:
        posenc.Yarn(factr=4)
    assert refused.value.value == "'factr'" and "factor" in refused.value.cure
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    with pytest.raises(ValueError, match="must be a number above 0, got -1"):
        posenc.Linear(factor=-1)
    with pytest.raises(AttributeError, match="it has factor"):
        posenc.Linear(factor=2).theta  # noqa: B018


def test_a_scaling_is_no_scheme():
    with pytest.raises(posenc.Error, match=r"posenc\.Rope\(scaling=\.\.\.\)"):
        posenc.plan(posenc.Linear(factor=2), head_dim=64)


@pytest.mark.parametrize("name", [name for name in posenc.values.__all__ if name != "Value"])
def test_values_round_trip(name):
    value = getattr(posenc, name)()
    assert pickle.loads(pickle.dumps(value)) == value
    assert value.title and value.formula and isinstance(value.fields(), dict)
