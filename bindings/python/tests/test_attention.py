"""Attention, its gradients and the cache."""

import pytest

import posenc
from posenc import distributed


def reference(np, q, k, v, rotate, bias=0.0):
    q, k = rotate(q), rotate(k)
    logits = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + bias
    logits[..., np.triu(np.ones(logits.shape[-2:], bool), 1)] = -np.inf
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_attention_against_numpy(np, rng):
    q, k, v = rng.standard_normal((3, 2, 4, 7, 16))
    rope = posenc.plan(posenc.Rope(), head_dim=16, heads=4)
    np.testing.assert_allclose(posenc.attend(q, k, v, rope), reference(np, q, k, v, rope.rotate), atol=1e-12)
    alibi = posenc.plan(posenc.Alibi(), head_dim=16, heads=4)
    bias = alibi.bias(7, dtype="float64")
    np.testing.assert_allclose(posenc.attend(q, k, v, alibi), reference(np, q, k, v, lambda x: x, bias), atol=1e-12)
    np.testing.assert_allclose(posenc.attend(q, k, v), reference(np, q, k, v, lambda x: x), atol=1e-12)
    np.testing.assert_allclose(posenc.attend(q, k, v, rope), posenc.attend(q, k, v, rope, reference=True), atol=1e-12)
    across = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    got = posenc.attend(*across, rope, layout="bshd")
    np.testing.assert_allclose(got.transpose(0, 2, 1, 3), posenc.attend(q, k, v, rope), atol=1e-14)


def test_products_of_bfloat16_can_be_refused(np, rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = rng.standard_normal((3, 1, 2, 40, 32)).astype(ml_dtypes.bfloat16)
    exact = posenc.attend(*(each.astype("float64") for each in (q, k, v)))
    out = np.empty(exact.shape, "float32")
    posenc.attend(q, k, v, out=out, allow_bfloat16_products=False)
    np.testing.assert_allclose(out, exact, atol=1e-5)
    posenc.attend(q, k, v, out=out)
    np.testing.assert_allclose(out, exact, atol=2**-7 * np.abs(np.float32(v)).max())


def test_masks_values_and_sinks(np, rng):
    q, k, v = rng.standard_normal((1, 4, 5, 16)), rng.standard_normal((1, 2, 5, 16)), rng.standard_normal((1, 2, 5, 24))
    assert posenc.attend(q, k, v).shape == (1, 4, 5, 24)
    keep = np.array([[0, 1, 1, 1, 1]], bool)
    padded = posenc.attend(q, k, v, keep=keep, position_ids=posenc.positions.from_mask(keep))
    np.testing.assert_allclose(padded[:, :, 1:], posenc.attend(q[:, :, 1:], k[:, :, 1:], v[:, :, 1:]), atol=1e-14)
    last = posenc.attend(q[:, :, -1:], k, v)
    np.testing.assert_allclose(last, posenc.attend(q, k, v)[:, :, -1:], atol=1e-14)
    np.testing.assert_allclose(posenc.attend(q, k, v, window=1), np.repeat(v, 2, axis=1), atol=1e-14)
    sunk = posenc.attend(q, k, v, window=1, sink_logits=np.full(4, 50.0))
    assert np.abs(sunk).max() < 1e-15


def test_profiles_against_numpy(np, rng):
    q, k, v = rng.standard_normal((3, 1, 2, 6, 8))
    r, table = rng.standard_normal((1, 2, 6, 3)), rng.standard_normal((3, 4))
    plan = posenc.plan(posenc.Profiles(profiles=3, extent=4, table=table), head_dim=8, heads=2)
    away = np.arange(6)[:, None] - np.arange(6)
    bias = np.where((away >= 0) & (away < 4), (r @ table)[..., np.arange(6)[:, None], away.clip(0, 3)], 0)
    out = posenc.attend(q, k, v, plan, query_profiles=r)
    np.testing.assert_allclose(out, reference(np, q, k, v, lambda x: x, bias), atol=1e-12)
    by = posenc.attend_backward(q, k, v, out, plan, query_profiles=r, parameters=["relative_key"])
    assert by["query_profiles"].shape == r.shape and by["relative_key"].shape == (4, 3)
    step = 1e-6
    moved = r.copy()
    moved[0, 1, 3, 2] += step
    slope = ((posenc.attend(q, k, v, plan, query_profiles=moved) - out) * out).sum() / step
    assert abs(by["query_profiles"][0, 1, 3, 2] - slope) < 1e-5
    cache = posenc.KvCache(kv_heads=2, head_dim=8, dtype="float64")
    sequence = cache.add()
    cache.append([sequence], k, v, plan)
    last = cache.attend([sequence], q[:, :, -1:], plan, query_profiles=r[:, :, -1:])
    np.testing.assert_allclose(last, out[:, :, -1:], atol=1e-12)
    with pytest.raises(posenc.Error, match=r"profiles\.query must be"):
        posenc.attend(q, k, v, plan)


def test_transformer_xl_takes_its_weights(np, rng):
    projection, u, w = rng.standard_normal((8, 8)), rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    scheme = posenc.TransformerXl(projection=projection, content_bias=u, position_bias=w)
    plan = posenc.plan(scheme, width=8, heads=2, head_dim=4, length=5)
    q, k, v = rng.standard_normal((3, 1, 2, 5, 4))
    angles = np.arange(-4, 5)[:, None] * 10000.0 ** (-np.arange(4) / 4)
    by_distance = (np.concatenate((np.sin(angles), np.cos(angles)), -1) @ projection.T).reshape(9, 2, 4)
    away = np.arange(5)[:, None] - np.arange(5) + 4
    logits = (q + u[:, None]) @ k.swapaxes(-1, -2) + np.einsum("bhic,ijhc->bhij", q + w[:, None], by_distance[away])
    weights = np.exp(logits / 2)
    out = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(posenc.attend(q, k, v, plan, causal=False), out, atol=1e-12)


def test_tokens_of_a_picture_see_each_other(np, rng):
    q = rng.standard_normal((2, 1, 5, 8))
    blocks = np.array([-1, 0, 0, 0, -1])
    out = posenc.attend(q, q, q, blocks=blocks)
    first, whole = (
        posenc.attend(q, q, q),
        posenc.attend(q, q, q, causal=False, keep=np.array([[1, 1, 1, 1, 0]] * 2, "uint8")),
    )
    np.testing.assert_allclose(out[:, :, [0, 4]], first[:, :, [0, 4]], atol=1e-14)
    np.testing.assert_allclose(out[:, :, 1:4], whole[:, :, 1:4], atol=1e-14)


def test_lists_of_keys_hide_the_others(np, rng):
    rope = posenc.plan(posenc.Rope(), head_dim=8)
    q, k, v = rng.standard_normal((3, 2, 2, 6, 8))
    keys = np.array([[[i, 0, -1] if i else [0, -1, -1] for i in range(6)]] * 2)
    out = posenc.attend(q, k, v, rope, keys=keys)
    logits = np.zeros((2, 2, 6, 6))
    posenc.attend(q, k, v, rope, reference=True, logits=logits)
    seen = (np.arange(6) == 0) | (np.arange(6)[:, None] == np.arange(6))
    weights = np.where(seen, np.exp(logits), 0)
    np.testing.assert_allclose(out, weights / weights.sum(-1, keepdims=True) @ v, atol=1e-12)
    np.testing.assert_allclose(posenc.attend(q, k, v, rope, keys=keys[0]), out, atol=1e-14)
    made = posenc.attend_backward(q, k, v, np.ones_like(q), rope, keys=keys)
    assert made["k"].shape == k.shape and not made["v"][:, :, 1:][:, :, :0].any()
    cache = posenc.KvCache(kv_heads=2, head_dim=8, dtype="float64")
    both = [cache.add(), cache.add()]
    cache.append(both, k, v, rope)
    last = cache.attend(both, q[:, :, -1:], rope, keys=keys[:, -1:])
    np.testing.assert_allclose(last, out[:, :, -1:], atol=1e-12)
    with pytest.raises(posenc.Error, match="below the 6 keys, got 6"):
        posenc.attend(q, k, v, rope, keys=keys + (keys == 5))
    with pytest.raises(posenc.Error, match="queries, count"):
        posenc.attend(q, k, v, rope, keys=[0, 1])


def test_the_default_queries_are_the_last(np, rng):
    rope = posenc.plan(posenc.Rope(), head_dim=16)
    q, k, v = rng.standard_normal((3, 1, 2, 6, 16))
    np.testing.assert_allclose(
        posenc.attend(q[:, :, -2:], k, v, rope), posenc.attend(q, k, v, rope)[:, :, -2:], atol=1e-14
    )


@pytest.mark.parametrize("scheme, parameters", [
    (posenc.Rope(), ["rotation_frequency"]), (posenc.Alibi(), ["slopes"]), (posenc.Kerple(), ["bias"]),
    (posenc.Rope(imaginary_heads="alternating"), ["rotation_frequency", "rotation_phase"]),
    (posenc.Pope(phases=[-1.0] * 8), ["rotation_frequency", "rotation_phase"]),
    (posenc.Fope(num_inv_freq=2), ["mix_cosine", "mix_sine", "rotation_frequency"]),
])  # fmt: skip
def test_gradients(np, rng, scheme, parameters):
    plan = posenc.plan(scheme, head_dim=8, heads=2, length=5)
    q, k, v, g = rng.standard_normal((4, 1, 2, 5, 8))
    made = posenc.attend_backward(q, k, v, g, plan, parameters=parameters)
    assert set(made) == {"q", "k", "v", *parameters}
    for name, x in (("q", q), ("k", k), ("v", v)):
        index = 0, 1, 3, 2
        x[index] += 1e-6
        more = (posenc.attend(q, k, v, plan) * g).sum()
        x[index] -= 2e-6
        less = (posenc.attend(q, k, v, plan) * g).sum()
        x[index] += 1e-6
        assert made[name][index] == pytest.approx((more - less) / 2e-6, rel=1e-6, abs=1e-9)
    with pytest.raises(posenc.Error, match="parameters must be learned ones"):
        posenc.attend_backward(q, k, v, g, plan, parameters=["nothing"])


def test_a_scheme_that_reads_the_content(np, rng):
    q, k, v = rng.standard_normal((3, 1, 2, 5, 8))
    gates = -rng.random((1, 2, 5))
    scheme = posenc.Forgetting(log_gates=gates)
    for each in (scheme, posenc.StickBreaking()):
        got = posenc.attend(q, k, v, scheme=each)
        np.testing.assert_allclose(got, posenc.attend(q, k, v, scheme=each, reference=True), atol=1e-12)


@pytest.mark.parametrize("rotated", [False, True])
def test_a_cache_decodes_what_attention_gives(np, rng, rotated):
    plan = posenc.plan(posenc.Rope(), head_dim=16, heads=4)
    q, k, v = (
        rng.standard_normal((1, 4, 12, 16)),
        rng.standard_normal((1, 2, 12, 16)),
        rng.standard_normal((1, 2, 12, 16)),
    )
    expected = posenc.attend(q, k, v, plan)
    cache = posenc.KvCache(kv_heads=2, head_dim=16, dtype="float64", rotated=rotated)
    sequence = cache.add()
    cache.append([sequence], k[:, :, :8], v[:, :, :8], plan)
    np.testing.assert_allclose(cache.attend([sequence], q[:, :, :8], plan), expected[:, :, :8], atol=1e-12)
    for t in range(8, 12):
        cache.append([sequence], k[:, :, t : t + 1], v[:, :, t : t + 1], plan)
        np.testing.assert_allclose(
            cache.attend([sequence], q[:, :, t : t + 1], plan), expected[:, :, t : t + 1], atol=1e-12
        )
    assert cache.tokens(sequence) == cache.length(sequence) == 12 and cache.bytes > 0
    cache.evict(sequence, 4, 6, close=True)
    assert cache.tokens(sequence) == cache.length(sequence) == 10
    with pytest.raises(posenc.Error, match="sequence"):
        cache.tokens(99)


@pytest.mark.parametrize("rotated", [False, True])
def test_decoding_under_dynamic_ntk_is_a_recompute(np, rng, rotated):
    """The rotation changes with each token beyond the trained length, and cached keys follow."""
    rope = posenc.Rope(scaling=posenc.DynamicNtk(factor=4, max_position_embeddings=8))
    q, k, v = rng.standard_normal((3, 1, 2, 14, 16))
    cache = posenc.KvCache(kv_heads=2, head_dim=16, dtype="float64", rotated=rotated)
    sequence = cache.add()
    for t in range(14):
        plan = posenc.plan(rope, head_dim=16, length=t + 1)
        token = slice(t, t + 1)
        cache.append([sequence], k[:, :, token], v[:, :, token], plan)
        out = cache.attend([sequence], q[:, :, token], plan)
        again = posenc.attend(q[:, :, : t + 1], k[:, :, : t + 1], v[:, :, : t + 1], plan)
        np.testing.assert_allclose(out, again[:, :, -1:], atol=1e-12)


def merged(np, parts):
    """Attention over parts of the keys as attention over all of them."""
    outs, sums = zip(*parts, strict=True)
    whole = np.logaddexp.reduce(sums)
    return sum(out * np.exp(each - whole)[..., None] for out, each in zip(outs, sums, strict=True)), whole


def test_attention_over_parts_of_the_keys_is_merged_by_its_log_sums(np, rng):
    plan = posenc.plan(posenc.Rope(), head_dim=16, heads=4)
    q, k, v, g = rng.standard_normal((4, 2, 4, 9, 16))
    parts, places = [], (slice(0, 4), slice(4, 9))
    for place in places:
        sums = np.empty((2, 4, 9))
        ids = dict(position_ids=range(9), key_position_ids=range(place.start, place.stop))
        out = posenc.attend(q, k[:, :, place], v[:, :, place], plan, log_sums=sums, **ids)
        parts.append((out, sums))
    out, sums = merged(np, parts)
    np.testing.assert_allclose(out, posenc.attend(q, k, v, plan), atol=1e-12)
    of_parts = [
        posenc.attend_backward(
            q, k[:, :, place], v[:, :, place], g, plan, log_sums=sums, dots=(out * g).sum(-1), position_ids=range(9),
            key_position_ids=range(place.start, place.stop),
        )
        for place in places
    ]  # fmt: skip
    whole = posenc.attend_backward(q, k, v, g, plan)
    np.testing.assert_allclose(sum(each["q"] for each in of_parts), whole["q"], atol=1e-12)
    np.testing.assert_allclose(np.concatenate([each["k"] for each in of_parts], 2), whole["k"], atol=1e-12)
    with pytest.raises(posenc.Error, match="log_sums and dots come together"):
        posenc.attend_backward(q, k, v, g, plan, log_sums=sums)


def test_two_caches_share_a_text(np, rng):
    plan = posenc.plan(posenc.Rope(), head_dim=16, heads=4)
    q, k, v = rng.standard_normal((3, 1, 4, 12, 16))
    layout, parts = distributed.layout("zigzag", 12, 2), []
    for rank in range(2):
        places = layout.indices(rank)
        cache = posenc.KvCache(kv_heads=4, head_dim=16, dtype="float64")
        sequence = cache.add()
        cache.append([sequence], k[:, :, places], v[:, :, places], plan, places)
        parts.append(cache.attend_part([sequence], q[:, :, -1:], [11], plan))
    np.testing.assert_allclose(merged(np, parts)[0], posenc.attend(q, k, v, plan)[:, :, -1:], atol=1e-12)


def test_layouts_of_several_machines(np):
    layout = distributed.layout("zigzag", 16, 2)
    assert layout.indices(0).tolist() == [0, 1, 2, 3, 12, 13, 14, 15] and (layout.ranks, layout.tokens) == (2, 16)
    whole = posenc.positions.range(100, 16)
    assert layout.positions(1, whole).numpy().ravel().tolist() == list(range(104, 112))
    even = distributed.balance(layout.pairs(whole))
    assert even > distributed.balance(distributed.layout("contiguous", 16, 2).pairs(whole))
    with pytest.raises(posenc.Error, match="must be one of 2, got 2"):
        layout.indices(2)
