"""The Pallas kernel of posenc.jax, interpreted, and lowered for TPUs: its bits, and its distance from the rotation in double."""

import pytest

jax = pytest.importorskip("jax")
np = pytest.importorskip("numpy")

import jax.numpy as jnp  # noqa: E402

import posenc  # noqa: E402
import posenc.jax as pj  # noqa: E402
from posenc import jax_pallas  # noqa: E402

YARN = posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64))
STARTS = (0, 131_000, -5, -(2**31) - 2, 2**31 - 3, 2**31, 2**50 + 3)


def array(*shape, dtype=jnp.float32, seed=0):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float32).astype(dtype)


def is_near(plan, made, x, ids=None, **how):
    """Within half a step of the type, and in float32 within what its own products and cosines lose."""
    exact = plan.rotate(np.asarray(x, np.float64), position_ids=ids, **how)
    step = {"float32": 0, "float16": 2.0**-11, "bfloat16": 2.0**-8}[str(x.dtype)]
    assert made.dtype == x.dtype and made.shape == x.shape
    least = 2.0**-25 if step else 0  # half the step of float16 at 0
    far = np.abs(np.asarray(made, np.float64) - exact)
    return (far <= step * np.abs(exact) + least + 4e-7 * np.abs(np.asarray(x, np.float64)).max()).all()


def kernels(plan, x, ids=None, first=0, layout="bhsd", **how):
    """What the kernel makes as TPUs run it and as GPUs do."""
    ids = jnp.zeros(0, jnp.int32) if ids is None else ids
    for gathers in (False, True):
        yield jax_pallas.rotate(
            [plan], x, ids, jnp.zeros(0, jnp.int32), layout=layout, first=first, transposed=False, gathers=gathers,
            interpret=True, **how,
        )  # fmt: skip


@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
@pytest.mark.parametrize("first", STARTS)
def test_slices_and_positions(pairing, first):
    plan = posenc.plan(YARN.replace(pairing=pairing, partial_rotary_factor=0.5), head_dim=48)
    x = array(2, 3, 5, 48)
    one, other = kernels(plan, x, first=first)
    assert is_near(plan, one, x, first) and (one == other).all()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_types(pairing, dtype):
    plan = posenc.plan(posenc.Rope(pairing=pairing), head_dim=64)
    x = array(1, 9, 40, 64, dtype=dtype)
    for made in kernels(plan, x, first=1_000_000):
        assert is_near(plan, made, x, 1_000_000)


@pytest.mark.parametrize(
    "shape, layout",
    [((2, 5, 3, 16), "bshd"), ((5, 3, 16), "shd"), ((5, 16), "sd"), ((16, 5), "ds"), ((5, 2, 3, 16), "sbhd")],
)
def test_layouts(shape, layout):
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    x = array(*shape)
    assert is_near(plan, pj.rotate(plan, x, 7, layout=layout, backend="pallas"), x, 7, layout=layout)


def test_several_blocks():
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    x = array(1, 70, 300, 16)
    for made in kernels(plan, x):
        assert is_near(plan, made, x)


def test_axes_and_frequencies_of_heads():
    plan = posenc.plan(posenc.Axial(), head_dim=16)
    x, ids = array(2, 2, 4, 16), np.arange(16, dtype=np.int32).reshape(2, 2, 4)
    for made in kernels(plan, x, jnp.asarray(ids)):
        assert is_near(plan, made, x, ids)


def test_positions_of_64_bits():
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    x, ids = array(1, 2, 7, 16), np.array(STARTS)
    with jax.enable_x64(True):
        made = pj.rotate(plan, x, ids, backend="pallas")
    for token, first in enumerate(STARTS):
        assert is_near(plan, made[:, :, token : token + 1], x[:, :, token : token + 1], first)
    with pytest.raises(posenc.Error, match="position_ids must be of 32 bits, got 1125899906842627"):
        pj.rotate(plan, x, ids, backend="pallas")


def test_the_same_bits():
    """Those of posenc's CUDA kernels: integers in Python, of any length, say what they are."""

    def cos_sin(position, high, low):
        turns = high << 64 | low
        phase = (position * turns >> 64) % 2**64
        quarter, rest = (phase + 2**61) >> 62, (phase + 2**61) % 2**62 - 2**61
        v = (~rest if rest < 0 else rest) >> 29

        def hi(a, b):
            return a * b >> 32

        z = hi(v, v)
        d = hi(1324675872 - hi(68093819 - hi(1399910 - hi(15167, z), z), z), z)
        s = hi(3373259426 - hi(346799333 - hi(10696154 - hi(157073 - hi(1325, z), z), z), z), v)
        c, s = np.float32(0x80000000 - (d >> 1)) * np.float32(2**-31), np.float32(s) * np.float32(2**-32)
        s = -s if rest < 0 else s
        c, s = (s, c) if quarter & 1 else (c, s)
        return -c if quarter + 1 & 2 else c, -s if quarter & 2 else s

    plan = posenc.plan(posenc.Rope(), head_dim=128)
    turns = [tuple(map(int, pair)) for pair in np.asarray(plan.turns)[0, 0]]
    words = np.array(
        [[pair[i // 2] >> (0 if i % 2 else 32) & 0xFFFFFFFF for i in range(4)] for pair in turns], np.uint32
    ).T
    for position in (0, 1, -1, 4095, 1_000_000, -(2**31), 2**31 - 1, 2**31, -(2**40) - 7, 2**62):
        high, low = (np.full(64, position >> by & 0xFFFFFFFF, np.uint32) for by in (32, 0))
        want = np.array([cos_sin(position, *pair) for pair in turns], np.float32).T
        for given in [(high, low)] + ([low] if -(2**31) <= position < 2**31 else []):
            phase = jax_pallas.phase_of(
                tuple(map(jnp.asarray, given)) if type(given) is tuple else jnp.asarray(given), words
            )
            assert (np.stack(jax_pallas.cosines(phase)) == want).all(), position


def test_jit_gradient_and_vmap():
    plan = posenc.plan(YARN.replace(partial_rotary_factor=0.5), head_dim=16)
    x, weight, ids = array(4, 2, 3, 16), array(4, 2, 3, 16, seed=1), jnp.array([5, 0, 2**31 - 1])

    def rotate(x, ids):
        return pj.rotate(plan, x, ids, backend="pallas")

    assert is_near(plan, jax.jit(rotate)(x, ids), x, np.asarray(ids))
    gradient = jax.grad(lambda x: (rotate(x, ids) * weight).sum())(x)
    assert abs(gradient - plan.rotate_transpose(np.asarray(weight), np.asarray(ids))).max() < 1e-6
    assert is_near(plan, jax.vmap(rotate, (0, None))(x, ids), x, np.asarray(ids))
    moved = jax.vmap(rotate)(x, jnp.arange(12).reshape(4, 3))
    assert is_near(plan, moved, x, np.arange(12).reshape(4, 3))


def test_shard_map():
    """JAX's interpreter of kernels takes no checks of what varies over a mesh; the way to a device does."""
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    x, ids = array(2, 2, 3, 16), jnp.arange(6).reshape(2, 3)

    def mapped(checked):
        rows = P("rows")
        rotate = jax.shard_map(
            lambda x, ids: pj.rotate(plan, x, ids, backend="pallas"), mesh=mesh, in_specs=(rows, rows), out_specs=rows,
            check_vma=checked,
        )  # fmt: skip
        return jax.jit(rotate)

    assert is_near(plan, mapped(False)(x, ids), x, np.asarray(ids))
    gradient = jax.grad(lambda x: mapped(False)(x, ids)[0, 0, 1, 0])(x)
    assert abs(gradient[0, 0, 1, 0] - np.cos(1)) < 1e-6
    made = jax.export.export(mapped(True), platforms=["tpu"])(x, ids)
    assert "tpu_custom_call" in made.mlir_module()


def test_a_table_of_plans():
    near = posenc.plan(YARN, head_dim=16)
    far = posenc.plan(posenc.Rope(theta=1e6), head_dim=16)
    x, plan_ids = array(1, 2, 3, 16), jnp.array([[0, 1, 0]])
    made = pj.rotate([near, far], x, 9, plan_ids=plan_ids, backend="pallas")
    one, other = (pj.rotate(plan, x, 9, backend="pallas") for plan in (near, far))
    assert (made == jnp.where(plan_ids[:, None, :, None] == 1, other, one)).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize(
    "platform, call", [("tpu", "tpu_custom_call"), ("cuda", "__gpu$xla.gpu.triton"), ("rocm", "__gpu$xla.gpu.triton")]
)
def test_it_is_lowered_for_devices(platform, call, layout, dtype):
    """None is there: as far as the code that Mosaic or Triton takes."""
    plan = posenc.plan(posenc.Rope(partial_rotary_factor=0.5), head_dim=96)
    lower = jax.export.export(
        jax.jit(lambda x, ids: pj.rotate(plan, x, ids, layout=layout, backend="pallas")), platforms=[platform],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(call)],
    )  # fmt: skip
    shape = [{"b": 2, "h": 6, "s": 300, "d": 96}[letter] for letter in layout]
    made = lower(jax.ShapeDtypeStruct(shape, dtype), jax.ShapeDtypeStruct((2, 300), jnp.int32))
    assert call in made.mlir_module()


def test_it_is_what_devices_take_by_themselves(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    monkeypatch.setattr(pj.cuda, "module", None)
    plan, x = posenc.plan(posenc.Rope(), head_dim=16), array(1, 2, 3, 16)
    rotate = jax.jit(lambda x: pj.rotate(plan, x, 5))
    assert "tpu_custom_call" in jax.export.export(rotate, platforms=["tpu"])(x).mlir_module()
    assert is_near(plan, rotate(x), x, 5)  # on the CPU that is there, by the host's kernels


def test_what_does_not_fit_is_refused():
    plan = posenc.plan(posenc.Rope(), head_dim=16)
    with pytest.raises(posenc.Error, match="x must be of float32, float16 or bfloat16"):
        pj.rotate(plan, array(1, 2, 3, 16).astype(jnp.int32), backend="pallas")
    with pytest.raises(posenc.Error, match="the plan rotates channels to 16, got heads of 8"):
        pj.rotate(plan, array(1, 2, 3, 8), backend="pallas")
