"""posenc.distributed.ring_attend over gloo: forward and backward are those of one process; what one rank has wrong, all say."""

import os
import socket
from datetime import timedelta

import pytest

import posenc
from posenc import distributed

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")

TOKENS, HEADS = 37, 4
MASKS = ({}, {"window": 9}, {"chunk": 10}, {"causal": False})


def _started(rank, ranks, port, seconds=60):
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=ranks, timeout=timedelta(seconds=seconds))


def _spawn(target, ranks, *more):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failures = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(target, (ranks, port, failures, *more), nprocs=ranks)
    assert failures.empty(), failures.get()


def _errors(rank, ranks, name, scheme, mask, sink, dtype):
    """How far outputs and gradients of a rank are from those of one process."""
    heads = HEADS if isinstance(scheme, posenc.Alibi) else HEADS // 2  # of keys
    plan = posenc.plan(scheme, head_dim=16, heads=HEADS, kv_heads=heads, length=64)
    q, k, v, gradient = (
        torch.randn(2, n, TOKENS, 16, dtype=torch.float64).to(dtype) for n in (HEADS, heads, heads, HEADS)
    )
    sinks = torch.linspace(0, 1, HEADS, dtype=torch.float64).to(dtype) if sink else None
    exact = [each.double().numpy() for each in (q, k, v)]
    how = dict(mask, sink_logits=None if sinks is None else sinks.double().numpy())
    expected = torch.from_numpy(posenc.attend(*exact, plan, **how))
    learned = ["sink_logits"] if sink else []
    by = posenc.attend_backward(*exact, gradient.double().numpy(), plan, parameters=learned, **how)
    shares = distributed.layout(name, TOKENS, ranks, block=3 if name == "striped" else 1)
    own = torch.from_numpy(shares.indices(rank)).long()
    mine = [each[:, :, own].clone().requires_grad_() for each in (q, k, v)]
    if sinks is not None:
        sinks.requires_grad_()
    made = distributed.ring_attend(*mine, shares, plan, sink_logits=sinks, **mask)
    made.backward(gradient[:, :, own])
    yield (made.double() - expected[:, :, own]).abs().max().item()
    for each, letter in zip(mine, "qkv", strict=True):
        yield (each.grad.double() - torch.from_numpy(by[letter])[:, :, own]).abs().max().item()
    if sinks is not None:
        total = sinks.grad.double()
        dist.all_reduce(total)
        yield (total - torch.from_numpy(by["sink_logits"])).abs().max().item() / TOKENS


def _as_one_process(rank, ranks, port, failures, name):
    _started(rank, ranks, port)
    torch.manual_seed(0)
    for dtype, most in ((torch.float64, 1e-11), (torch.float32, 2e-5), (torch.bfloat16, 0.1)):
        for scheme in (posenc.Rope(), posenc.Alibi()):
            for mask in MASKS:
                for sink in (False, True):
                    off = list(_errors(rank, ranks, name, scheme, mask, sink, dtype))
                    if not max(off) < most:
                        failures.put(f"rank {rank} of {ranks}: {name} {dtype} {scheme} {mask} {sink}: {off}")
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", ["zigzag", "striped"])
def test_outputs_and_gradients_are_those_of_one_process(ranks, name):
    _spawn(_as_one_process, ranks, name)


def _one_is_wrong(rank, ranks, port, failures):
    _started(rank, ranks, port)
    last = rank == ranks - 1
    for wrong, says in (("tokens", f"rank {ranks - 1}: q must have"), ("plan", "must agree"), ("window", "must agree")):
        shares = distributed.layout("zigzag", TOKENS, ranks)
        q = torch.randn(1, HEADS, shares.size(rank) + (wrong == "tokens" and last), 16)
        plan = posenc.plan(posenc.Rope(rope_theta=5e5 if wrong == "plan" and last else 1e4), head_dim=16)
        try:
            distributed.ring_attend(q, q, q, shares, plan, window=5 if wrong == "window" and last else 6)
            failures.put(f"rank {rank}: {wrong} goes through")
        except posenc.Error as error:
            if says not in str(error):
                failures.put(f"rank {rank}: {wrong}: {error}")
    dist.destroy_process_group()


def test_one_error_is_that_of_all():
    _spawn(_one_is_wrong, 3)


def _one_dies(rank, ranks, port, failures):
    _started(rank, ranks, port, seconds=10)
    dist.barrier()
    if rank == ranks - 1:
        os._exit(0)
    shares = distributed.layout("contiguous", TOKENS, ranks)
    q = torch.randn(1, HEADS, shares.size(rank), 16)
    try:
        distributed.ring_attend(q, q, q, shares)
        failures.put(f"rank {rank} goes on without the last")
    except RuntimeError:
        pass
    os._exit(0)  # the group cannot be taken down without the one that is gone


def test_a_rank_that_dies_ends_the_others_within_the_timeout():
    _spawn(_one_dies, 3)
