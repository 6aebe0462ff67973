"""Cached keys in pages and in 8 bits, and the header that travels with them."""

import copy
import pickle

import pytest

import posenc

HEADS, DIM = 2, 64


@pytest.fixture
def plan():
    return posenc.plan(posenc.Rope(), head_dim=DIM, heads=HEADS, kv_heads=HEADS)


# --- pages ----------------------------------------------------------------------------------------------------------

TABLE = [[3, 4, 1], [2, -1, -1]]  # what stands behind a sequence's last page is not read
TOKENS = [10, 3]


def gathered(pool, sequence, size=4):
    """[1, head, token, channel] of a pool [page, head, token, channel]."""
    rows = [pool[TABLE[sequence][t // size], :, t % size] for t in range(TOKENS[sequence])]
    import numpy

    return numpy.stack(rows, 1)[None]


@pytest.mark.parametrize("heads_first", [True, False])
def test_pages_move_as_sequences(np, rng, plan, heads_first):
    pool = rng.standard_normal((6, HEADS, 4, DIM))
    given = pool.copy() if heads_first else pool.transpose(0, 2, 1, 3).copy()
    pages = posenc.KeyPages(given, np.array(TABLE, dtype=np.int32), TOKENS)
    assert posenc.rekey_(pages, plan, 100, to_positions=7, layout="" if heads_first else "bshd") is None
    moved = given if heads_first else given.transpose(0, 2, 1, 3)
    for sequence in range(2):
        wanted = posenc.rekey(gathered(pool, sequence), plan, 100, to_positions=7)
        np.testing.assert_allclose(gathered(moved, sequence), wanted, atol=1e-14)
    np.testing.assert_array_equal(moved[[0, 5]], pool[[0, 5]])
    np.testing.assert_array_equal(moved[1, :, 2:], pool[1, :, 2:])


def test_each_sequence_has_positions_of_its_own(np, rng, plan):
    pool = rng.standard_normal((6, HEADS, 4, DIM))
    given, old, new = pool.copy(), np.arange(20).reshape(2, 10) * 3, np.arange(20).reshape(2, 10)[::-1].copy()
    posenc.rekey_(posenc.KeyPages(given, TABLE, TOKENS), plan, old, to_positions=new)
    for sequence, count in enumerate(TOKENS):
        ids = [each[sequence, :count][None] for each in (old, new)]
        wanted = posenc.rekey(gathered(pool, sequence), plan, ids[0], to_positions=ids[1])
        np.testing.assert_allclose(gathered(given, sequence), wanted, atol=1e-14)


def test_bad_tables_are_refused(np, plan):
    pool = np.zeros((6, HEADS, 4, DIM))
    for table, tokens, word in [
        ([[1, 1, 2]], [10], "of one sequence"),
        ([[1, 9, 2]], [10], "the pool must have"),
        ([[1]], [5], "fit its pages"),
    ]:
        with pytest.raises(posenc.Error, match=word):
            posenc.rekey_(posenc.KeyPages(pool, table, tokens), plan, 0, to_positions=1)


# --- 8 bits ---------------------------------------------------------------------------------------------------------


def numbers_of(np, codes, scales):
    """The floats of e4m3 codes, as its specification reads them."""
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7))
    return sign * size * scales


def test_codes_of_e4m3_are_off_by_half_a_step(np, rng, plan):
    codes = (rng.integers(0, 256, (1, HEADS, 5, DIM)) & 0xB7).astype(np.uint8)  # far from the largest
    scales = np.array([0.5, 0.25], dtype=np.float32).reshape(1, HEADS, 1, 1)
    before = numbers_of(np, codes, scales)
    posenc.rekey_(posenc.CodedKeys(codes, scales=scales), plan, 4000, to_positions=17)
    wanted = posenc.rekey(before, plan, 4000, to_positions=17)
    off = np.abs(numbers_of(np, codes, scales) - wanted)
    assert (off <= np.maximum(np.abs(wanted) * 2.0**-4, scales * 2.0**-10) + 1e-6).all()


def test_codes_of_int8_with_scales_anew(np, rng, plan):
    codes = rng.integers(-127, 128, (1, 5, HEADS, DIM)).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, (1, 5, HEADS, 1)).astype(np.float32)
    before, stood = codes * scales.astype(float), scales.copy()
    posenc.rekey_(
        posenc.CodedKeys(codes, "int8", scales, keep_scales=False), plan, 4000, to_positions=17, layout="bshd"
    )
    wanted = posenc.rekey(before, plan, 4000, to_positions=17, layout="bshd")
    assert (np.abs(codes * scales.astype(float) - wanted) <= scales * 0.5001).all() and not (scales == stood).all()


def test_codes_in_pages(np, rng, plan):
    codes = (rng.integers(0, 256, (6, HEADS, 4, DIM)) & 0xB7).astype(np.uint8)
    given = codes.copy()
    posenc.rekey_(posenc.KeyPages(posenc.CodedKeys(given), TABLE, TOKENS), plan, 100, to_positions=7)
    for sequence in range(2):
        dense = gathered(codes, sequence).copy()
        posenc.rekey_(posenc.CodedKeys(dense), plan, 100, to_positions=7)
        np.testing.assert_array_equal(gathered(given, sequence), dense)
    np.testing.assert_array_equal(given[[0, 5]], codes[[0, 5]])


def test_rows_of_q8_0(np, rng, plan):
    """llama.cpp's blocks: a float16 and 32 codes."""
    scales = rng.uniform(0.01, 0.02, (2, 5, HEADS, DIM // 32, 1)).astype(np.float16)
    codes = rng.integers(-127, 128, (2, 5, HEADS, DIM // 32, 32)).astype(np.int8)
    rows = np.concatenate([scales.view(np.uint8), codes.view(np.uint8)], -1).reshape(2, 5, -1).copy()
    before = (codes * scales.astype(float)).reshape(2, 5, HEADS, DIM)
    posenc.rekey_(posenc.CodedKeys(rows, "q8_0", kv_heads=HEADS, head_dim=DIM), plan, 4000, to_positions=17)
    blocks = rows.reshape(2, 5, HEADS, DIM // 32, 34)
    after_scales = blocks[..., :2].copy().view(np.float16).astype(float)
    after = (blocks[..., 2:].copy().view(np.int8) * after_scales).reshape(before.shape)
    wanted = posenc.rekey(before, plan, 4000, to_positions=17, layout="bshd")
    assert np.abs(after - wanted).max() <= after_scales.max() * 0.51
    with pytest.raises(posenc.Error, match="bytes a token"):
        posenc.rekey_(posenc.CodedKeys(rows, "q8_0", kv_heads=3, head_dim=DIM), plan, 0)
    with pytest.raises(posenc.Error, match="without pages"):
        coded = posenc.CodedKeys(rows, "q8_0", kv_heads=HEADS, head_dim=DIM)
        posenc.rekey_(posenc.KeyPages(coded, TABLE, TOKENS), plan, 0)


def test_tensors_of_float8(np, rng, plan):
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "float8_e4m3fn"):
        pytest.skip("this torch has no float8")
    x = torch.tensor(rng.standard_normal((1, HEADS, 5, DIM))).to(torch.float8_e4m3fn)
    wanted = posenc.rekey(x.double(), plan, 40, to_positions=3)
    posenc.rekey_(posenc.CodedKeys(x), plan, 40, to_positions=3)
    assert ((x.double() - wanted).abs() <= (wanted.abs() * 2.0**-4).clamp_min(2.0**-10) + 1e-6).all()


def test_codes_that_are_none(np, plan):
    codes = np.zeros((1, HEADS, 5, DIM), dtype=np.uint8)
    for keys, word in [
        (posenc.CodedKeys(codes.astype(np.float32)), "one byte a number"),
        (posenc.CodedKeys(codes, "e5m2"), "e4m3"),
        (posenc.CodedKeys(codes, block=48), "divide head_dim"),
        (posenc.CodedKeys(codes, keep_scales=False), "must be there"),
    ]:
        with pytest.raises(posenc.Error, match=word):
            posenc.rekey_(keys, plan, 0)


# --- the header -----------------------------------------------------------------------------------------------------


def test_a_header_says_by_which_rotation_and_where(plan):
    header = posenc.key_header(plan, 100, (1, HEADS, 5, DIM), "bfloat16", layer=3)
    assert (header.dtype, header.pairing, header.side, header.layer) == ("bfloat16", "halves", "key", 3)
    assert (header.first, header.tokens, header.consecutive, header.axes) == (100, 5, True, 1)
    assert (header.kv_heads, header.head_dim, header.first_dim, header.rotary_dim) == (HEADS, DIM, 0, DIM)
    again = posenc.KeyHeader.from_bytes(header.to_bytes())
    assert again == header and hash(again) == hash(header) and len(bytes(header)) == 64
    assert pickle.loads(pickle.dumps(header)) == copy.deepcopy(header) == header
    assert "at 100 and on" in repr(header) and header != 3
    assert posenc.key_header(plan, [1, 5], (1, HEADS, 2, DIM)).consecutive is False
    assert posenc.key_header(plan, 0, (1, HEADS, 5, DIM)).layer is None


def test_keys_of_another_header_are_refused(plan):
    header = posenc.key_header(plan, 100, (1, HEADS, 5, DIM))
    header.check(header)
    other = posenc.plan(posenc.Rope(theta=5e5), head_dim=DIM, heads=HEADS, kv_heads=HEADS)
    turned = posenc.plan(posenc.Rope(pairing="interleaved"), head_dim=DIM, heads=HEADS, kv_heads=HEADS)
    for expected, word in [
        (posenc.key_header(plan, 99, (1, HEADS, 5, DIM)), "positions"),
        (posenc.key_header(other, 100, (1, HEADS, 5, DIM)), "rotation"),
        (posenc.key_header(turned, 100, (1, HEADS, 5, DIM)), "pairing"),
        (posenc.key_header(plan, 100, (1, HEADS, 5, DIM), "float16"), "type"),
        (posenc.key_header(plan, 100, (1, 1, 5, DIM)), "shape"),
    ]:
        with pytest.raises(posenc.Error, match=f"cache.bin.*{word}"):
            header.check(expected, "cache.bin")
    with pytest.raises(posenc.Error, match=r"cache\.bin.*64 bytes"):
        posenc.KeyHeader.from_bytes(b"short", "cache.bin")
    with pytest.raises(posenc.Error, match=r"xpos|growth|XPos"):
        posenc.key_header(posenc.plan(posenc.XPos(), head_dim=DIM, heads=1, kv_heads=1), 0, (1, 1, 5, DIM))
    with pytest.raises(posenc.Error, match="dtype must be"):
        posenc.key_header(plan, 0, (1, HEADS, 5, DIM), "float8")
