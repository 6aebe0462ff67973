"""Arrays of every kind: dtypes, strides, layouts, in place and not; what is refused, and what a call costs."""

import os
import threading
import time

import pytest

import posenc

ml_dtypes = pytest.importorskip("ml_dtypes")
PLAN = posenc.plan(posenc.Rope(theta=1e6), head_dim=64, heads=4)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_dtypes_in_and_out_of_place(np, rng, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    exact = rng.standard_normal((2, 4, 9, 64))
    x = exact.astype(kind)
    expected = PLAN.rotate(x.astype("float64"), position_ids=7)
    rotated = PLAN.rotate(x, position_ids=7)
    assert rotated.dtype == x.dtype and rotated.shape == x.shape
    tolerance = {"float64": 1e-14, "float32": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    np.testing.assert_allclose(rotated.astype("float64"), expected, atol=tolerance)
    memory = x.__array_interface__["data"]
    assert PLAN.rotate_(x, position_ids=7) is None
    assert x.__array_interface__["data"] == memory
    np.testing.assert_array_equal(x.astype("float64"), rotated.astype("float64"))


def test_any_strides(np, rng):
    x = rng.standard_normal((2, 9, 3, 4, 64)).astype("float32")
    expected = PLAN.rotate(np.ascontiguousarray(x[:, :, 1].transpose(0, 2, 1, 3)))
    for view, layout in ((x[:, :, 1], "bshd"), (x[:, :, 1].transpose(0, 2, 1, 3), "bhsd")):
        got = PLAN.rotate(view, layout=layout)
        np.testing.assert_array_equal(got if layout == "bhsd" else got.transpose(0, 2, 1, 3), expected)
    backwards = np.ascontiguousarray(x[:, ::-1, 1])[:, ::-1]
    np.testing.assert_array_equal(PLAN.rotate(backwards, layout="bshd").transpose(0, 2, 1, 3), expected)
    whole = x.copy()
    PLAN.rotate_(whole[:, :, 1], layout="bshd")
    np.testing.assert_array_equal(whole[:, :, 1].transpose(0, 2, 1, 3), expected)
    np.testing.assert_array_equal(whole[:, :, 0], x[:, :, 0])
    np.testing.assert_array_equal(PLAN.rotate(x[0, :, 1], layout="thd"), expected[0].transpose(1, 0, 2))


def test_queries_and_keys_together(np, rng):
    q, k = rng.standard_normal((1, 4, 5, 64)), rng.standard_normal((1, 2, 5, 64))
    both = PLAN.rotate(q, k, [3, 1, 4, 1, 5])
    for one, x in zip(both, (q, k), strict=True):
        np.testing.assert_array_equal(one, PLAN.rotate(x, position_ids=[3, 1, 4, 1, 5]))
    in_place = q.copy(), k.copy()
    PLAN.rotate_(*in_place, [3, 1, 4, 1, 5])
    np.testing.assert_array_equal(in_place[1], both[1])


def test_position_ids_in_every_form(np, rng):
    x = rng.standard_normal((2, 4, 3, 64))
    expected = PLAN.rotate(x, position_ids=posenc.positions.range(5, 3))
    forms = [
        5,
        np.int64(5),
        range(5, 8),
        [5, 6, 7],
        np.arange(5, 8),
        np.arange(5, 8, dtype="int32"),
        np.tile(np.arange(5, 8), (2, 1)),
    ]
    forms.append(np.arange(20)[10:16:2] // 2)
    for ids in forms:
        np.testing.assert_array_equal(PLAN.rotate(x, position_ids=ids), expected)
    left_padded = posenc.positions.from_mask([[0, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(left_padded.numpy(), [[0, 0, 1], [0, 1, 2]])
    rotated = PLAN.rotate(x, position_ids=left_padded)
    np.testing.assert_array_equal(rotated[0, :, 1], x[0, :, 1])
    np.testing.assert_array_equal(posenc.positions.packed([0, 2, 3]).numpy(), [[0, 1, 0]])


def test_inverse_and_transpose(np, rng):
    plan = posenc.plan(posenc.Rope(scaling=posenc.Yarn(factor=8, original_max_position_embeddings=128)), head_dim=64)
    x = rng.standard_normal((4, 6, 64))
    np.testing.assert_allclose(plan.rotate_inverse(plan.rotate(x)), x, atol=1e-14)
    np.testing.assert_allclose(plan.rotate_transpose(plan.rotate(x)), x * plan.attention_factor**2, atol=1e-13)
    for verb in ("rotate_inverse", "rotate_transpose"):
        in_place = x.copy()
        getattr(plan, verb + "_")(in_place)
        np.testing.assert_array_equal(in_place, getattr(plan, verb)(x))


def test_what_is_refused(np):
    x = np.zeros((1, 4, 3, 64), "float32")
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(posenc.Error, match=r"x must be writable, got a read-only array; pass x\.copy\(\)"):
        PLAN.rotate_(frozen)
    assert PLAN.rotate(frozen).flags.writeable
    with pytest.raises(posenc.Error, match="got int64; convert it first"):
        PLAN.rotate(x.astype("int64"))
    with pytest.raises(TypeError, match="must be an array on the CPU"):
        PLAN.rotate([[1.0, 2.0]])
    with pytest.raises(posenc.Error, match="layout"):
        PLAN.rotate(x, layout="bsd")
    with pytest.raises(posenc.Error, match="layout"):
        PLAN.rotate(x, layout="bhxd")
    with pytest.raises(posenc.Error, match="position_ids must be of int64 or int32, got float64"):
        PLAN.rotate(x, position_ids=np.zeros(3))
    with pytest.raises(posenc.Error, match="side must be query, key or value, got q"):
        PLAN.rotate(x, side="q")
    with pytest.raises(posenc.Error):
        PLAN.rotate(x, position_ids=[0, 1])
    with pytest.raises(posenc.Error):
        PLAN.rotate(x[..., :32])


def test_odd_arrays_and_ids(np, rng):
    x = rng.standard_normal((2, 3, 64)).astype("float32")
    with pytest.raises(posenc.Error, match=r"byte order .*got dtype >f4; copy it: numpy\.ascontiguousarray"):
        PLAN.rotate(x.astype(">f4"))
    with pytest.raises(posenc.Error, match="strides of whole elements"):
        PLAN.rotate(np.zeros((2, 3), [("a", "u1"), ("v", "f4", 64)])["v"])
    for ids in ([1.5, 2, 3], 2**70, [2**70] * 3, ["a", "b", "c"]):
        with pytest.raises((posenc.Error, TypeError), match="position_ids must be"):
            PLAN.rotate(x, position_ids=ids)
    np.testing.assert_array_equal(PLAN.rotate(x, position_ids=[[4, 5, 7]]), PLAN.rotate(x, position_ids=[4, 5, 7]))
    assert PLAN.rotate(x[:0]).shape == (0, 3, 64) and PLAN.rotate(x[:, :0]).shape == (2, 0, 64)


def test_any_buffer_will_do(np):
    import array

    x = array.array("d", [1.0, 2.0, 3.0, 4.0])
    plan = posenc.plan(posenc.Rope(), head_dim=2)
    view = memoryview(x).cast("B").cast("d", (2, 2))
    plan.rotate_(view)
    np.testing.assert_allclose(x, [1, 2, 3 * np.cos(1) - 4 * np.sin(1), 3 * np.sin(1) + 4 * np.cos(1)])


def test_the_same_bits_for_any_number_of_threads(np, rng):
    x = rng.standard_normal((2, 4, 700, 64)).astype("float32")
    one = PLAN.rotate(x, threads=1)
    for threads in (0, 2, 3, 7):
        np.testing.assert_array_equal(PLAN.rotate(x, threads=threads), one)


def test_the_interpreter_is_free_meanwhile(np, rng):
    x = rng.standard_normal((1, 32, 8192, 64)).astype("float32")
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    for _ in range(20):
        before = counted
        PLAN.rotate_(x, threads=1)
        if counted > before:
            break
    done.set()
    counter.join()
    assert counted > before


def test_a_forked_child_rotates(np, rng):
    x = rng.standard_normal((2, 4, 700, 64)).astype("float32")
    expected = PLAN.rotate(x, threads=3)
    child = os.fork()
    if child == 0:
        os._exit(0 if (PLAN.rotate(x, threads=3) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif("POSENC_TIMES" not in os.environ, reason="timings are for a quiet machine: POSENC_TIMES=1")
def test_a_call_costs_at_most_3_microseconds(np):
    import timeit

    x = np.zeros((1, 1, 1, 64), "float32")
    call = min(timeit.repeat(lambda: PLAN.rotate_(x), number=10000, repeat=7)) / 10000
    assert call < 3e-6


def test_real_positions_are_angles(np, rng):
    x = rng.standard_normal((2, 4, 9, 64))
    seconds = rng.uniform(-50, 50, 9)
    angles = PLAN.angles_at(seconds)
    np.testing.assert_allclose(angles, seconds[:, None] * PLAN.inv_freq, rtol=1e-15)
    turned = PLAN.rotate_by(x, angles)
    a, b = x[..., :32], x[..., 32:]
    np.testing.assert_allclose(turned[..., :32], a * np.cos(angles) - b * np.sin(angles), atol=1e-14)
    np.testing.assert_allclose(turned[..., 32:], a * np.sin(angles) + b * np.cos(angles), atol=1e-14)
    np.testing.assert_allclose(PLAN.rotate_by_inverse(turned, angles), x, atol=1e-14)
    np.testing.assert_allclose(PLAN.rotate_by_transpose(turned, angles), x, atol=1e-14)
    in_place = x.copy()
    assert PLAN.rotate_by_(in_place, angles) is None
    np.testing.assert_array_equal(in_place, turned)


def test_vectors_stand_at_real_positions(np, rng):
    plan = posenc.plan(posenc.Sinusoidal(axes_dim=[4, 4], layout="concatenated"), width=8)
    at = rng.uniform(-9, 9, (2, 3, 5))
    rows = plan.vectors_at(at, dtype="float64")
    assert rows.shape == (3, 5, 8)
    np.testing.assert_allclose(rows[..., 2], np.cos(at[0]), atol=1e-14)
    np.testing.assert_allclose(rows[..., 4], np.sin(at[1]), atol=1e-14)
    x = rng.standard_normal((3, 5, 8))
    np.testing.assert_allclose(plan.add_at(x, at), x + rows, atol=1e-14)
    np.testing.assert_allclose(plan.vectors_at(at[:, 0]), rows[0], atol=1e-6)


def test_a_table_of_a_grid_is_resampled(np, rng):
    table = rng.standard_normal((1 + 6, 5))
    out = posenc.resample_grid(table, (2, 3), (2, 5), align_corners=True, kept_rows=1)
    np.testing.assert_allclose(out[0], table[0])
    np.testing.assert_allclose(out[2], (table[1] + table[2]) / 2)
    weight = rng.standard_normal(out.shape)
    back = posenc.resample_grid_gradient(weight, (2, 3), (2, 5), align_corners=True, kept_rows=1)
    assert back.shape == table.shape
    np.testing.assert_allclose((out * weight).sum(), (table * back).sum())
    with pytest.raises(posenc.Error, match="bilinear, bicubic or repeated"):
        posenc.resample_grid(table, (2, 3), (2, 5), interpolation="nearest")


def test_angles_of_whole_positions_are_those_of_rotate(np, rng):
    x = rng.standard_normal((1, 9, 4, 64)).astype("float32")
    turned = PLAN.rotate_by(x, PLAN.angles_at(np.arange(9.0)), layout="bshd")
    np.testing.assert_allclose(turned, PLAN.rotate(x, layout="bshd"), atol=1e-6)


def test_the_gradient_by_angles(np, rng):
    x, weight = rng.standard_normal((2, 3, 5, 64)), rng.standard_normal((2, 3, 5, 64))
    angles = rng.standard_normal((5, 32))
    gradient = PLAN.angle_gradient(PLAN.rotate_by(x, angles), weight, angles)
    assert gradient.shape == angles.shape
    step = np.zeros_like(angles)
    step[2, 7] = 1e-5
    slope = ((PLAN.rotate_by(x, angles + step) - PLAN.rotate_by(x, angles - step)) * weight).sum() / 2e-5
    assert abs(gradient[2, 7] - slope) < 1e-7


def test_grids_and_negative_ids(np):
    grid = posenc.positions.grid([1, 2, 3], [0, -1, -2])
    assert grid.numpy()[:, 0].tolist() == [[0] * 6, [-1, -1, -1, 0, 0, 0], [-2, -1, 0] * 2]
    assert posenc.positions.signed_ids([[-3, -1, 0]]).numpy().tolist() == [[-3, -1, 0]]
    with pytest.raises(posenc.Error, match="must not be negative"):
        posenc.positions.ids([-3, -1, 0])


def _exported(np, kind: str):
    """Twice five vectors of eight channels, by whatever exports a buffer, and the same as numpy's array."""
    import array
    import ctypes
    import mmap

    plain = np.arange(40, dtype="float32").reshape(5, 8)
    if kind == "ctypes":
        made = (ctypes.c_float * 8 * 5)()
        np.frombuffer(made, "float32")[:] = plain.ravel()
        return made, plain
    if kind == "ctypes double":
        made = (ctypes.c_double * 8 * 5)()
        np.frombuffer(made, "float64")[:] = plain.ravel()
        return made, plain.astype("float64")
    if kind == "array":
        return memoryview(array.array("f", plain.ravel())).cast("B").cast("f", (5, 8)), plain
    if kind == "bytearray":
        return memoryview(bytearray(plain.tobytes())).cast("f", (5, 8)), plain
    if kind == "bytes":
        return memoryview(plain.tobytes()).cast("f", (5, 8)), plain
    if kind == "mmap":
        pages = mmap.mmap(-1, plain.nbytes)
        pages[:] = plain.tobytes()
        return memoryview(pages).cast("f", (5, 8)), plain
    if kind == "backwards":
        return memoryview(plain)[::-1], plain[::-1]
    return memoryview(plain), plain


EXPORTERS = ["ctypes", "ctypes double", "array", "bytearray", "bytes", "mmap", "backwards", "memoryview"]


@pytest.mark.parametrize("kind", EXPORTERS)
def test_buffers_of_any_exporter(np, kind):
    given, plain = _exported(np, kind)
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    np.testing.assert_array_equal(plan.rotate(given), plan.rotate(plain))
    np.testing.assert_array_equal(posenc.attend(given, given, given, plan), posenc.attend(plain, plain, plain, plan))


def test_arguments_of_every_kind_take_ctypes(np):
    import ctypes

    plan = posenc.plan(posenc.Rope(), head_dim=8)
    x, plain = _exported(np, "ctypes")
    ids = (ctypes.c_int64 * 5)(0, 1, 2, 5, 9)
    short = (ctypes.c_int32 * 5)(0, 1, 2, 5, 9)
    wanted = plan.rotate(plain, position_ids=[0, 1, 2, 5, 9])
    np.testing.assert_array_equal(plan.rotate(x, position_ids=ids), wanted)
    np.testing.assert_array_equal(plan.rotate(x, position_ids=short), wanted)
    assert posenc.positions.ids(ids) == posenc.positions.ids([0, 1, 2, 5, 9])
    keep = (ctypes.c_bool * 5)(True, False, True, True, True)
    np.testing.assert_array_equal(
        posenc.attend(x, x, x, plan, keep=keep), posenc.attend(plain, plain, plain, plan, keep=np.array(keep))
    )
    out = (ctypes.c_float * 8 * 5)()
    posenc.attend(x, x, x, plan, out=out)
    np.testing.assert_array_equal(np.array(out), posenc.attend(plain, plain, plain, plan))
    plan.rotate_(x)
    np.testing.assert_array_equal(np.array(x), plan.rotate(plain))
    table = (ctypes.c_double * 8 * 5)()
    learned = posenc.plan(posenc.Learned(rows=5), width=8).with_table("add", table)
    assert not np.any(learned.table("add"))


def test_buffers_that_are_refused_say_why(np):
    import ctypes

    plan = posenc.plan(posenc.Rope(), head_dim=8)

    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_float), ("b", ctypes.c_float)]

    for given in (
        (ctypes.c_float.__ctype_be__ * 8 * 5)(),  # big-endian
        (Pair * 8 * 5)(),
        (ctypes.c_int * 8 * 5)(),
        bytearray(320),
        memoryview(bytearray(320)),
        memoryview(bytearray(164))[2:162].cast("B").cast("f", (5, 8)),  # between two floats
        (ctypes.c_float * 0 * 5)(),
        (ctypes.c_float * 8 * 1 * 1 * 1 * 1)(),
        (ctypes.c_char_p * 8 * 5)(),
        ctypes.c_float(1),
    ):
        with pytest.raises(posenc.Error) as refused:
            plan.rotate(given)
        assert "cure" in dir(refused.value) and refused.value.rule
    with pytest.raises(posenc.Error, match="must be writable"):
        plan.rotate_(memoryview(bytes(160)).cast("f", (5, 8)))
    assert plan.rotate((ctypes.c_float * 8 * 0)()).shape == (0, 8)


@pytest.mark.parametrize("ids", [range(10**30, 10**30 + 5), range(0, 10**30), range(0, 5 * 10**30, 10**30)])
def test_ids_beyond_64_bits_are_refused_with_the_value(np, ids):
    x = np.zeros((1, 5, 64), "float32")
    with pytest.raises(posenc.Error, match="position_ids must be") as refused:
        PLAN.rotate(x, position_ids=ids)
    assert "000000" in refused.value.value and refused.value.cure
    with pytest.raises(posenc.Error, match="position_ids must be"):
        posenc.positions.ids(ids)


def test_convolutions_read_neighbours_on_a_line(np):
    x = np.zeros((1, 6, 2))
    x[0, 3] = 1, 10
    weight = np.array([[[1.0, 2, 3, 4]], [[1, 1, 1, 1]]])  # each channel by itself
    y = posenc.convolve_positions(x, weight, np.array([0.5, 0]))
    assert (y[0, :, 0] - 0.5).tolist() == [0, 0, 4, 1 + 3, 2, 1]
    assert y[0, :, 1].tolist() == [0, 0, 10, 20, 10, 10]
    hidden = np.array([[True, True, True, False, True, True]])
    assert (posenc.convolve_positions(x, weight, keep=hidden) == 0).all()


def test_convolutions_read_neighbours_of_a_picture(np, rng):
    x, weight = rng.standard_normal((2, 1 + 12, 4)), rng.standard_normal((4, 2, 3, 3))
    y = posenc.convolve_positions(x, weight, grid=(3, 4), kept=1, after="gelu")
    assert (y[:, 0] == x[:, 0]).all()
    g = rng.standard_normal(x.shape)
    slopes = posenc.convolve_positions_gradients(g, x, weight, grid=(3, 4), kept=1, after="gelu")
    assert slopes["weight"].shape == weight.shape and "bias" not in slopes
    step = 1e-5
    moved = x.copy()
    moved[1, 7, 2] += step
    change = posenc.convolve_positions(moved, weight, grid=(3, 4), kept=1, after="gelu") - y
    assert abs((change * g).sum() / step - slopes["x"][1, 7, 2]) < 1e-3
    with pytest.raises(posenc.Error, match="after must be none, gelu or normalised_gelu"):
        posenc.convolve_positions(x, weight, grid=(3, 4), kept=1, after="relu")
