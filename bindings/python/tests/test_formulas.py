"""Formulas that stand alone, plans put together, and files of tensors."""

from pathlib import Path

import pytest

import posenc

FETCHED = Path(__file__).resolve().parents[3] / "models" / "fetched" / "smollm2-135m"


def test_slopes_and_buckets_are_those_of_plans(np):
    slopes = posenc.alibi_slopes(12)
    bias = posenc.plan(posenc.Alibi(), heads=12).bias([1], [0], dtype="float64")
    np.testing.assert_array_equal(slopes, -bias.ravel())
    assert (posenc.alibi_slopes(12, rounding="bfloat16") != slopes).any()
    table = np.arange(32.0)[None].repeat(2, 0)
    plan = posenc.plan(posenc.T5(), heads=2, head_dim=8).with_table("bias", table)
    distances = np.arange(300)
    np.testing.assert_array_equal(plan.bias([299], distances)[0, 0], posenc.t5_bucket(distances - 299))
    assert posenc.t5_bucket(5, bidirectional=True) == 21
    assert posenc.deberta_bucket([-300, 0, 10], position_buckets=256, max_position=512) == [-207, 0, 10]


def test_fires_bias_is_what_its_attention_adds(np, rng):
    q, k, v = rng.standard_normal((3, 1, 2, 5, 8))
    fire = posenc.Fire(
        hidden_weight=rng.standard_normal(3), hidden_bias=rng.standard_normal(3),
        output_weight=rng.standard_normal((2, 3)), output_bias=rng.standard_normal(2),
    )  # fmt: skip
    with_it, without = np.empty((2, 1, 2, 5, 5))
    posenc.attend(q, k, v, scheme=fire, reference=True, logits=with_it)
    posenc.attend(q, k, v, reference=True, logits=without)
    added = posenc.fire_bias(fire, 5, dtype="float64")
    seen = np.tril(np.ones((5, 5), bool))
    np.testing.assert_allclose(with_it[0][:, seen] - without[0][:, seen], added[:, seen], atol=1e-12)
    with pytest.raises(posenc.Error, match="scheme must be of the type fire"):
        posenc.fire_bias(posenc.StickBreaking(), 5)


def test_fields_take_arrays_of_any_library(np):
    weights = np.arange(6.0).reshape(2, 3)
    fire = posenc.Fire(output_weight=weights)
    assert fire.output_weight == [0, 1, 2, 3, 4, 5] and posenc.Fire(c=np.float32(0.5)).c == 0.5
    torch = pytest.importorskip("torch")
    assert posenc.Fire(output_weight=torch.as_tensor(weights)) == fire
    gates = -np.ones((1, 2, 5))
    np.testing.assert_array_equal(posenc.Forgetting(log_gates=torch.as_tensor(gates)).table("log_gates"), gates)
    assert posenc.Forgetting().table("log_gates") is None


def test_what_kerple_learns(np, rng):
    scheme = posenc.Kerple(kernel="log", p=[1.0, 2.0], a=[0.5, 0.25])

    def loss(scheme):
        return (posenc.attend(q, k, v, posenc.plan(scheme, heads=2, head_dim=8, length=6)) * g).sum()

    q, k, v, g = rng.standard_normal((4, 1, 2, 6, 8))
    plan = posenc.plan(scheme, heads=2, head_dim=8, length=6)
    by_bias = posenc.attend_backward(q, k, v, g, plan, parameters=["bias"])["bias"]
    by_p, by_a = posenc.kerple_gradients(scheme, by_bias)
    up, down = (loss(scheme.replace(a=[0.5, 0.25 + step])) for step in (1e-6, -1e-6))
    assert by_a[1] == pytest.approx((up - down) / 2e-6, rel=1e-5)
    up, down = (loss(scheme.replace(p=[1.0 + step, 2.0])) for step in (1e-6, -1e-6))
    assert by_p[0] == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_normal_numbers_are_the_same_everywhere(np):
    numbers = posenc.normals(7, 1000)
    np.testing.assert_array_equal(posenc.normals(7, 10, first=990), numbers[990:])
    assert abs(numbers.mean()) < 0.1 and abs(numbers.std() - 1) < 0.1


def test_two_plans_that_act_at_different_places_are_one(np, rng):
    rope, learned = posenc.plan(posenc.Rope(), head_dim=8), posenc.plan(posenc.Learned(rows=12), width=8)
    both = learned.with_table("add", rng.standard_normal((12, 8))).merged(rope)
    x = rng.standard_normal((3, 8))
    np.testing.assert_array_equal(both.rotate(x), rope.rotate(x))
    np.testing.assert_array_equal(both.position_vectors(seq=3, dtype="float64"), both.table("add")[:3])
    assert rope.table("add") is None
    with pytest.raises(posenc.Error):
        rope.merged(rope)


def test_gradients_of_a_learned_table(np, rng):
    plan = posenc.plan(posenc.Learned(rows=6), width=4).with_table("add", np.zeros((6, 4)))
    gradient = rng.standard_normal((1, 3, 4))
    by_embedding, by_table = plan.add_backward(gradient, [0, 5, 5])
    np.testing.assert_array_equal(by_embedding, gradient)
    np.testing.assert_allclose(by_table[5], gradient[0, 1] + gradient[0, 2])
    assert not by_table[1:5].any()
    assert posenc.plan(posenc.Sinusoidal(), width=4).add_backward(gradient)[1] is None


def test_logits_scaled_otherwise(np, rng):
    q, k, v = rng.standard_normal((3, 1, 1, 4, 8))
    plain = posenc.plan(posenc.NoPe(), heads=1, head_dim=8)
    np.testing.assert_allclose(
        posenc.attend(q, k, v, plain.with_logits(multiplier=2)), posenc.attend(2 * q, k, v, plain), atol=1e-14
    )
    capped, logits = np.empty((2, 1, 1, 4, 4))
    posenc.attend(q, k, v, plain.with_logits(softcap=0.5), reference=True, logits=capped)
    posenc.attend(q, k, v, plain, reference=True, logits=logits)
    np.testing.assert_allclose(capped[logits > -np.inf], 0.5 * np.tanh(logits[logits > -np.inf] / 0.5), atol=1e-14)
    warm = plain.with_logits(temperature="log", beta=0.1, floor=8)
    np.testing.assert_allclose(warm.query_scale([0, 8, 80]), [[1, 1, 1 + 0.1 * np.log(10)]], rtol=1e-14)
    with pytest.raises(posenc.Error, match="temperature must be steps, log or power"):
        plain.with_logits(temperature="warm")


def test_what_no_key_took(np, rng):
    q, k, v = rng.standard_normal((3, 1, 2, 5, 8))
    left, weights = np.empty((1, 2, 5)), np.empty((1, 2, 5, 5))
    posenc.attend(q, k, v, scheme=posenc.StickBreaking(), remainder=left)
    posenc.attend(q, k, v, scheme=posenc.StickBreaking(), reference=True, weights=weights)
    np.testing.assert_allclose(left, 1 - weights.sum(-1), atol=1e-14)
    zeros, ones = np.zeros_like(q), np.ones_like(left)
    by_rest = posenc.attend_backward(q, k, v, zeros, scheme=posenc.StickBreaking(), remainder_gradient=ones)
    assert not by_rest["v"].any() and by_rest["q"].any()


def test_positions_put_together(np):
    text, more = posenc.positions.range(0, 2), posenc.positions.ids([7, 8])
    assert text.appended(more).numpy().tolist() == [[0, 1, 7, 8]] and len(text) == 2
    assert text.appended(more).slice(0, 1, 2).numpy().tolist() == [[1, 7]]
    assert posenc.positions.packed([0, 2, 5]).segments == [0, 0, 1, 1, 1]
    with pytest.raises(IndexError):
        text.slice(0, 1, 9)


def test_tensors_of_a_file(np, rng, tmp_path):
    x = rng.standard_normal((3, 4)).astype("float32")
    np.save(tmp_path / "x.npy", x)
    (tensor,) = posenc.read_tensors(str(tmp_path / "x.npy")).values()
    assert tensor.shape == (3, 4)
    np.testing.assert_array_equal(tensor.numpy(), x)
    assert tensor.numpy("float64").dtype == np.float64
    with pytest.raises(posenc.Error, match="dtype must be float32 or float64, got int8"):
        tensor.numpy("int8")


@pytest.mark.skipif(not FETCHED.exists(), reason="make models fetches SmolLM2-135M")
def test_quantized_blocks_are_restored_as_ggml_does(np):
    gguf = pytest.importorskip("gguf")
    path = next(FETCHED.glob("*.gguf"))
    ours = posenc.read_tensors(str(path))
    theirs = gguf.GGUFReader(path).tensors
    assert {tensor.name for tensor in theirs} == set(ours)
    for tensor in theirs[:20]:
        restored = gguf.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours[tensor.name].numpy(), restored.reshape(ours[tensor.name].shape))
