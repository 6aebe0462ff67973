"""posenc.torch with posenc-cuda: on every machine with its kernels in a loop on the host, where arguments, gradients and operators are
those of a device, and where there is a CUDA device there too."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
module = pytest.importorskip("posenc_cuda", reason="posenc_cuda is not installed; make python builds it")

import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
from posenc import cuda  # noqa: E402
from posenc.torch_rotation import HAS_OPERATORS  # noqa: E402

if not HAS_OPERATORS:
    pytest.skip("torch.library.custom_op came with PyTorch 2.4", allow_module_level=True)

# What docs/cuda.md promises of cosines, beside the rounding of the type.
ERROR = {torch.float64: 2**-50, torch.float32: 2**-21, torch.float16: 2**-9, torch.bfloat16: 2**-6}
YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64))


DEVICE = torch.cuda.is_available() and module.has_device_code


@pytest.fixture(autouse=True, params=["cpu", *["cuda"] * DEVICE])
def place(request):
    """Where tensors lie, and which kernels take them there."""
    HERE.update(device=request.param, backend="emulated" if request.param == "cpu" else None)
    return request.param


HERE: dict = {}


@pytest.fixture(params=["halves", "interleaved"])
def plan(request):
    return posenc.plan(YARN.replace(pairing=request.param, partial_rotary_factor=0.5), head_dim=16, heads=2)


def tensor(*shape, dtype=torch.float64, seed=0):
    made = torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return made.to(HERE["device"])


def here(*numbers, dtype=torch.int64):
    return torch.tensor(*numbers, dtype=dtype, device=HERE["device"])


def rotate(plan, x, position_ids=None, **how):
    return pt.rotate(plan, x, position_ids, backend=HERE["backend"], **how)


def exact(plan, x, position_ids=None, **how):
    """What the kernels of the CPU give."""
    ids = position_ids.cpu() if isinstance(position_ids, torch.Tensor) else position_ids
    return plan.rotate(x.cpu(), position_ids=ids, **how)


def close(made, wanted):
    assert made.dtype == wanted.dtype
    error = (made.cpu().double() - wanted.cpu().double()).abs().max().item()
    assert error <= ERROR[made.dtype] * max(1.0, wanted.abs().max().item())


@pytest.mark.parametrize("dtype", ERROR)
def test_the_cpu_rotates_alike(plan, dtype):
    x = tensor(2, 3, 5, 16).to(dtype)
    ids = here([[0, 1, 7, 131_071, 10**7], [5, 5, 2, 0, 1 << 40]])
    close(rotate(plan, x, ids), exact(plan, x, ids))


@pytest.mark.parametrize(
    "shape, layout",
    [((2, 3, 5, 16), "bhsd"), ((2, 5, 3, 16), "bshd"), ((5, 3, 16), "thd"), ((3, 5, 16), ""), ((5, 16), "sd")],
)
def test_layouts(plan, shape, layout):
    x = tensor(*shape)
    close(rotate(plan, x, layout=layout), exact(plan, x, layout=layout))


def test_any_strides(plan):
    whole = tensor(3, 2, 16, 10)
    x = whole.transpose(2, 3)[:, :, ::2]
    assert not x.is_contiguous()
    expected = exact(plan, x)
    close(rotate(plan, x), expected)
    pt.rotate_(plan, x, backend=HERE["backend"])
    close(x, expected)
    assert torch.equal(whole.transpose(2, 3)[:, :, 1::2], tensor(3, 2, 16, 10).transpose(2, 3)[:, :, 1::2])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_ids_of_any_integers(plan, dtype):
    x, ids = tensor(2, 2, 3, 16), here([[4, 0, 90], [1, 2, 3]])
    assert torch.equal(rotate(plan, x, ids.to(dtype)), rotate(plan, x, ids))
    assert torch.equal(rotate(plan, x, ids[0].to(dtype)), rotate(plan, x, ids[:1].expand(2, 3)))


@pytest.mark.parametrize("ids", [None, 7, range(2, 5), [9, 1, 0]])
def test_ids_as_the_cpu_takes_them(plan, ids):
    x = tensor(1, 2, 3, 16)
    close(rotate(plan, x, ids), exact(plan, x, ids))


def test_packed_texts(plan):
    x = tensor(6, 2, 16)
    bounds, cached = here([0, 2, 6], dtype=torch.int32), here([0, 30], dtype=torch.int32)
    made = rotate(plan, x, layout="thd", cu_seqlens=bounds, cached=cached)
    close(made, exact(plan, x, here([0, 1, 30, 31, 32, 33]), layout="thd"))
    alone = rotate(plan, x, layout="thd", cu_seqlens=bounds)
    close(alone, exact(plan, x, posenc.positions.packed([0, 2, 6]), layout="thd"))


def test_a_table_of_plans(plan):
    far = posenc.plan(YARN.replace(pairing=plan.pairing, partial_rotary_factor=0.5, theta=1e6), head_dim=16, heads=2)
    table, x = pt.Rotation([plan, far]), tensor(2, 2, 3, 16)
    plan_ids = here([[0, 1, 1], [1, 0, 0]])
    one, other = exact(plan, x), exact(far, x)
    close(rotate(table, x, plan_ids=plan_ids), torch.where(plan_ids.cpu()[:, None, :, None] == 1, other, one))


def test_axes_and_heads_of_frequencies():
    plan = posenc.Plan.of_frequencies(tensor(2, 3, 4).cpu().numpy(), pairing="interleaved", first_dim=2)
    x, ids = tensor(2, 2, 5, 16), here(range(30)).reshape(3, 2, 5)
    close(rotate(plan, x, ids), exact(plan, x, ids))


def test_queries_and_keys_in_place(plan):
    q, k = tensor(2, 4, 3, 16), tensor(2, 2, 3, 16, seed=1)
    expected = exact(plan, q), exact(plan, k)
    made = pt.rotate_(plan, q, k=k, backend=HERE["backend"])
    assert made[0] is q and made[1] is k
    for each, wanted in zip(made, expected, strict=True):
        close(each, wanted)


@pytest.mark.parametrize("cache_layout", ["NHD", "HND"])
@pytest.mark.parametrize("keep_k", [True, False])
def test_keys_and_values_go_to_the_pages(plan, cache_layout, keep_k):
    q, k, v = tensor(1, 4, 3, 16), tensor(1, 2, 3, 16, seed=1), tensor(1, 2, 3, 16, seed=2)
    caches = [0 * tensor(2, 4, 2, 16) for _ in range(2)]
    if cache_layout == "HND":
        caches = [each.transpose(1, 2).contiguous() for each in caches]
    queries, keys = exact(plan, q, 10), exact(plan, k, 10)
    before = k.clone()
    slots = here([[6, -1, 1]])
    pt.rotate_append_(
        plan, q, k, v, *caches, slots, 10, keep_k=keep_k, cache_layout=cache_layout, backend=HERE["backend"]
    )
    close(q, queries)
    close(k, before if keep_k else keys)
    for cache, written in zip(caches, (keys, v), strict=True):
        pages = cache if cache_layout == "NHD" else cache.transpose(1, 2)
        expected = 0 * tensor(8, 2, 16)
        expected[6], expected[1] = written[0, :, 0], written[0, :, 2]
        close(pages.reshape(8, 2, 16), expected)


def test_gradcheck(plan):
    x = tensor(1, 2, 3, 16).requires_grad_()
    ids = here([0, 2, 7], dtype=torch.int32)
    assert torch.autograd.gradcheck(lambda x: rotate(plan, x, ids), (x,))
    assert torch.autograd.gradgradcheck(lambda x: rotate(plan, x, ids), (x,))


def test_gradients_of_any_strides(plan):
    x = tensor(1, 3, 2, 16).requires_grad_()
    rotate(plan, x.transpose(1, 2), 5).sum().backward()
    ones = torch.ones(1, 2, 3, 16, dtype=torch.float64)
    close(x.grad.transpose(1, 2), plan.rotate_transpose(ones, range(5, 8)))


def test_opcheck(plan):
    text = cuda.text_of([plan])
    ids, bounds = here([0, 1, 2], dtype=torch.int32), here([0, 1, 3], dtype=torch.int32)
    for where in ((ids, 0, None, None, here([[0, 0, 0]], dtype=torch.int32)), (None, 0, bounds, bounds[:2] + 3, None)):
        for x in (tensor(1, 2, 3, 16), tensor(1, 3, 2, 16).transpose(1, 2)):
            for learned in (False, True):
                torch.library.opcheck(
                    torch.ops.posenc.device_rotate.default,
                    (x.clone().requires_grad_(learned), text, *where, "bhsd", False),
                )
            for k in (None, tensor(1, 1, 3, 16)):
                torch.library.opcheck(torch.ops.posenc.device_rotate_.default, (x.clone(), k, text, *where, "bhsd"))
        q, k, v = tensor(1, 4, 3, 16), tensor(1, 2, 3, 16), tensor(1, 2, 3, 16)
        caches = (0 * tensor(2, 4, 2, 16) for _ in range(2))
        torch.library.opcheck(
            torch.ops.posenc.device_rotate_append_.default,
            (q, k, v, *caches, here([[6, -1, 1]]), text, *where, "bhsd", "NHD", False),
        )


def test_a_compiled_function_has_no_break(plan):
    rotation = pt.Rotation(plan)

    def twice(x):
        return rotation(rotation(x, backend=HERE["backend"]) * 2, 3, backend=HERE["backend"])

    x = tensor(1, 2, 3, 16).requires_grad_()
    compiled = torch.compile(twice, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), twice(x))
    compiled(x).sum().backward()
    assert x.grad is not None


def test_a_compiled_step_writes_in_place(plan):
    rotation = pt.Rotation(plan)
    slots = here([[2, 0, 1]])

    def step(q, k, v, keys, values):
        pt.rotate_append_(rotation, q, k, v, keys, values, slots, backend=HERE["backend"])
        return q * 2, keys + values

    def arguments():
        pages = (0 * tensor(2, 4, 2, 16) for _ in range(2))
        return [tensor(1, 4, 3, 16), tensor(1, 2, 3, 16), tensor(1, 2, 3, 16), *pages]

    ours, theirs = arguments(), arguments()
    made = torch.compile(step, fullgraph=True, backend="aot_eager")(*ours)
    for a, b in zip([*made, *ours], [*step(*theirs), *theirs], strict=True):
        assert torch.equal(a, b)


def test_an_exported_graph_needs_no_handle(plan):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rotation = pt.Rotation(plan)

        def forward(self, x, ids):
            return self.rotation(x, ids, backend=HERE["backend"])

    x, ids = tensor(1, 2, 3, 16), here([[3, 4, 5]])
    program = torch.export.export(Layer(), (x, ids))
    assert torch.equal(program.module()(x, ids), rotate(plan, x, ids))


def refused(rule):
    return pytest.raises(posenc.Error, match=rule)


def test_what_does_not_fit_is_refused(plan):
    x = tensor(1, 2, 3, 16)
    with refused("position_ids must be integers"):
        rotate(plan, x, here(range(4)))
    with refused("position_ids must be integers"):
        rotate(plan, x, here([0.0, 1.0, 2.0], dtype=torch.float64))
    with refused("layout must name each"):
        rotate(plan, x, layout="bhs")
    with refused("must be of float64, float32, float16 or bfloat16"):
        rotate(plan, x.long())
    with refused("one slice, pairing, heads and axes"):
        pt.Rotation([plan, posenc.plan(posenc.Rope(), head_dim=16)])
    with refused("packed texts must be 1 or more, in tensors of batch 1"):
        rotate(plan, tensor(2, 2, 3, 16), cu_seqlens=here([0, 3]))
    with refused("must need no gradient"):
        pt.rotate_(plan, x.clone().requires_grad_(), backend=HERE["backend"])
    with refused("head_dim must hold the channels"):
        rotate(posenc.plan(posenc.Rope(), head_dim=32), x)


def test_what_the_cpu_does_not_have_is_refused(plan):
    x = tensor(1, 2, 3, 16).cpu()
    with refused("are for tensors of a CUDA device"):
        pt.rotate(plan, x, plan_ids=torch.zeros(1, 3))
    with refused("are for tensors of a CUDA device"):
        pt.rotate_(pt.Rotation([plan, plan]), x)
    with refused("on the CPU posenc.KvCache is a cache"):
        pt.rotate_append_(plan, x, x, x, x, x, torch.zeros(1, 3))


@pytest.mark.skipif(not DEVICE, reason="there is no CUDA device")
def test_a_device_has_the_bits_of_the_emulated_grid(plan):
    for dtype in ERROR:
        x, ids = torch.randn(2, 3, 5, 16).to(dtype), torch.randint(0, 10**6, (2, 5))
        there = pt.rotate(plan, x.cuda(), ids)
        assert torch.equal(there.cpu(), pt.rotate(plan, x, ids, backend="emulated"))


@pytest.mark.skipif(not DEVICE, reason="there is no CUDA device")
def test_calls_stand_in_a_cuda_graph(plan):
    x, ids = torch.randn(1, 2, 3, 16, device="cuda"), torch.zeros(1, 3, dtype=torch.int64, device="cuda")
    pt.rotate(plan, x, ids)  # plans are brought to the device
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = pt.rotate(plan, x, ids)
    ids.copy_(torch.tensor([[5, 0, 9]]))
    graph.replay()
    assert torch.equal(made, pt.rotate(plan, x, ids))


class Elsewhere:
    """What a tensor of a CUDA device tells before anything is computed."""

    device, requires_grad = torch.device("cuda", 0), False


def test_without_posenc_cuda_the_cure_is_named(plan, monkeypatch):
    monkeypatch.setattr(cuda, "module", None)
    for call in (
        lambda: pt.rotate_(plan, Elsewhere()),
        lambda: pt.rotate_append_(plan, *[Elsewhere()] * 5, None),
    ):
        with refused("take posenc-cuda, got none installed; pip install posenc-cuda"):
            call()


def test_a_module_without_a_device_says_so():
    """In a process of its own: importing neither needs nor loads a driver."""
    said = subprocess.run(
        [sys.executable, "-c", "import posenc_cuda; posenc_cuda.rotations('halves 0 1 1 1 1 1 1.0 1.0')"],
        capture_output=True, text=True,
    )  # fmt: skip
    if said.returncode == 0:
        pytest.skip("there is a device")
    assert said.returncode == 1 and "posenc.errors.Error: posenc_cuda: " in said.stderr
    assert "no CUDA device" in said.stderr or "must be built with CUDA" in said.stderr
