"""posenc.distributed: who holds which tokens, the ids of ranks, and torch's context_parallel balanced by a layout."""

import os

import numpy as np
import pytest

import posenc
from posenc import distributed


def test_ids_are_those_of_the_text():
    shares = distributed.layout("zigzag", 8, 2)
    assert distributed.position_ids(shares, 0).tolist() == [[0, 1, 6, 7]]
    assert shares.indices(1).tolist() == [2, 3, 4, 5]


def test_packed_texts_count_anew():
    bounds = [0, 4, 12]
    shares = distributed.layout("by-document", bounds, 2)
    whole = distributed.whole_positions(bounds)
    assert distributed.position_ids(shares, 0, whole).tolist() == [[0, 3, 0, 1, 6, 7]]


def test_every_axis_is_dealt_out_alike():
    whole = posenc.positions.ids(np.arange(12).reshape(3, 1, 4))
    assert distributed.position_ids(distributed.layout("zigzag", 4, 2), 0, whole)[:, 0].tolist() == [
        [0, 3],
        [4, 7],
        [8, 11],
    ]


@pytest.mark.parametrize("name", ["contiguous", "zigzag", "striped", "auto"])
def test_every_token_is_of_one_rank(name):
    shares = distributed.layout(name, 37, 5)
    held = np.concatenate([shares.indices(rank) for rank in range(5)])
    assert sorted(held.tolist()) == list(range(37))


def test_balance_is_counted():
    whole = distributed.whole_positions(4096)
    zigzag, contiguous = (distributed.layout(name, 4096, 8) for name in ("zigzag", "contiguous"))
    assert distributed.balance(zigzag.pairs(whole)) > 0.98
    assert distributed.balance(contiguous.pairs(whole)) == pytest.approx(8 / 15, abs=0.01)
    assert distributed.layout("auto", 4096, 8, window=128) == contiguous


def test_ranges_of_ones_own():
    shares = distributed.layout_of_ranges([[(0, 2), (6, 8)], [(2, 6)]])
    assert shares == distributed.layout("zigzag", 8, 2)
    with pytest.raises(posenc.Error, match="two have 1"):
        distributed.layout_of_ranges([[(0, 2)], [(1, 3)]])


def test_errors_name_the_cure():
    with pytest.raises(posenc.Error, match="did you mean 'zigzag'"):
        distributed.layout("zig-zag", 8, 2)
    with pytest.raises(posenc.Error, match="one of 2"):
        distributed.layout("zigzag", 8, 2).indices(2)


def test_a_balancer_rearranges_and_restores():
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.distributed.tensor.experimental._context_parallel._load_balancer")
    balancer = distributed.LoadBalancer(distributed.layout("striped", 12, 3))
    text = torch.arange(12)
    dealt = text[balancer._generate_indices()[0]]
    assert dealt.tolist() == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    assert torch.equal(dealt[balancer._generate_indices(restore=True)[0]], text)
    with pytest.raises(ValueError, match="as many tokens"):
        distributed.LoadBalancer(distributed.layout("contiguous", 7, 2))


def _one_rank(rank, ranks, name):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental._context_parallel._attention import _context_parallel_shard

    tokens = 4 * ranks
    shares = distributed.layout(name, tokens, ranks)
    mesh = init_device_mesh("cpu", (ranks,))
    ids = torch.arange(tokens).unsqueeze(0)
    (own,) = _context_parallel_shard(mesh, [ids], [1], distributed.LoadBalancer(shares))
    own = own.to_local() if hasattr(own, "to_local") else own
    expected = torch.from_numpy(distributed.position_ids(shares, rank))
    if not torch.equal(own, expected):
        yield f"{own.tolist()}, expected {expected.tolist()}"
    # What the ranks hold together is the text.
    parts = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(parts, own.contiguous())
    whole = torch.cat(parts, 1)[:, torch.argsort(torch.cat(parts, 1)[0])]
    if not torch.equal(whole, ids):
        yield f"{whole.tolist()}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are forked")
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", ["zigzag", "striped"])
def test_torch_shards_position_ids_as_the_layout_says(ranks, name):
    pytest.importorskip("torch.distributed.tensor.experimental._context_parallel._load_balancer")
    from gloo_ranks import failures_of

    assert not failures_of(_one_rank, ranks, name)
