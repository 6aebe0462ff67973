"""Plans against numbers made by other engines' own code (tests/data/golden)."""

from pathlib import Path

import pytest

import posenc

zoo = Path(__file__).resolve().parents[3] / "tests" / "data"


def plans_of(model, length):
    """Those of the groups that rotate, for a length."""
    plans = [model.plan(group=i, length=length) for i in range(model.group_count)]
    return [plan for plan in plans if plan.rotates]


def test_frequencies_of_every_zoo_configuration(golden, np):
    """Each set of frequencies that transformers' own code makes of a file is one of the model's plans."""

    def same(plan, expected):
        got = np.sort(np.abs(np.ravel(plan.inv_freq)))
        got, wanted = got[got > 0], np.sort([f for f in expected["inv_freq_f64"] if f > 0])
        factor = plan.attention_factor == pytest.approx(expected["attention_factor"], rel=1e-12)
        return factor and got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-12, atol=0)

    records = golden("zoo_rope.json")["records"]
    for record in records:
        model = posenc.model(zoo / record["config"])
        for expected in record["sets"]:
            if "vision" not in expected["label"] and "mrope" not in expected["rope_type"]:
                plans = plans_of(model, expected["seq_len"] or 0)
                assert any(same(plan, expected) for plan in plans), (record["name"], expected["label"])
    assert len(records) > 50


def test_pope_widens_a_head(np, rng):
    """Each channel is the length of a pair, softplus of what it was; whatever rotates by frequencies alone refuses it."""
    from posenc.cuda import text_of

    plan = posenc.plan(posenc.Pope(), head_dim=6, heads=2)
    x = rng.standard_normal((2, 3, 6))
    wide = plan.rotate(x)
    assert wide.shape == (2, 3, 12)
    np.testing.assert_allclose(np.hypot(wide[..., :6], wide[..., 6:]), np.log1p(np.exp(x)), rtol=1e-12)
    assert plan.rotate(x.transpose(1, 0, 2), layout="shd").shape == (3, 2, 12)
    with pytest.raises(posenc.Error, match="widens a head by 6 channels"):
        plan.rotate_(x)
    assert "polar" in plan.features and "polar" not in posenc.plan(posenc.Rope(), head_dim=6).features
    with pytest.raises(posenc.Error, match="must not have polar pairs"):
        text_of([plan])


def test_rotations_of_other_engines(golden, np):
    for record in golden("rotation.json")["records"]:
        if record["pairing"] not in ("half", "interleaved") or "rope_parameters" not in record:
            continue
        parameters = dict(record["rope_parameters"])
        fields = {
            name: parameters.pop(name)
            for name in ("rope_theta", "mrope_section", "mrope_interleaved")
            if name in parameters
        }
        parameters.pop("partial_rotary_factor", None)
        rope = posenc.Rope(
            pairing="halves" if record["pairing"] == "half" else "interleaved",
            rotary_dim=record["rotary_dim"],
            scaling=parameters,
            **fields,
        )
        plan = posenc.plan(rope, head_dim=record["head_dim"])
        ids = np.array(record["positions"])
        ids = ids[:, None] if ids.ndim == 2 else ids
        for which in "qk":
            shape = (record[f"n_{which}_heads"], record["seq"], record["head_dim"])
            rotated = plan.rotate(np.reshape(np.float64(record[which]), shape), position_ids=ids)
            np.testing.assert_allclose(rotated.ravel(), record[which + "_out_f64"], atol=1e-9, err_msg=record["name"])


def test_far_out(golden, np):
    for record in golden("large_positions.json")["records"]:
        plan = posenc.plan(posenc.Rope(theta=record["rope_theta"]), head_dim=record["head_dim"])
        cos, sin = plan.cos_sin(record["positions"], dtype="float64", halves=True)
        np.testing.assert_allclose(cos, np.reshape(record["cos"], cos.shape), atol=1e-9)
        np.testing.assert_allclose(sin, np.reshape(record["sin"], sin.shape), atol=1e-9)


def test_slopes_of_alibi(golden, np):
    for record in golden("alibi.json")["records"]:
        if "bloom" not in record:
            continue
        bias = posenc.plan(posenc.Alibi(), heads=record["n_heads"]).bias([1], [0], dtype="float64")
        np.testing.assert_allclose(-bias.ravel(), record["bloom"], rtol=2e-6)


def test_numbers_of_a_plan(np):
    rope = posenc.Rope(theta=1e6, scaling=posenc.Yarn(factor=4, original_max_position_embeddings=32768))
    plan = posenc.plan(rope, head_dim=128)
    assert plan.inv_freq.shape == (64,) and plan.inv_freq.dtype == np.float64
    assert plan.pairing == "halves" and plan.rotary_dim == 128 and plan.valid is None
    assert plan.attention_factor == pytest.approx(0.1 * np.log(4) + 1)
    assert plan == posenc.plan(rope, head_dim=128) != posenc.plan(posenc.Rope(), head_dim=128)
    assert plan.to_dict()["rotate"]["pairing"] == "halves"
    assert "pairing halves" in repr(plan) and "<svg" in plan._repr_html_()
    assert posenc.plan(
        posenc.Rope(scaling=posenc.DynamicNtk(factor=2, max_position_embeddings=4096)), head_dim=64
    ).valid == (0, 4096)
    with pytest.raises(posenc.Error, match="head_dim"):
        posenc.plan(posenc.Rope())


@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_cos_sin_make_hugging_faces_rotation(np, rng, pairing):
    rope = posenc.Rope(
        pairing=pairing, partial_rotary_factor=0.5, scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64)
    )
    plan = posenc.plan(rope, head_dim=32)
    ids = np.array([[0, 1, 2, 900], [5, 5, 7, 8]])
    x = rng.standard_normal((2, 3, 4, 32))
    cos, sin = plan.cos_sin(ids, dtype="float64")
    assert cos.shape == (2, 4, 16)
    part = x[..., :16]
    if pairing == "halves":
        other = np.concatenate([-part[..., 8:], part[..., :8]], axis=-1)
    else:
        other = np.stack([-part[..., 1::2], part[..., ::2]], axis=-1).reshape(part.shape)
    expected = np.concatenate([part * cos[:, None] + other * sin[:, None], x[..., 16:]], axis=-1)
    np.testing.assert_allclose(plan.rotate(x, position_ids=ids), expected, atol=1e-12)


def test_angles_are_position_times_frequency(np):
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    np.testing.assert_allclose(plan.angles([3, 10**9]), np.outer([3, 10**9], plan.inv_freq), rtol=1e-15)


def test_turns_make_exact_angles_out_of_integers(np):
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    turns = plan.turns
    assert turns.shape == (1, 1, 4, 2) and turns.dtype == np.uint64
    for position in (1, -7, 10**9, 2**31):
        whole = [(int(high) << 64 | int(low)) * position % 2**128 for high, low in turns[0, 0]]
        angles = np.array([word / 2**128 for word in whole]) * 2 * np.pi
        cos, sin = plan.cos_sin([abs(position)], dtype="float64", halves=True)
        np.testing.assert_allclose(np.cos(angles), cos.ravel(), atol=1e-15)
        np.testing.assert_allclose(np.sin(angles), np.sign(position) * sin.ravel(), atol=1e-15)
    with pytest.raises(posenc.Error, match="engine"):
        _ = posenc.plan(posenc.Rope(), head_dim=8, angles="hf_float").turns


def test_added_vectors_and_tables(np, rng):
    plan = posenc.plan(posenc.Sinusoidal(), width=16)
    vectors = plan.position_vectors(seq=5, dtype="float64")
    np.testing.assert_allclose(vectors[:, 0], np.sin(np.arange(5)), atol=1e-15)
    x = rng.standard_normal((2, 5, 16))
    np.testing.assert_allclose(plan.add(x), x + vectors, atol=1e-15)
    table = rng.standard_normal((12, 16))
    learned = posenc.plan(posenc.Learned(rows=12), width=16).with_table("add", table)
    np.testing.assert_array_equal(learned.position_vectors([3, 11], dtype="float64"), table[[3, 11]])
    with pytest.raises(posenc.Error, match="12"):
        learned.position_vectors([12])


def test_gradient_by_frequencies(np, rng):
    def loss(frequencies):
        rope = posenc.Rope(scaling=posenc.Explicit(frequencies=frequencies))
        return (posenc.plan(rope, head_dim=8).rotate(x, position_ids=[0, 1, 5]) * g).sum()

    x, g = rng.standard_normal((2, 2, 3, 8))
    frequencies = np.array([1.0, 0.5, 0.1, 0.02])
    plan = posenc.plan(posenc.Rope(scaling=posenc.Explicit(frequencies=frequencies)), head_dim=8)
    got = plan.frequency_gradient(plan.rotate(x, position_ids=[0, 1, 5]), g, [0, 1, 5]).ravel()
    step = np.eye(4) * 1e-6
    expected = [(loss(frequencies + s) - loss(frequencies - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


def test_plans_of_another_spelling_are_the_same():
    p = posenc.plan(posenc.Rope(theta=1e6), head_dim=128)
    assert p.same_as(posenc.Plan.of_frequencies(p.inv_freq)).ok


def test_plans_that_differ_say_where_and_from_when_on():
    trained, served = posenc.model("llama-3.1-8b").plan(), posenc.plan(posenc.Rope(theta=5e5), head_dim=128)
    report = trained.same_as(served, at=8192)
    (finding,) = report.findings
    assert not report and finding.code == "frequency" and finding.pair == 32 and finding.position == 113
    assert "at 8,191 pair" in finding.message


def _copies(value):
    import copy
    import pickle

    yield copy.copy(value)
    yield copy.deepcopy(value)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))


def test_plans_are_copied_and_pickled(np):
    table = np.arange(12.0).reshape(3, 4)
    for plan in (
        posenc.plan(
            posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=2048)), head_dim=64, length=8192
        ),
        posenc.plan(posenc.Alibi(), heads=8),
        posenc.plan(posenc.Learned(rows=3), width=4).with_table("add", table),
        posenc.plan(posenc.Sinusoidal(), width=16),
        posenc.plan(posenc.T5(), heads=2).with_table("bias", np.ones((2, 32))),
        posenc.plan(posenc.Shaw(max_distance=3), head_dim=4),
        posenc.plan(posenc.Rope(), head_dim=8, angles="ggml_float"),
        posenc.model("llama-4-scout").plan(layer=3),
    ):
        for made in _copies(plan):
            assert made == plan
            assert made.to_json() == plan.to_json()
            assert (made.head_dim, made.heads, made.width) == (plan.head_dim, plan.heads, plan.width)
    assert np.array_equal(
        next(_copies(posenc.plan(posenc.Learned(rows=3), width=4).with_table("add", table))).table("add"), table
    )


def test_a_damaged_pickle_of_a_plan_is_refused():
    plan = posenc.plan(posenc.Rope(), head_dim=8)
    state, sizes = plan.__getstate__()
    for part, damage in (
        ("slice", {"rotary_dim": -2}),
        ("slice", {"pairing": 7}),
        ("slice", {"spiral": 1}),
        ("frequencies", {"frequencies": [1.0]}),
        ("frequencies", {"frequencies": "x"}),
        ("frequencies", {"heads": 3}),
    ):
        rotate = state["rotate"]
        broken = {**state, "rotate": {**rotate, part: {**rotate[part], **damage}}}
        with pytest.raises(posenc.Error):
            type(plan).__new__(type(plan)).__setstate__((broken, sizes))


def test_models_are_copied_and_pickled(tmp_path):
    config = '{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}'
    (tmp_path / "config.json").write_text(config)
    for model in (posenc.model("llama-3.1-8b"), posenc.model(str(tmp_path)), posenc.model(config)):
        for made in _copies(model):
            assert made.name == model.name
            assert made.plan(layer=0) == model.plan(layer=0)


def test_positions_are_copied_and_pickled(np):
    for at in (
        posenc.positions.range(5, 7),
        posenc.positions.ids([3, 1, 2]),
        posenc.positions.ids([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]),
        posenc.positions.packed([0, 3, 3, 8]),
    ):
        for made in _copies(at):
            assert made == at
            assert made.segments == at.segments


def test_a_plan_is_read_back_from_its_json():
    plan = posenc.plan(posenc.Rope(scaling=posenc.Yarn(factor=4, original_max_position_embeddings=64)), head_dim=8)
    assert posenc.Plan.from_json(plan.to_json(), head_dim=8) == plan


def test_what_a_later_posenc_wrote_is_refused_by_every_verb(np):
    import json

    known = json.loads(posenc.plan(posenc.Rope(), head_dim=4).to_json())
    known["rotate"]["hologram"] = {"depth": 3}
    plan = posenc.Plan.from_json(json.dumps(known), head_dim=4)
    assert plan.features == {"rotation", "unknown"}
    rooms = [each["name"] for each in posenc.tools.rooms()]
    assert rooms and all("unknown" in plan.refused_by(room) for room in rooms)
    for room in rooms:
        with pytest.raises(posenc.Error, match="does not know"):
            plan.check(room)
    with pytest.raises(posenc.Error, match="does not know"):
        plan.rotate(np.ones((1, 1, 1, 4)))


def test_a_plan_of_some_heads(np):
    whole = posenc.plan(posenc.Alibi(), heads=8, head_dim=16)
    part = whole.of_heads(2, 4, 2, 4)
    assert part.heads == 4
    assert np.array_equal(part.bias(9, 9), whole.bias(9, 9)[2:6])
    table = np.arange(64.0).reshape(8, 8)
    learned = posenc.plan(posenc.T5(num_buckets=8), heads=8, head_dim=16).with_table("bias", table)
    assert np.array_equal(learned.of_heads(6, 2, 6, 2).table("bias"), table[6:])
    # Heads that a plan does not have are refused by who reads it.
    q = np.zeros((1, 2, 3, 16), np.float32)
    with pytest.raises(posenc.Error):
        posenc.attend(q, q, q, learned.of_heads(7, 2, 7, 2))
    for first, count in ((-1, 2), (0, 0)):
        with pytest.raises(posenc.Error, match="first must be 0 or more"):
            whole.of_heads(first, count, 0, 1)
