"""posenc.jax on the CPU, and its custom call over posenc-cuda's emulated grid."""

from types import SimpleNamespace

import pytest

pytest.importorskip("jax")
np = pytest.importorskip("numpy")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import posenc  # noqa: E402
import posenc.jax as pj  # noqa: E402
from posenc import cuda  # noqa: E402


def there(backend):
    if backend and not (cuda.module and cuda.module.xla_targets):
        pytest.skip("posenc_cuda is not installed with XLA's custom call; make python PEERS=1 builds it")
    return backend


@pytest.fixture(params=[None, "emulated"])
def backend(request):
    return there(request.param)


YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64), pairing="interleaved")
PLAN = posenc.plan(YARN.replace(partial_rotary_factor=0.5), head_dim=16)


def array(*shape, dtype=jnp.float32, seed=0):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(dtype)


def exact(x, ids=None, **how):
    return PLAN.rotate(np.asarray(x.astype(jnp.float32)), position_ids=ids, **how)


@pytest.mark.parametrize("dtype, error", [("float32", 1e-6), ("float16", 4e-3), ("bfloat16", 3e-2)])
def test_dtypes(backend, dtype, error):
    x = array(2, 3, 5, 16, dtype=dtype)
    made = pj.rotate(PLAN, x, jnp.arange(5) + 131_000, backend=backend)
    assert made.dtype == x.dtype and isinstance(made, jax.Array)
    assert abs(made.astype(jnp.float32) - exact(x, range(131_000, 131_005))).max() < error


@pytest.mark.parametrize("shape, layout", [((2, 5, 3, 16), "bshd"), ((5, 3, 16), "thd"), ((5, 16), "")])
def test_layouts(backend, shape, layout):
    x = array(*shape)
    assert abs(pj.rotate(PLAN, x, 7, layout=layout, backend=backend) - exact(x, 7, layout=layout)).max() < 1e-6


def test_traced_ids_under_jit(backend):
    x, ids = array(2, 3, 5, 16), jnp.array([[0, 1, 2, 9, 4], [5, 5, 5, 1, 0]])
    made = jax.jit(lambda x, ids: pj.rotate(PLAN, x, ids, backend=backend))(x, ids)
    assert abs(made - exact(x, ids)).max() < 1e-6


def test_the_argument_stays(backend):
    x = array(1, 2, 3, 16)
    before = x + 0
    both = jax.jit(lambda x: (pj.rotate(PLAN, x, backend=backend), x * 1))(x)
    assert (both[1] == before).all() and (x == before).all()


def test_gradients_are_the_transpose(backend):
    x, weight = array(1, 2, 3, 16), array(1, 2, 3, 16, seed=1)
    gradient = jax.grad(lambda x: (pj.rotate(PLAN, x, 4, backend=backend) * weight).sum())(x)
    assert abs(gradient - PLAN.rotate_transpose(np.asarray(weight), 4)).max() < 1e-6


def test_vmap(backend):
    x = array(4, 2, 3, 16)
    made = jax.vmap(lambda each: pj.rotate(PLAN, each, 2, backend=backend))(x)
    assert abs(made - exact(x, 2)).max() < 1e-6


def test_a_table_of_plans():
    there("emulated")
    far = posenc.plan(YARN.replace(partial_rotary_factor=0.5, theta=1e6), head_dim=16)
    x, plan_ids = array(1, 2, 3, 16), jnp.array([[0, 1, 0]])
    made = pj.rotate([PLAN, far], x, plan_ids=plan_ids, backend="emulated")
    one, other = (pj.rotate(plan, x, backend="emulated") for plan in (PLAN, far))
    assert (made == jnp.where(plan_ids[:, None, :, None] == 1, other, one)).all()


def test_axes():
    there("emulated")
    plan = posenc.plan(posenc.Axial(), head_dim=16)
    x, ids = array(2, 2, 4, 16), jnp.arange(16).reshape(2, 2, 4)
    for backend in (None, "emulated"):
        made = pj.rotate(plan, x, ids, backend=backend)
        assert abs(made - plan.rotate(np.asarray(x), position_ids=np.asarray(ids))).max() < 1e-6


def test_the_platform_chooses(monkeypatch):
    """With code for a device both ways are traced, and the CPU's is lowered."""

    monkeypatch.setattr(cuda, "module", SimpleNamespace(xla_targets={"CUDA": None}))
    x = array(1, 2, 3, 16)
    assert abs(jax.jit(lambda x: pj.rotate(PLAN, x))(x) - exact(x)).max() < 1e-6


@pytest.mark.parametrize(
    "call, rule",
    [
        (lambda x: pj.rotate(PLAN, x, jnp.arange(4)), "position_ids must be integers"),
        (lambda x: pj.rotate(PLAN, x, jnp.arange(3.0)), "position_ids must be integers"),
        (lambda x: pj.rotate(PLAN, x, layout="bhs"), "layout must name each"),
        (lambda x: pj.rotate([PLAN, PLAN], x), "several plans are for a GPU or a TPU"),
        (lambda x: pj.rotate(PLAN, x, backend="gpu"), "backend must be None, 'pallas' or 'emulated'"),
    ],
)
def test_what_does_not_fit_is_refused(call, rule):
    with pytest.raises(posenc.Error, match=rule):
        call(array(1, 2, 3, 16))
