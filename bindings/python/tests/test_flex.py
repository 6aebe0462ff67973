"""FlexAttention with every scheme, beside posenc's own attention."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention.flex_attention")

from some_plans import DIM, HEADS, LENGTH, PLANS, compiled, tensor, with_tables  # noqa: E402

import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402


@pytest.fixture(autouse=True)
def compiled_anew():
    """FlexAttention traces each score_mod, and torch limits how many it keeps."""
    torch._dynamo.reset()


def qkv():
    return tensor(2, HEADS, LENGTH, DIM), tensor(2, 2, LENGTH, DIM, seed=1), tensor(2, 2, LENGTH, DIM, seed=2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", [{}, {"window": 4}, {"causal": False}], ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_every_plan(name, how):
    plan, (q, k, v) = PLANS[name](), qkv()
    made = pt.flex_attention(q, k, v, plan, **how)
    assert torch.allclose(made, pt.attention(q, k, v, plan, **how), atol=2e-5)


@pytest.mark.filterwarnings("ignore")
def test_schemes_that_read_the_content():
    q, k, v = qkv()
    fire = posenc.Fire(
        hidden_weight=tensor(3), hidden_bias=tensor(3, seed=1), output_weight=tensor(HEADS, 3, seed=2), output_bias=tensor(HEADS)
    )  # fmt: skip
    gates = posenc.Forgetting(log_gates=-tensor(2, HEADS, LENGTH).abs())
    for scheme in (fire, gates):
        made = pt.flex_attention(q, k, v, compiled(posenc.Rope()), scheme=scheme)
        assert torch.allclose(made, pt.attention(q, k, v, compiled(posenc.Rope()), scheme=scheme), atol=2e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("steep", [-1e9, float(torch.finfo(torch.float32).min), -float("inf")])
def test_steep_gates_spoil_nothing_behind_them(steep):
    q, k, v = qkv()
    gates = -tensor(2, HEADS, LENGTH).abs()
    gates[:, :, [0, 3]] = steep
    made = pt.flex_attention(q, k, v, compiled(posenc.NoPe()), scheme=posenc.Forgetting(log_gates=gates))
    assert torch.allclose(
        made, pt.attention(q, k, v, compiled(posenc.NoPe()), scheme=posenc.Forgetting(log_gates=gates)), atol=2e-5
    )


def test_what_no_score_mod_says_is_refused():
    q, k, v = qkv()
    nothing = compiled(posenc.NoPe())
    with pytest.raises(posenc.Error, match="added to the output"):
        pt.flex_attention(q, k, v, with_tables(posenc.Shaw(max_distance=5), "key", "value"))
    with pytest.raises(posenc.Error, match=r"stick_breaking weighs .*posenc\.torch\.attention takes any"):
        pt.flex_attention(q, k, v, nothing, scheme=posenc.StickBreaking())
    with pytest.raises(posenc.Error, match="needs q= and k="):
        pt.score_mod(PLANS["Shaw"](), HEADS, LENGTH)
