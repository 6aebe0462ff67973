"""Keys that move to other positions and rotations, and what is said of models whose keys may."""

import pytest

import posenc

PLANS = {
    "plain": dict(scheme=posenc.Rope()),
    "neighbours": dict(scheme=posenc.Rope(pairing="interleaved")),
    "part of the head": dict(scheme=posenc.Rope(rotary_dim=8)),
    "axes": dict(scheme=posenc.Rope(mrope_section=[2, 3, 3])),
    "yarn": dict(scheme=posenc.Rope(scaling=posenc.Yarn(factor=8, original_max_position_embeddings=64))),
    "xpos": dict(scheme=posenc.XPos()),
}


def plan(name):
    return posenc.plan(PLANS[name]["scheme"], head_dim=16, heads=4, kv_heads=2)


@pytest.mark.parametrize("name", PLANS)
def test_moved_keys_are_as_if_rotated_there(np, rng, name):
    p, k = plan(name), rng.standard_normal((1, 2, 5, 16))
    old, new = [3, 4, 5, 90, 91], [0, 1, 2, 30, 31]
    moved = posenc.rekey(p.rotate(k, position_ids=old, side="key"), p, old, to_positions=new)
    np.testing.assert_allclose(moved, p.rotate(k, position_ids=new, side="key"), atol=1e-12)


def test_from_one_plan_to_another(np, rng):
    a, b, k = plan("plain"), plan("yarn"), rng.standard_normal((1, 2, 5, 16))
    moved = posenc.rekey(a.rotate(k, position_ids=7), a, 7, b)
    np.testing.assert_allclose(moved, b.rotate(k, position_ids=0), atol=1e-12)


def test_in_place_in_any_layout(np, rng):
    p, k = plan("plain"), rng.standard_normal((5, 2, 16)).astype("float32")
    x = p.rotate(k, position_ids=100, layout="shd")
    fresh, moved = p.rotate(k, position_ids=3, layout="shd"), posenc.rekey(x, p, 100, to_positions=3, layout="shd")
    assert posenc.rekey_(x, p, range(100, 105), to_positions=3, layout="shd") is None
    np.testing.assert_array_equal(x, moved)
    np.testing.assert_allclose(x, fresh, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_of_torch(dtype):
    torch = pytest.importorskip("torch")
    p, k = plan("plain"), torch.randn(2, 2, 5, 16, dtype=torch.float64)
    x = p.rotate(k, position_ids=50).to(getattr(torch, dtype))
    ids = torch.tensor([[0, 1, 2, 3, 4], [9, 8, 7, 6, 5]])
    moved = posenc.rekey(x, p, 50, to_positions=ids)
    assert moved.dtype == x.dtype
    error = (moved.double() - p.rotate(k, position_ids=ids)).abs().max()
    assert error <= 4 * torch.finfo(x.dtype).eps
    posenc.rekey_(x, p, 50, to_positions=ids)
    assert torch.equal(x, moved)
    x.requires_grad_()
    with torch.no_grad():
        assert torch.equal(posenc.rekey(x, p, ids, to_positions=ids), x)
    with pytest.raises(posenc.Error, match=r"keys must need no gradient.*keys\.detach\(\)"):
        posenc.rekey(x, p, 50)


def test_what_cannot_move_is_told(np):
    p, k = plan("plain"), np.zeros((1, 2, 5, 16))
    with pytest.raises(posenc.Error, match="FoPE"):
        posenc.rekey(k, posenc.plan(posenc.Fope(), head_dim=16, heads=4, kv_heads=2), 0)
    with pytest.raises(posenc.Error, match="a position for each token"):
        posenc.rekey(k, p, [1, 2, 3])
    with pytest.raises(posenc.Error, match="side"):
        posenc.rekey(k, p, 0, side="all")
    k.flags.writeable = False
    with pytest.raises(posenc.Error, match="writ"):
        posenc.rekey_(k, p, 0)


def test_a_layout_of_ranks_is_judged():
    judged = posenc.judge_layout("gemma-3-4b", "torchrun pretrain_gpt.py --context-parallel-size 8", at=131072)
    assert judged.verdict == "breaks" and judged.said == ["context_parallel_size 8"]
    assert judged.groups[0].reasons[0].by == "engine"
    best = posenc.judge_layout(posenc.model("gemma-3-4b"), judged.best.layout, at=131072)
    assert best.verdict == "survives" and len(best.work) == 8
    with pytest.raises(posenc.Error, match="zigzag"):
        posenc.judge_layout("gemma-3-4b", "zig-zag:8")


def test_a_verdict_for_each_group_of_layers():
    (llama,) = posenc.reuse("llama-3.1-8b")
    assert (llama.verdict, llama.stack, llama.layers[-1]) == ("exact", "text", 31)
    (gpt2,) = posenc.reuse(posenc.model("gpt2"))
    assert gpt2.verdict == "never" and "embeddings" in gpt2.why
    assert any("every axis" in each for each in posenc.reuse("qwen2.5-vl-7b")[0].moves)
