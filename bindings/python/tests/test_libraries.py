"""JAX and MLX, where they are installed: arrays go in and come out as their own, bfloat16 too."""

import pytest

import posenc

PLAN = posenc.plan(posenc.Rope(), head_dim=8)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("library", ["jax.numpy", "mlx.core"])
def test_arrays_of_other_libraries(np, rng, library, dtype):
    xp = pytest.importorskip(library)
    exact = rng.standard_normal((1, 2, 3, 8)).astype("float32")
    x = xp.array(exact).astype(getattr(xp, dtype))
    rotated = PLAN.rotate(x)
    assert type(rotated) is type(x) and rotated.dtype == x.dtype
    error = np.abs(np.array(rotated.astype(xp.float32)) - PLAN.rotate(exact)).max()
    assert error < {"float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    assert posenc.attend(x, x, x, PLAN).shape == x.shape
