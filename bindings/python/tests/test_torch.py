"""PyTorch: gradients, operators where there are any, the rotary module. Debian's 1.13 has all but operators."""

import pytest

torch = pytest.importorskip("torch")

import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
from posenc.torch_rotation import HAS_OPERATORS  # noqa: E402

operators = pytest.mark.skipif(not HAS_OPERATORS, reason="torch.library.custom_op came with PyTorch 2.4")
YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64))


@pytest.fixture(params=["halves", "interleaved"])
def plan(request):
    return posenc.plan(YARN.replace(pairing=request.param, partial_rotary_factor=0.5), head_dim=16, heads=2)


def tensor(*shape, dtype=torch.float64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensors_are_arrays(plan, dtype):
    x = tensor(1, 2, 5, 16).to(dtype)
    rotated = plan.rotate(x, position_ids=torch.arange(5))
    assert isinstance(rotated, torch.Tensor) and rotated.dtype == dtype
    exact = plan.rotate(x.double())
    assert torch.allclose(rotated.double(), exact, atol=8 * torch.finfo(dtype).eps)
    across = x.transpose(1, 2).contiguous()
    assert plan.rotate_(across, layout="bshd") is None
    assert torch.equal(across.transpose(1, 2), rotated)


def test_gradcheck(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    frequency = pt.frequencies(plan).clone().requires_grad_()
    ids = torch.tensor([0, 2, 7])
    assert torch.autograd.gradcheck(lambda x, f: pt.rotate(plan, x, ids, frequency=f), (x, frequency))


def test_gradients_reach_through_views_and_broadcasts(plan):
    x = tensor(1, 3, 2, 16).requires_grad_()
    pt.rotate(plan, x.transpose(1, 2)).sum().backward()
    ones = torch.ones(1, 2, 3, 16, dtype=torch.float64)
    assert torch.allclose(x.grad.transpose(1, 2), plan.rotate_transpose(ones))


def test_in_place_is_for_what_needs_no_gradient(plan):
    x = tensor(1, 2, 3, 16)
    expected = plan.rotate(x)
    assert torch.equal(pt.rotate_(plan, x), expected)
    with pytest.raises(posenc.Error, match="x must need no gradient"):
        pt.rotate_(plan, x.clone().requires_grad_())


@operators
def test_opcheck(plan):
    arguments = (
        pt.frequencies(plan),
        torch.arange(3),
        plan.pairing,
        plan.first_dim,
        plan.blocks,
        plan.attention_factor,
        "",
    )
    for x in (tensor(1, 2, 3, 16), tensor(1, 3, 2, 16).transpose(1, 2)):
        torch.library.opcheck(torch.ops.posenc.rotate.default, (x.clone().requires_grad_(), *arguments))
        torch.library.opcheck(torch.ops.posenc.rotate_transpose.default, (x, *arguments))


@operators
def test_a_compiled_function_has_no_break(plan):
    rotation = pt.Rotation(plan)

    def twice(x):
        return pt.rotate(rotation, rotation(x) * 2)

    x = tensor(1, 2, 3, 16, dtype=torch.float32).requires_grad_()
    compiled = torch.compile(twice, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x), twice(x))
    compiled(x).sum().backward()
    assert x.grad is not None


def test_attention_and_its_gradients():
    plan = posenc.plan(posenc.Alibi(), heads=2, head_dim=8)
    q, k, v = (tensor(1, 2, 4, 8, seed=i).requires_grad_() for i in range(3))
    assert torch.autograd.gradcheck(lambda q, k, v: pt.attention(q, k, v, plan), (q, k, v))
    rope = posenc.plan(posenc.Rope(), head_dim=8)
    expected = (
        torch.nn.functional.scaled_dot_product_attention(pt.rotate(rope, q), pt.rotate(rope, k), v, is_causal=True)
        if HAS_OPERATORS
        else None
    )
    if expected is not None:
        assert torch.allclose(pt.attention(q, k, v, rope), expected)


def test_score_mod_is_the_bias():
    plan = posenc.plan(posenc.T5(num_buckets=8, max_distance=16, bidirectional=True), heads=2, head_dim=8)
    plan = plan.with_table("bias", tensor(2, 8, dtype=torch.float64))
    modified = pt.score_mod(plan, heads=2, length=6)
    i, j = torch.meshgrid(torch.arange(6), torch.arange(6), indexing="ij")
    for head in range(2):
        assert torch.allclose(modified(torch.zeros(6, 6), 0, head, i, j), torch.as_tensor(plan.bias(6)[head]))


def test_cos_sin_as_other_devices_form_them(plan, monkeypatch):
    ids = torch.tensor([[0, 5, 9000]])
    x = tensor(1, 2, 3, 16, dtype=torch.float32)
    exact = pt.cos_sin(plan, ids, torch.float64)
    assert torch.allclose(pt._rotated_elsewhere(plan, x, ids, ""), plan.rotate(x, position_ids=ids), atol=1e-5)
    for each, made in zip(exact, plan.cos_sin(ids, dtype=torch.float64), strict=True):
        assert torch.equal(each, made)


@pytest.mark.parametrize("layout", ["bhsd", "bshd", "sbhd", "hsd", "thd", "sd"])
@pytest.mark.parametrize("batched", [True, False])
def test_layouts_on_other_devices(plan, layout, batched):
    extent = {"b": 2, "h": 3, "s": 4, "t": 4, "d": 16}
    x = tensor(*(extent[axis] for axis in layout), dtype=torch.float32)
    ids = (
        torch.tensor([[0, 5, 9, 1], [7, 7, 2, 3]][: extent["b"] if "b" in layout else 1])
        if batched
        else torch.arange(4)
    )
    made = pt._rotated_elsewhere(plan, x, ids, layout)
    assert torch.allclose(made, plan.rotate(x, position_ids=ids, layout=layout), atol=1e-5)


@pytest.mark.parametrize(
    "heads, pairing, blocks", [(1, "halves", 1), (1, "halves", 2), (2, "halves", 2), (2, "interleaved", 1)]
)
def test_learned_frequencies_on_other_devices(heads, pairing, blocks):
    frequency = tensor(heads, 2, 4).abs()
    plan = posenc.Plan.of_frequencies(frequency.numpy(), pairing=pairing, blocks=blocks)
    x, ids = tensor(1, 2, 3, 8, dtype=torch.float32), torch.arange(6).reshape(2, 1, 3)
    gradients = []
    for rotated in (
        pt._rotated_elsewhere,
        lambda plan, x, ids, _, frequency: pt.rotate(plan, x, ids, frequency=frequency),
    ):
        learned = frequency.clone().requires_grad_()
        made = rotated(plan, x, ids, "", learned)
        assert torch.allclose(made, plan.rotate(x, position_ids=ids), atol=1e-5)
        made[..., 1].square().sum().backward()
        gradients.append(learned.grad)
    assert torch.allclose(*gradients, atol=1e-4)


def test_the_rotary_module():
    config = {
        "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9,
        "max_position_embeddings": 64, "rope_theta": 1e4, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0},
    }  # fmt: skip
    module = pt.RotaryEmbedding(config)
    x = torch.zeros(1, 3, 64, dtype=torch.bfloat16)
    cos, _sin = module(x, torch.tensor([[0, 1, 2]]))
    assert cos.shape == (1, 3, 16) and cos.dtype == torch.bfloat16
    near, far = module.plan(), module.plan(length=200)
    assert near.inv_freq[3] != far.inv_freq[3]
    cos, _ = module(x.double(), torch.tensor([[0, 1, 199]]))
    assert torch.allclose(cos[..., :8], far.cos_sin(torch.tensor([[0, 1, 199]]), dtype=torch.float64, halves=True)[0])
    module.to(torch.bfloat16)
    assert torch.equal(
        module(x.double(), torch.tensor([[0, 1, 2]]))[1][..., :8],
        near.cos_sin(torch.tensor([[0, 1, 2]]), dtype=torch.float64, halves=True)[1],
    )


def test_verbs_without_gradients_refuse_what_needs_one(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    assert plan.rotate(x).requires_grad and all(each.requires_grad for each in plan.rotate(x, x))
    for refused in (lambda: plan.rotate_(x), lambda: plan.rotate_inverse(x), lambda: posenc.attend(x, x, x, plan)):
        with pytest.raises(
            posenc.Error, match=r"must need no gradient here, .*pass \w+\.detach\(\), or take posenc\.torch"
        ):
            refused()
    with torch.no_grad():
        assert torch.equal(plan.rotate_inverse(plan.rotate(x)), plan.rotate_inverse(plan.rotate(x.detach())))


# --- torch.func -----------------------------------------------------------------------------------------------------

transforms = pytest.mark.skipif(not hasattr(torch, "func"), reason="torch.func came with PyTorch 2.0")


def cubed(plan):
    ids = torch.arange(3)
    return lambda x: pt.rotate(plan, x, ids).pow(3).sum()


@transforms
def test_func_grad_is_the_gradient(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    cubed(plan)(x).backward()
    assert torch.allclose(torch.func.grad(cubed(plan))(x.detach()), x.grad)


@transforms
def test_func_grad_has_that_by_the_frequency(plan):
    x, frequency = tensor(1, 2, 3, 16), pt.frequencies(plan).requires_grad_()

    def loss(frequency):
        return pt.rotate(plan, x, torch.arange(3), frequency=frequency).pow(3).sum()

    loss(frequency).backward()
    assert torch.allclose(torch.func.grad(loss)(frequency.detach()), frequency.grad)


@transforms
def test_a_rotation_is_its_own_forward_derivative(plan):
    x, tangent = tensor(1, 2, 3, 16), tensor(1, 2, 3, 16, seed=1)
    _, made = torch.func.jvp(lambda x: pt.rotate(plan, x), (x,), (tangent,))
    assert torch.allclose(made, pt.rotate(plan, tangent))


@operators
def test_func_takes_gradients_of_each_example(plan):
    x = tensor(4, 1, 2, 3, 16)
    each = torch.func.vmap(torch.func.grad(cubed(plan)))(x)
    assert torch.allclose(each, torch.func.grad(lambda x: sum(cubed(plan)(one) for one in x))(x))


@transforms
def test_func_has_second_derivatives(plan):
    x = tensor(1, 1, 2, 16)
    ids = torch.arange(2)

    def loss(x):
        return pt.rotate(plan, x, ids).pow(3).sum()

    assert torch.allclose(torch.func.hessian(loss)(x), torch.autograd.functional.hessian(loss, x))


@transforms
def test_func_grad_goes_through_attention(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    pt.attention(x, x, x, plan).pow(2).sum().backward()
    made = torch.func.grad(lambda x: pt.attention(x, x, x, plan).pow(2).sum())(x.detach())
    assert torch.allclose(made, x.grad)


def test_a_second_derivative_of_attention_is_refused(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    (first,) = torch.autograd.grad(pt.attention(x, x, x, plan).pow(2).sum(), x, create_graph=True)
    with pytest.raises(
        posenc.Error, match=r"posenc\.torch\.attention: the derivative is a first one, got a second; use"
    ):
        first.sum().backward()
