"""posenc.triton: in Triton's interpreter where there is no device, and on the device where there is one. Every result is held against
Plan.rotate in double: half a step of its type, and in float32 the roundings of a rotation that is computed in it."""

import itertools

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton", reason="triton is not installed")

import posenc  # noqa: E402
from posenc.torch_rotation import HAS_OPERATORS  # noqa: E402

if not HAS_OPERATORS:
    pytest.skip("torch.library.custom_op came with PyTorch 2.4", allow_module_level=True)

import posenc.triton as ptr  # noqa: E402

DEVICE = "cpu" if ptr.INTERPRETED else "cuda"
if DEVICE == "cuda" and not torch.cuda.is_available():
    pytest.skip("triton was imported before, not to be interpreted", allow_module_level=True)

TYPES = [torch.float32, torch.float16, torch.bfloat16]
STEP = {torch.float32: 0, torch.float16: 2**-11, torch.bfloat16: 2**-8}  # half of one, of a number from 1 to 2
YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64))


@pytest.fixture(params=["halves", "interleaved"])
def plan(request):
    return posenc.plan(YARN.replace(pairing=request.param, partial_rotary_factor=0.5), head_dim=16, heads=2)


def tensor(*shape, dtype=torch.float32, seed=0):
    made = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return made.to(dtype).to(DEVICE)


def here(*numbers, dtype=torch.int64):
    return torch.tensor(*numbers, dtype=dtype, device=DEVICE)


def exact(plan, x, position_ids=None, **how):
    ids = position_ids.cpu() if isinstance(position_ids, torch.Tensor) else position_ids
    return plan.rotate(x.cpu().double(), position_ids=ids, **how)


def close(made, wanted):
    """Within half a step of the type and what float32 loses on the way there."""
    made64, wanted = made.cpu().double(), wanted.cpu().double()
    assert made.isfinite().all()
    largest = max(1.0, wanted.abs().max().item())
    allowed = STEP[made.dtype] * wanted.abs() * 1.001 + 2**-22.5 * largest + (made.dtype == torch.float16) * 2**-25
    worst = ((made64 - wanted).abs() - allowed).max().item()
    assert worst <= 0, f"{worst} beyond {made.dtype}'s half step"


FAR = [[0, 1, 7, 131_071, 10**7], [5, 4096, 2**31 - 1, 10**9, 2**31 - 64]]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ids", [torch.int64, torch.int32])
def test_it_is_the_rotation_in_double_at_every_position(plan, dtype, ids):
    q, k = tensor(2, 4, 5, 16, dtype=dtype), tensor(2, 2, 5, 16, dtype=dtype, seed=1)
    at = here(FAR, dtype=ids)
    for made, x in zip(ptr.rotate(q, k, at, plan), (q, k), strict=True):
        close(made, exact(plan, x, at))


def test_positions_below_0_turn_back(plan):
    x = tensor(1, 2, 3, 16)
    wanted = plan.rotate_transpose(x.cpu().double(), [5, 2**31, 1])
    close(ptr.rotate(x, None, here([-5, -(2**31), -1]), plan)[0], wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("head_dim, first, factor, heads", [
    (2, 0, 1.0, 1), (6, 0, 1.0, 3), (80, 0, 0.4, 5), (64, 32, 0.5, 1), (96, 0, 1.0, 7), (128, 0, 1.0, 40), (256, 0, 0.25, 33),
])  # fmt: skip
@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_sizes_that_are_no_powers_of_2(dtype, head_dim, first, factor, heads, pairing):
    frequency = 10000.0 ** (-torch.arange(int(head_dim * factor) // 2, dtype=torch.float64) / (head_dim * factor / 2))
    plan = posenc.Plan.of_frequencies(frequency[None, None].numpy(), pairing=pairing, first_dim=first)
    q, k = tensor(1, heads, 3, head_dim, dtype=dtype), tensor(1, 1, 3, head_dim, dtype=dtype, seed=1)
    for made, x in zip(ptr.rotate(q, k, 1_000_003, plan), (q, k), strict=True):
        close(made, exact(plan, x, 1_000_003))
    before = q.clone()
    ptr.rotate_(q, None, 1_000_003, plan)
    close(q, exact(plan, before, 1_000_003))


@pytest.mark.parametrize(
    "shape, layout", [((2, 3, 5, 16), "bhsd"), ((2, 5, 3, 16), "bshd"), ((5, 3, 16), "thd"), ((5, 16), "sd")]
)
def test_layouts(plan, shape, layout):
    x = tensor(*shape)
    made, none = ptr.rotate(x, None, None, plan, layout=layout)
    assert none is None
    close(made, exact(plan, x, layout=layout))


def test_any_strides_and_nothing_beside_them(plan):
    whole = tensor(3, 2, 16, 10)
    x, kept = whole.transpose(2, 3)[:, :, ::2], whole.clone()
    ptr.rotate_(x, None, 4, plan)
    close(x, exact(plan, kept.transpose(2, 3)[:, :, ::2], 4))
    assert torch.equal(whole.transpose(2, 3)[:, :, 1::2], kept.transpose(2, 3)[:, :, 1::2])


def test_many_tokens_and_few_heads(plan):
    q, k = tensor(1, 1, 700, 16), tensor(1, 1, 700, 16, seed=1)
    for made, x in zip(ptr.rotate(q, k, None, plan), (q, k), strict=True):
        close(made, exact(plan, x))


def test_tensors_without_a_token(plan):
    q = tensor(2, 3, 0, 16)
    assert ptr.rotate(q, None, None, plan)[0].shape == q.shape


def test_packed_texts(plan):
    x = tensor(6, 2, 16)
    bounds, cached = here([0, 2, 6], dtype=torch.int32), here([0, 30], dtype=torch.int32)
    close(ptr.rotate(x, None, None, plan, layout="thd", cu_seqlens=bounds, cached=cached)[0],
          exact(plan, x, here([0, 1, 30, 31, 32, 33]), layout="thd"))  # fmt: skip
    close(ptr.rotate(x, None, None, plan, layout="thd", cu_seqlens=bounds)[0],
          exact(plan, x, here([0, 1, 0, 1, 2, 3]), layout="thd"))  # fmt: skip


def test_packed_texts_of_which_some_are_empty(plan):
    x, bounds = tensor(4, 2, 16), here([0, 0, 3, 3, 3, 4, 4])
    close(ptr.rotate(x, None, None, plan, layout="thd", cu_seqlens=bounds)[0],
          exact(plan, x, here([0, 1, 2, 0]), layout="thd"))  # fmt: skip


def test_a_table_of_plans(plan):
    far = posenc.plan(YARN.replace(pairing=plan.pairing, partial_rotary_factor=0.5, theta=1e6), head_dim=16, heads=2)
    table, x = ptr.Rotation([plan, far]), tensor(2, 2, 3, 16)
    plan_ids = here([[0, 1, 1], [1, 0, 0]])
    wanted = torch.where(plan_ids.cpu()[:, None, :, None] == 1, exact(far, x), exact(plan, x))
    close(ptr.rotate(x, None, None, table, plan_ids=plan_ids)[0], wanted)


@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_axes_and_heads_of_frequencies(pairing):
    frequency = torch.rand(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    plan = posenc.Plan.of_frequencies(frequency.numpy(), pairing=pairing, first_dim=2)
    q, k, ids = tensor(2, 2, 5, 16), tensor(2, 2, 5, 16, seed=1), here(range(30)).reshape(3, 2, 5)
    for made, x in zip(ptr.rotate(q, k, ids, plan), (q, k), strict=True):
        close(made, exact(plan, x, ids))


@pytest.mark.parametrize(
    "name", ["qwen2.5-vl-7b", "qwen3-vl-4b", "chatglm3-6b", "deepseek-v3", "gpt-oss-20b", "llama-3.1-8b"]
)
def test_real_models(name):
    plan = posenc.model(name).plan(layer=0, length=131072)
    x = tensor(1, 2, 6, plan.head_dim, dtype=torch.bfloat16)
    ids = here([[0, 1, 2, 3, 131_070, 131_071]])
    if plan.axes == 3:
        ids = torch.stack((ids, here([[0, 1, 1, 2, 9, 9]]), here([[0, 1, 2, 1, 9, 8]])))
    close(ptr.rotate(x, None, ids, plan)[0], exact(plan, x, ids))


def test_blocks_of_channels_that_have_all_frequencies_each():
    frequency = torch.rand(1, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    frequency[:, 0, 4:], frequency[:, 1, :4] = 0, 0
    plan = posenc.Plan.of_frequencies(frequency.numpy(), pairing="halves", blocks=2)
    x, ids = tensor(1, 3, 5, 16), here(range(10)).reshape(2, 1, 5)
    close(ptr.rotate(x, None, ids, plan)[0], exact(plan, x, ids))


# --- in one launch ------------------------------------------------------------------------------------------------------


def normed(x, weight, eps):
    x = x.cpu().double()
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight.cpu().double()


@pytest.mark.parametrize("dtype", TYPES)
def test_the_norm_comes_before(plan, dtype):
    q, k = tensor(2, 4, 3, 16, dtype=dtype), tensor(2, 2, 3, 16, dtype=dtype, seed=1)
    norm = ptr.Norm(tensor(16, dtype=dtype, seed=2), tensor(16, dtype=dtype, seed=3), 1e-5)
    wanted = [exact(plan, normed(x, weight, 1e-5), 7) for x, weight in ((q, norm.q), (k, norm.k))]
    for made, want in zip(ptr.rotate(q, k, 7, plan, norm=norm), wanted, strict=True):
        close(made, want)
    ptr.rotate_(q, k, 7, plan, norm=norm)
    close(q, wanted[0])
    close(k, wanted[1])


@pytest.mark.parametrize("cache_layout", ["NHD", "HND"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("way", ["slots", "block_table"])
def test_keys_and_values_go_to_the_pages(plan, cache_layout, dtype, way):
    q, k, v = (tensor(3, heads, 16, dtype=dtype, seed=i) for i, heads in enumerate((4, 2, 2)))
    shape = (5, 4, 2, 16) if cache_layout == "NHD" else (5, 2, 4, 16)
    caches = [torch.zeros(shape, dtype=dtype, device=DEVICE) for _ in range(2)]
    # Two sequences: one token behind 5 that stand before it, and two at the beginning.
    bounds, cached, at = here([0, 1, 3], dtype=torch.int32), here([5, 0], dtype=torch.int32), here([5, 0, 1])
    slots = [3 * 4 + 1, 1 * 4 + 0, 1 * 4 + 1]
    if way == "slots":
        slots[2] = -1
        pages = ptr.Pages(*caches, v, slots=here(slots), layout=cache_layout)
    else:
        pages = ptr.Pages(*caches, v, block_table=here([[0, 3], [1, -1]], dtype=torch.int32), layout=cache_layout)
    wanted = [exact(plan, x, at, layout="thd") for x in (q, k)]
    ptr.rotate_(q, k, None, plan, layout="thd", pages=pages, cu_seqlens=bounds, cached=cached)
    close(q, wanted[0])
    close(k, wanted[1])
    for cache, written in zip(caches, (wanted[1], v.cpu().double()), strict=True):
        flat = (cache if cache_layout == "NHD" else cache.transpose(1, 2)).reshape(20, 2, 16)
        expected = torch.zeros(20, 2, 16, dtype=torch.float64)
        for token, slot in enumerate(slots):
            if slot >= 0:
                expected[slot] = written[token]
        close(flat, expected)


# --- within PyTorch -----------------------------------------------------------------------------------------------------


def test_the_gradient_is_the_transpose(plan):
    q, k = tensor(2, 4, 3, 16).requires_grad_(), tensor(2, 2, 3, 16, seed=1).requires_grad_()
    g = tensor(2, 4, 3, 16, seed=2), tensor(2, 2, 3, 16, seed=3)
    torch.autograd.backward(ptr.rotate(q, k, 9, plan), g)
    close(q.grad, plan.rotate_transpose(g[0].cpu().double(), 9))
    close(k.grad, plan.rotate_transpose(g[1].cpu().double(), 9))


def test_the_gradient_of_the_norm(plan):
    q, k = tensor(1, 4, 3, 16).requires_grad_(), tensor(1, 2, 3, 16, seed=1).requires_grad_()
    weights = [tensor(16, seed=i).requires_grad_() for i in (2, 3)]
    g = tensor(1, 4, 3, 16, seed=4), tensor(1, 2, 3, 16, seed=5)
    torch.autograd.backward(ptr.rotate(q, k, 9, plan, norm=ptr.Norm(*weights)), g)
    for x, weight, gradient in zip((q, k), weights, g, strict=True):
        x64, w64 = (each.detach().cpu().double().requires_grad_() for each in (x, weight))
        unit = x64 * (x64.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w64
        unit.backward(plan.rotate_transpose(gradient.cpu().double(), 9))
        close(x.grad, x64.grad)
        assert (weight.grad.cpu().double() - w64.grad).abs().max() < 1e-5


def test_opcheck(plan):
    text = ptr.Rotation(plan).text
    ids, bounds = here([0, 1, 2], dtype=torch.int32), here([0, 1, 3], dtype=torch.int32)
    for where in ((ids, 0, None, None, here([[0, 0, 0]], dtype=torch.int32)), (None, 0, bounds, bounds[:2] + 3, None)):
        q, k = tensor(1, 2, 3, 16), tensor(1, 3, 1, 16).transpose(1, 2)
        for x, weights in itertools.product(([q], [q, k]), (False, True)):
            given = [x[0].new_ones(16) for _ in x] if weights else []
            x = [each.clone().requires_grad_() for each in x]
            torch.library.opcheck(torch.ops.posenc.triton_rotate.default, (x, given, 1e-6, text, *where, "bhsd", False))
        v, caches = tensor(1, 1, 3, 16), [0 * tensor(2, 4, 1, 16) for _ in range(2)]
        torch.library.opcheck(
            torch.ops.posenc.triton_rotate_.default,
            ([q.clone(), k.clone()], [], 0.0, v, caches, here([[6, -1, 1]]), None, "NHD", text, *where, "bhsd"),
        )


def test_a_compiled_function_has_no_break(plan):
    rotation = ptr.Rotation(plan)

    def twice(q, k):
        q, k = ptr.rotate(q * 2, k, 3, rotation)
        return ptr.rotate(q, k, 5, rotation)

    q, k = tensor(1, 2, 3, 16).requires_grad_(), tensor(1, 2, 3, 16, seed=1)
    compiled = torch.compile(twice, fullgraph=True, backend="aot_eager")
    for a, b in zip(compiled(q, k), twice(q, k), strict=True):
        assert torch.equal(a, b)
    compiled(q, k)[0].sum().backward()
    assert q.grad is not None


def test_an_exported_graph_needs_no_handle(plan):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rotation = ptr.Rotation(plan)

        def forward(self, q, k, ids):
            return ptr.rotate(q, k, ids, self.rotation)

    given = tensor(1, 2, 3, 16), tensor(1, 2, 3, 16, seed=1), here([[3, 4, 5]])
    program = torch.export.export(Layer(), given)
    for a, b in zip(program.module()(*given), ptr.rotate(*given, plan), strict=True):
        assert torch.equal(a, b)


@pytest.mark.skipif(DEVICE == "cpu", reason="there is no CUDA device")
def test_calls_stand_in_a_cuda_graph(plan):
    q, ids = tensor(1, 2, 3, 16), here([[0, 0, 0]])
    ptr.rotate(q, None, ids, plan)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made, _ = ptr.rotate(q, None, ids, plan)
    ids.copy_(here([[5, 0, 9]]))
    graph.replay()
    assert torch.equal(made, ptr.rotate(q, None, ids, plan)[0])


@pytest.mark.skipif(DEVICE == "cpu", reason="there is no CUDA device")
def test_posenc_torch_goes_there_without_posenc_cuda(plan, monkeypatch):
    import posenc.torch as pt
    from posenc import cuda

    monkeypatch.setattr(cuda, "module", None)
    q, k, v = (tensor(1, heads, 3, 16, seed=i) for i, heads in enumerate((4, 2, 2)))
    wanted = ptr.rotate(q, k, 5, plan)
    assert torch.equal(pt.rotate(plan, q, 5), wanted[0])
    caches = [torch.zeros(2, 4, 2, 16, device=DEVICE) for _ in range(2)]
    pt.rotate_append_(plan, q, k, v, *caches, here([[6, -1, 1]]), 5, keep_k=False)
    assert torch.equal(q, wanted[0]) and torch.equal(k, wanted[1])
    assert torch.equal(caches[0].reshape(8, 2, 16)[6], wanted[1][0, :, 0])


# --- what is refused ----------------------------------------------------------------------------------------------------


def refused(rule):
    return pytest.raises(posenc.Error, match=rule)


def test_what_does_not_fit_is_refused(plan):
    x = tensor(1, 2, 3, 16)
    with refused("position_ids must be integers"):
        ptr.rotate(x, None, here(range(4)), plan)
    with refused("must be of float32, float16 or bfloat16"):
        ptr.rotate(x.double(), None, None, plan)
    with refused("all of one call alike"):
        ptr.rotate(x, x.half(), None, plan)
    with refused("the same tokens and channels"):
        ptr.rotate(x, x[:, :, :2], None, plan)
    with refused("one slice, pairing, heads and axes"):
        ptr.Rotation([plan, posenc.plan(posenc.Rope(), head_dim=16)])
    with refused("must need no gradient"):
        ptr.rotate_(x.clone().requires_grad_(), None, None, plan)
    with refused("the plan rotates channels to 32"):
        ptr.rotate(x, None, None, posenc.plan(posenc.Rope(), head_dim=32))
    with refused("Pages must have slots or block_table"):
        ptr.rotate_(x, x.clone(), None, plan, pages=ptr.Pages(x, x, x))
    with refused("the norm of keys must have weights"):
        ptr.rotate(x, x, None, plan, norm=ptr.Norm(x[0, 0, 0]))


def pages_of(plan, **changed):
    """Arguments of a call with pages that fit, but for what is changed."""
    q, k, v = (tensor(3, heads, 16, seed=i) for i, heads in enumerate((4, 2, 2)))
    made = {
        "keys": (5, 4, 2, 16),
        "values": (5, 4, 2, 16),
        "v": v,
        "slots": here([3, 4, 5]),
        "block_table": None,
        "layout": "NHD",
    } | changed
    caches = [
        torch.zeros(made[name], device=DEVICE) if isinstance(made[name], tuple) else made[name]
        for name in ("keys", "values")
    ]
    return q, k, ptr.Pages(*caches, made["v"], made["slots"], made["block_table"], made["layout"])


@pytest.mark.parametrize("changed, rule", [
    ({"keys": (5, 4, 1, 16)}, "pages must hold 2 heads of 16 channels"),
    ({"values": (5, 4, 2, 8)}, "pages must hold 2 heads of 16 channels"),
    ({"values": (2, 4, 2, 16)}, "the same pages"),
    ({"values": (5, 8, 2, 16)}, "the same pages"),
    ({"layout": "HND"}, "pages must hold 2 heads of 16 channels"),
    ({"v": (3, 4, 16)}, "values must be of the keys' tokens and heads"),
    ({"v": (1, 2, 16)}, "values must be of the keys' tokens and heads"),
    ({"v": (2, 16)}, "tensors of a call must have 3 axes"),
    ({"slots": [3, 4]}, "slots must be integers"),
    ({"slots": None, "block_table": [0, 1]}, "block_table must be"),
    ({"slots": None, "block_table": [[0, 1], [2, 3]]}, "block_table must be"),
    ({"slots": None, "block_table": [[]]}, "block_table must be"),
])  # fmt: skip
def test_pages_that_do_not_fit_are_refused(plan, changed, rule):
    changed = {
        name: tensor(*value) if name == "v" else here(value) if isinstance(value, list) else value
        for name, value in changed.items()
    }
    q, k, pages = pages_of(plan, **changed)
    with refused(rule):
        ptr.rotate_(q, k, None, plan, layout="thd", pages=pages)


def test_a_table_of_pages_may_lie_in_memory_as_it_will(plan):
    """Columns first, as another program may have it; a position behind its last page goes nowhere."""
    table = here([[1, 3]], dtype=torch.int64).t().contiguous().t()
    q, k, pages = pages_of(plan, slots=None, block_table=table)
    keys = exact(plan, k, 6, layout="thd")
    ptr.rotate_(q, k, 6, plan, layout="thd", pages=pages)
    flat = pages.keys.reshape(20, 2, 16)
    close(flat[14:16], keys[:2])  # the page of tokens 4 to 7 is 3
    assert flat.abs().sum(-1).sum(-1).nonzero().flatten().tolist() == [14, 15]


def test_rows_behind_the_last_text_are_padding(plan):
    q, k, pages = pages_of(plan, slots=None, block_table=here([[1]], dtype=torch.int32))
    ptr.rotate_(q, k, None, plan, layout="thd", cu_seqlens=here([0, 1], dtype=torch.int32), pages=pages)
    assert pages.keys.reshape(20, 2, 16).abs().sum(-1).sum(-1).nonzero().flatten().tolist() == [4]


@pytest.mark.parametrize("weight", [[1.0], [1.0] * 8, [1.0] * 17, [[1.0] * 16], [1] * 16])
def test_weights_that_do_not_fit_are_refused(plan, weight):
    with refused("weights of a norm must be"):
        ptr.rotate(tensor(1, 2, 3, 16), None, 0, plan, norm=ptr.Norm(torch.tensor(weight, device=DEVICE)))


def test_weights_of_any_type_and_stride(plan):
    x = tensor(1, 2, 3, 16, dtype=torch.bfloat16)
    for weight in (tensor(16, seed=2), tensor(32, seed=2)[::2], tensor(16, seed=2, dtype=torch.float16)):
        close(ptr.rotate(x, None, 3, plan, norm=ptr.Norm(weight))[0], exact(plan, normed(x, weight, 1e-6), 3))


def test_where_tokens_stand_is_said_once_and_in_integers(plan):
    x, packed = tensor(3, 2, 16), {"layout": "thd", "cu_seqlens": here([0, 3])}
    for how, rule in (
        ({"positions": [0.5, 1.5, 2.5]}, "position_ids must be integers"),
        ({"positions": 3, **packed}, "pass one of them"),
        ({"layout": "thd", "cached": here([1])}, "cached is of packed texts"),
        ({"layout": "thd", "cu_seqlens": here([0])}, "packed texts must be 1 or more"),
        ({"layout": "thd", "cu_seqlens": here([])}, "packed texts must be 1 or more"),
        ({"layout": "shd", "positions": 2**63}, "within 2"),
    ):
        with refused(rule):
            ptr.rotate(x, None, how.pop("positions", None), plan, **how)
    with refused("in tensors of batch 1"):
        ptr.rotate(tensor(2, 2, 3, 16), None, None, plan, cu_seqlens=here([0, 3]))


def test_several_plans_must_be_chosen_from(plan):
    table, x = ptr.Rotation([plan, plan]), tensor(1, 2, 3, 16)
    with refused("2 plans must be chosen from by plan_ids"):
        ptr.rotate(x, None, None, table)
    assert torch.equal(ptr.rotate(x, None, 1, table, plan_ids=here([[7, -9, 1]]))[0], ptr.rotate(x, None, 1, plan)[0])
    with refused("a Rotation is of plans, got Rope"):
        ptr.Rotation([posenc.Rope()])


def test_memory_that_is_written_twice_is_refused(plan):
    x = tensor(1, 2, 3, 16)
    with refused("memory of its own for each number"):
        ptr.rotate_(x[:, :1].expand(1, 2, 3, 16), None, None, plan)
    with refused("must be two tensors"):
        ptr.rotate_(x, x, None, plan)
    fused = tensor(
        1, 3, 6, 16
    )  # [batch, token, heads of queries, keys and values, channel], as one projection leaves them
    q, k = fused[:, :, :4], fused[:, :, 4:5]
    wanted = [exact(plan, x, 7, layout="bshd") for x in (q, k)]
    ptr.rotate_(q, k, 7, plan, layout="bshd")
    close(q, wanted[0])
    close(k, wanted[1])


def test_what_the_kernel_cannot_say_is_refused():
    with refused("posenc.triton"):
        ptr.Rotation(posenc.plan(posenc.XPos(), head_dim=16))
