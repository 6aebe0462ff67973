"""Angles that content says, from Python: forms, decoding, gradients."""

import numpy as np
import pytest

import posenc

rng = np.random.default_rng(7)


def test_steps_of_one_are_rope_a_token_further_on():
    form = posenc.selective_rope(8, theta=10000)
    angles, after = form.angles(np.ones((1, 2, 5, 4)))
    q = rng.standard_normal((1, 2, 5, 8))
    rope = posenc.plan(posenc.Rope(rope_theta=10000), head_dim=8)
    np.testing.assert_allclose(form.plan.rotate_by(q, angles), rope.rotate(q, position_ids=range(1, 6)), atol=1e-12)
    np.testing.assert_array_equal(after, angles[:, :, -1])


def test_a_text_in_two_parts_is_that_text():
    form = posenc.mamba3(8)
    said, time = rng.standard_normal((1, 6, 2)), rng.standard_normal((3, 6, 1))
    whole, _ = form.angles(said, gate=time)
    first, after = form.angles(said[:, :4], gate=time[:, :4])
    second, _ = form.angles(said[:, 4:], gate=time[:, 4:], start=after)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-13)


def test_gradients_are_differences():
    form = posenc.carope(8)
    said, weight = rng.standard_normal((2, 5, 1)), rng.standard_normal((2, 5, 4))
    by = form.gradient(weight, said)["said"]
    for at in [(0, 0, 0), (1, 3, 0)]:
        step = np.zeros_like(said)
        step[at] = 1e-5
        more, less = (np.sum(weight * form.angles(said + s)[0]) for s in (step, -step))
        assert by[at] == pytest.approx((more - less) / 2e-5, rel=1e-6, abs=1e-9)


def test_a_token_that_says_where_it_stands_stands_there():
    form = posenc.repo(8, theta=10000)
    at = rng.integers(0, 1000, 5)
    angles, after = form.angles(at.reshape(1, 5, 1).astype(float))
    np.testing.assert_allclose(angles[0], at[:, None] * 10000 ** (-np.arange(4) / 4), rtol=1e-14)
    assert form.sums is False and not after.any()


def test_what_does_not_fit_is_refused():
    form = posenc.selective_rope(8)
    with pytest.raises(posenc.Error, match="said must be"):
        form.angles(np.ones((1, 2, 5, 3)))
    form.gate = "sigmoid"
    with pytest.raises(posenc.Error, match="gate must be given"):
        form.angles(np.ones((1, 2, 5, 4)))
    assert posenc.grape_m(8).own_step is False
